"""Recalls as a device keeps them (Core §6.8; ruling T6): polled from its hub, checked, never forgotten.

A device asks the hub it is paired with, which has asked the catalogues; it verifies each recall itself with
the keys the hub names, and keeps the first key it saw under a kid. Whoever lies to it can only have it refuse
more.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final

import msgspec

from events.documents import DocumentError, from_plain, parse, read
from events.seams import Clock
from hub.recall_feed import RECALLS_MOST, FeedError, read_feed
from mandates.documents import KeyRecord
from safety.feed_documents import Recall
from safety.recalls import RecallBook
from sim.memory import DeviceMemory, MemoryUnavailable

POLL_S: Final = 60.0
FEED_MOST_BYTES: Final = 4 * 1024 * 1024
KEYS_MOST: Final = 1_000

_log = logging.getLogger(__name__)


class Withdrawn:
    """What is recalled, as one device knows it."""

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory = memory
        self._known = memory.recalls()
        self._keys = {kid: read(KeyRecord, record) for kid, record in memory.recall_keys().items()}
        self._book = RecallBook(read(Recall, document) for document in self._known.values())

    def strictest(self, *, recipe: str, recipe_hash: str) -> Recall | None:
        """The recall that asks for most of those that concern the revision."""
        return self._book.strictest(recipe=recipe, recipe_hash=recipe_hash)

    def learn(self, feed: bytes, keys: bytes, now: datetime) -> int:
        """Add what is new in the hub's `feed` and `keys`; how many recalls were new.

        Raises:
            FeedError: no list of recalls, or no list of keys.
            MemoryUnavailable: nothing was learned.
        """
        records = {**_records(keys), **self._keys}
        judged = read_feed(
            feed,
            # The hub has seen to it that each issuer signed its own.
            issuers=_issuers(feed)
            | {record.actor for record in records.values() if record.actor is not None},
            keys=list(records.values()),
            known=self._known.keys(),
            now=now,
            max_bytes=FEED_MOST_BYTES,
        )
        for one in judged.passed_over:
            _log.warning("a recall that does not hold: %s %s: %s", one.what, one.reason, one.detail)
        new = {one.hash: one.text.encode() for one in judged.new[: RECALLS_MOST - len(self._known)]}
        if not new:
            return 0
        used = {one.key.kid: one.key for one in judged.new if one.hash in new}
        self._memory.learn_recalls(new, {kid: msgspec.json.encode(key) for kid, key in used.items()})
        self._known.update(new)
        self._keys.update(used)
        self._book = RecallBook(read(Recall, document) for document in self._known.values())
        return len(new)


async def keep_asking(
    ask: Callable[[], Awaitable[tuple[bytes, bytes]]],
    tell: Callable[[bytes, bytes], None],
    clock: Clock,
    every_s: float = POLL_S,
) -> None:
    """Ask the hub for its recalls every `every_s` and `tell` the device, until cancelled.

    Args:
        ask: feed and keys; raises `ConnectionError` while the hub gives none.
    """
    while True:
        try:
            tell(*await ask())
        except (ConnectionError, FeedError, MemoryUnavailable) as error:
            _log.info("no recalls now, what is known holds: %s", error)
        await clock.sleep(every_s)


def _records(raw: bytes) -> dict[str, KeyRecord]:
    try:
        plain = parse(raw)
        entries = plain.get("keys") if isinstance(plain, dict) else None
        if not isinstance(entries, list) or len(entries) > KEYS_MOST:
            raise FeedError("no list of keys, or too long a one")
        records = [from_plain(KeyRecord, entry) for entry in entries]
    except DocumentError as error:
        raise FeedError(f"the keys of recalls cannot be read: {error}") from None
    return {record.kid: record for record in records}


def _issuers(raw: bytes) -> set[str]:
    try:
        plain: Any = parse(raw, max_bytes=FEED_MOST_BYTES)
    except DocumentError as error:
        raise FeedError(str(error)) from None
    entries = plain if isinstance(plain, list) else []
    return {
        entry["issuer"]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("issuer"), str)
    }
