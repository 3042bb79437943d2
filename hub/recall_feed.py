"""What a catalogue's feed of recalls is worth (Core §6.8; ruling T6). Pure: bytes in, verdicts out.

Each recall stands for itself: one that is forged, unreadable or another's is passed over and named, and the
others hold. What a feed no longer says is not thereby taken back.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from events.canonical import document_hash
from events.documents import DocumentError, from_plain, parse
from events.versions import other_version
from mandates.documents import KeyRecord
from mandates.keys import KeyRing
from mandates.signature import verify_document
from safety.feed_documents import Recall

RECALLS_MOST: Final = 10_000
"""In one feed, and of all that are kept."""


class FeedError(ValueError):
    """No feed of recalls; the text says why."""


@dataclass(frozen=True, slots=True)
class NewRecall:
    """A recall that holds and was not known."""

    hash: str
    text: str
    recall: Recall
    key: KeyRecord


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A recall that does not hold: its hash or place, and why, by name and in words."""

    what: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed says.

    Attributes:
        said: how many recalls it holds, whatever they are worth.
        new: those that hold and were not known.
        known: how many of them were known already.
        passed_over: those that do not hold.
    """

    said: int
    new: tuple[NewRecall, ...]
    known: int
    passed_over: tuple[PassedOver, ...]


def read_feed(
    raw: bytes,
    *,
    issuers: Collection[str],
    keys: Sequence[KeyRecord],
    known: Collection[str],
    now: datetime,
    max_bytes: int,
) -> Feed:
    """Judge the feed `raw` of the catalogue that calls itself one of `issuers`.

    Args:
        keys: what the catalogue published of its own.
        known: the hashes of the recalls that were judged good before.
        now: when the feed was read (aware); a signature first seen after its key was revoked is none.

    Raises:
        FeedError: no list of recalls.
    """
    try:
        plain = parse(raw, max_bytes=max_bytes)
        texts = _texts(raw, plain)
    except DocumentError as error:
        raise FeedError(str(error)) from None
    if len(texts) > RECALLS_MOST:
        raise FeedError(f"{len(texts)} recalls, at most {RECALLS_MOST} are read")
    own = [key for key in keys if key.actor is None or key.actor in issuers]
    ring = KeyRing(own)
    new: dict[str, NewRecall] = {}
    passed: list[PassedOver] = []
    before = 0
    for number, (text, value) in enumerate(texts):
        judged = _judge(f"[{number}]", text, value, issuers=issuers, ring=ring, now=now)
        if isinstance(judged, PassedOver):
            passed.append(judged)
        elif judged.hash in known:
            before += 1
        else:
            new.setdefault(judged.hash, judged)
    return Feed(len(texts), tuple(new.values()), before, tuple(passed))


def _texts(raw: bytes, plain: Any) -> list[tuple[str, Any]]:
    """The very text of each recall beside its value; a list, as Core's API has it, or one in an object."""
    if isinstance(plain, list):
        parts = msgspec.json.decode(raw, type=list[msgspec.Raw])
        values = plain
    elif isinstance(plain, dict) and isinstance(plain.get("recalls"), list):
        holder = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        parts = msgspec.json.decode(holder["recalls"], type=list[msgspec.Raw])
        values = plain["recalls"]
    else:
        raise FeedError("neither a list of recalls nor an object that holds one")
    return [(bytes(part).decode(), value) for part, value in zip(parts, values, strict=True)]


def _judge(
    place: str, text: str, value: Any, *, issuers: Collection[str], ring: KeyRing, now: datetime
) -> NewRecall | PassedOver:
    other = other_version(value)
    try:
        if other is not None:
            return PassedOver(document_hash(value), "unsupported_version", f"it is of Core {other}")
        recall = from_plain(Recall, value)
        hashed = document_hash(value)
    except DocumentError as error:
        return PassedOver(place, "unreadable", f"{error.path}: {error.detail}")
    if recall.issuer not in issuers:
        return PassedOver(hashed, "foreign_issuer", f"{recall.issuer[:200]} does not issue here")
    verdict = verify_document(value, ring, first_seen=now)
    if not verdict.counts:
        reason = verdict.reason if not verdict.ok else "seen_after_revocation"
        return PassedOver(hashed, reason, verdict.detail[:300])
    key = ring.get(recall.signature.kid)
    assert key is not None, "a signature of an unknown key does not verify"
    return NewRecall(hashed, text, recall, key)
