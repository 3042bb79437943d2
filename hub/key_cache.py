"""Public keys that others published, kept on disk for when their sources cannot be asked (Core §5).

A key stays known when its source goes silent, and its age is shown. A kid keeps the key it was first known
with: a source that changes one is refused, because the old signatures would silently become another's.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from config.paths import PRIVATE_FILE, read_at_most, write_private
from events.documents import Document, DocumentError, read
from events.times import format_date_time
from mandates.documents import DateTime, KeyRecord
from mandates.key_sources import Skipped
from mandates.keys import read_time

KNOWN_MOST: Final = 10_000
MAX_FILE_BYTES: Final = 16 * 1024 * 1024


class KeyCacheError(Exception):
    """The file of known keys cannot be read or written; the text says which and why."""


class KnownKey(Document, frozen=True):
    """A record, which source published it, and when that source said so last."""

    record: KeyRecord
    source: str
    fetched_at: DateTime

    def age_s(self, now: datetime) -> float:
        """Seconds since the source confirmed it; 0 where the clock went back since."""
        fetched = read_time(self.fetched_at)
        return 0.0 if fetched is None else max(0.0, (now - fetched).total_seconds())


class _File(Document, frozen=True):
    version: Literal[1]
    keys: list[KnownKey]


@dataclass(frozen=True, slots=True)
class Learned:
    """What one reading of a source changed.

    Attributes:
        known: all keys known now.
        added: kids that are new.
        changed: kids whose window or revocation is new.
        confirmed: kids that the source says again.
        refused: what was not taken, and why; what was known of it stays.
        absent: kids of this source that it no longer names; they stay known, and grow old.
    """

    known: tuple[KnownKey, ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    confirmed: tuple[str, ...]
    refused: tuple[Skipped, ...]
    absent: tuple[str, ...]


def learn(known: Iterable[KnownKey], records: Sequence[KeyRecord], *, source: str, at: datetime) -> Learned:
    """`known` after `source` published `records` at the moment `at` (aware). Pure."""
    by_kid = {key.record.kid: key for key in known}
    added: list[str] = []
    changed: list[str] = []
    confirmed: list[str] = []
    refused: list[Skipped] = []
    now = format_date_time(at)
    for record in records:
        old = by_kid.get(record.kid)
        if old is None:
            if len(by_kid) >= KNOWN_MOST:
                refused.append(Skipped(record.kid, f"{KNOWN_MOST} keys are known already"))
                continue
            by_kid[record.kid] = KnownKey(record=record, source=source, fetched_at=now)
            added.append(record.kid)
            continue
        why = _refusal(old, record, source)
        if why is not None:
            refused.append(Skipped(record.kid, why))
        elif old.source == source:
            by_kid[record.kid] = KnownKey(record=record, source=source, fetched_at=now)
            (confirmed if record == old.record else changed).append(record.kid)
        elif record != old.record:
            by_kid[record.kid] = msgspec.structs.replace(old, record=record)
            changed.append(record.kid)
    named = {record.kid for record in records}
    absent = [kid for kid, key in by_kid.items() if key.source == source and kid not in named]
    return Learned(
        tuple(by_kid.values()),
        tuple(added),
        tuple(changed),
        tuple(confirmed),
        tuple(refused),
        tuple(absent),
    )


def _refusal(old: KnownKey, record: KeyRecord, source: str) -> str | None:
    """Why `record` may not stand in the place of `old`.

    A kid keeps key, algorithm and owner for ever, and a revocation is never taken back or put off. Its own
    source may change the window, which is how a key is renewed or retired; others may only revoke it.
    """
    for name, word in (("alg", "algorithm"), ("public_key", "key"), ("actor", "owner")):
        if getattr(old.record, name) != getattr(record, name):
            return f"it names another {word} than the one known from {old.source} since {old.fetched_at}"
    if old.record.revoked_at is not None and (
        record.revoked_at is None or _is_later(record.revoked_at, old.record.revoked_at)
    ):
        return "it takes a revocation back, or puts it off"
    if old.source != source:
        bare = msgspec.structs.replace(record, revoked_at=None, revocation_reason=None)
        known = msgspec.structs.replace(old.record, revoked_at=None, revocation_reason=None)
        if bare != known:
            return f"it is known from {old.source}, which alone may change it"
    return None


def _is_later(one: str, other: str) -> bool:
    first, second = read_time(one), read_time(other)
    return first is None or second is None or first > second


class KeyCache:
    """The file in the data folder; mode 0600, always whole, one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[KnownKey, ...]:
        """The keys known; none where there is no file yet.

        Raises:
            KeyCacheError: there is a file and it cannot be read.
        """
        try:
            raw = read_at_most(self._path, MAX_FILE_BYTES)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise KeyCacheError(f"{self._path} cannot be read: {error.strerror}") from None
        try:
            return tuple(read(_File, raw, max_bytes=MAX_FILE_BYTES).keys)
        except DocumentError as error:
            raise KeyCacheError(f"{self._path} holds no known keys: {error}") from None

    def learn(self, records: Sequence[KeyRecord], *, source: str, at: datetime) -> Learned:
        """Take note of what `source` published at `at`; see the function of that name.

        Raises:
            KeyCacheError: the file cannot be read or written; it is then as it was.
        """
        with self._alone():
            learned = learn(self.read(), records, source=source, at=at)
            self._write(learned.known)
        return learned

    def forget(self, kid: str) -> bool:
        """Drop one key, so that another may be learned under its kid; whether it was known.

        Raises:
            KeyCacheError: as `learn`.
        """
        with self._alone():
            known = self.read()
            kept = tuple(key for key in known if key.record.kid != kid)
            if len(kept) < len(known):
                self._write(kept)
            return len(kept) < len(known)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        # Two readings at once, each writing what it read before the other, would lose a revocation.
        lock = self._path.with_name(f".{self._path.name}.lock")
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE)
        except OSError as error:
            raise KeyCacheError(f"{lock} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, keys: Sequence[KnownKey]) -> None:
        raw = msgspec.json.encode(_File(version=1, keys=list(keys)))
        if len(raw) > MAX_FILE_BYTES:
            raise KeyCacheError(
                f"{self._path} would hold {len(raw)} bytes, at most {MAX_FILE_BYTES} are kept"
            )
        try:
            write_private(self._path, raw)
        except OSError as error:
            raise KeyCacheError(f"{self._path} cannot be written: {error.strerror}") from None
