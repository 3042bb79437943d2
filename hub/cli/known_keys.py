"""The public keys a command may check with: files that were named, our own, and those others published."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hub.cli.errors import REFUSED, CommandError

if TYPE_CHECKING:
    from config.paths import DataFolder
    from mandates.documents import KeyRecord
    from mandates.key_sources import Skipped
    from mandates.keys import KeyRing


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a key is known from; `age_s` since its source last confirmed it, None for a file at hand."""

    source: str
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The ring to check with, where each key is from, and what was odd about them."""

    ring: "KeyRing"
    origins: dict[str, Origin]
    remarks: tuple[str, ...]


def gather(folder: "DataFolder", files: Sequence[Path], now: datetime) -> KnownKeys:
    """The keys in `files` first, then those of people who use this machine, then those others published.

    A revocation counts wherever it is known from, and the earliest of them: any source may be older than it.

    Raises:
        CommandError: a named file or the cache cannot be read, or two named files differ about a kid.
    """
    from hub.key_cache import KeyCache, KeyCacheError
    from mandates.keys import KeyRing

    gathered = _Gathered({}, {}, [])
    skipped: list[Skipped] = []
    for path in files:
        for record in read_records(path, skipped):
            old = gathered.records.get(record.kid, record)
            if _unrevoked(old) != _unrevoked(record):
                raise CommandError(f"{path} and another named file differ about {record.kid}", REFUSED)
            gathered.add(record, Origin(str(path)))
    for path in sorted(folder.secrets.glob("*.pub.json")):
        for record in read_records(path, skipped):
            gathered.add(record, Origin(str(path)))
    try:
        cached = KeyCache(folder.known_keys).read()
    except KeyCacheError as error:
        raise CommandError(str(error), REFUSED) from None
    for known in cached:
        gathered.add(known.record, Origin(known.source, known.age_s(now)))
    gathered.remarks.extend(f"{one.kid or 'an entry'} is left out: {one.why}" for one in skipped)
    return KnownKeys(KeyRing(gathered.records.values()), gathered.origins, tuple(gathered.remarks))


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What was gathered so far: the first record of each kid, with the earliest revocation of all."""

    records: "dict[str, KeyRecord]"
    origins: dict[str, Origin]
    remarks: list[str]

    def add(self, record: "KeyRecord", origin: Origin) -> None:
        import msgspec

        kid = record.kid
        old = self.records.setdefault(kid, record)
        first = self.origins.setdefault(kid, origin)
        if (old.alg, old.public_key) != (record.alg, record.public_key):
            self.remarks.append(f"{origin.source} knows another key as {kid} than {first.source}")
        elif _revoked_from(record) < _revoked_from(old):
            self.records[kid] = msgspec.structs.replace(
                old, revoked_at=record.revoked_at, revocation_reason=record.revocation_reason
            )
            self.remarks.append(f"{kid} is revoked, as {origin.source} says")


def _unrevoked(record: "KeyRecord") -> "KeyRecord":
    import msgspec

    return msgspec.structs.replace(record, revoked_at=None, revocation_reason=None)


def _revoked_from(record: "KeyRecord") -> datetime:
    """When the key stopped to be good; never is the end of time, and a time nobody can read its beginning."""
    from mandates.keys import read_time

    if record.revoked_at is None:
        return datetime.max.replace(tzinfo=UTC)
    return read_time(record.revoked_at) or datetime.min.replace(tzinfo=UTC)


def read_records(path: Path, skipped: list["Skipped"]) -> Sequence["KeyRecord"]:
    """The records in a file; what could not be taken is added to `skipped`.

    Raises:
        CommandError: the file holds no keys.
    """
    from hub.cli.documents import read_file
    from mandates.key_addresses import KeySourceError
    from mandates.key_sources import read_published

    try:
        published = read_published(read_file(path), source=str(path))
    except KeySourceError as error:
        raise CommandError(f"{path} holds no keys: {error}", REFUSED) from None
    skipped.extend(published.skipped)
    return published.records


def ago(seconds: float) -> str:
    """How long ago, in the unit a person would say it in."""
    for unit_s, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        amount = int(seconds // unit_s)
        if amount:
            return f"{amount} {unit}{'s' if amount > 1 else ''} ago"
    return "just now"
