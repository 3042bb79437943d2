"""Recalls: catalogues are asked, what they withdraw is refused, and stopped where it runs (Core §6.8).

What was learned once is kept in the store and holds offline. Nothing un-recalls (ruling T6).
"""

import hashlib
import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import anyio
import httpx

from events.times import format_date_time
from hub import key_fetch
from hub.catalogues import FEED_MOST_BYTES, CatalogueClient, CatalogueError, names_of
from hub.entries import RecallLearned
from hub.executions.model import Execution
from hub.key_cache import KeyCache, KeyCacheError
from hub.key_fetch import KeyFetchError
from hub.kitchen import Kitchen
from hub.recall_feed import RECALLS_MOST, Feed, FeedError, PassedOver, read_feed
from hub.recorder import Recording
from hub.stops import StopDesk
from hub.store.database import StoreFailed
from hub.store.rings import QUARANTINE
from mandates.documents import KeyRecord
from mandates.key_addresses import is_url, origin
from safety.feed_documents import Recall
from safety.recalls import stops

FIRST_RETRY_S: Final = 5.0
"""After a catalogue that did not answer; doubled each time, up to the interval."""
LOOK_EVERY_S: Final = 5.0
"""How often what runs is held against what is recalled, beside every poll."""
_JITTER: Final = 0.1
_SAID_MOST: Final = 1_000
_LOG: Final = logging.getLogger("aboyeur.recalls")


@dataclass(slots=True)
class CatalogueState:
    """How it stands with one catalogue.

    Attributes:
        asked_at: when it was last asked, RFC 3339.
        answered_at: when it last gave a feed.
        trouble: why the last try came to nothing.
        said: how many recalls its last feed holds.
        passed_over: those of them that do not hold.
    """

    url: str
    asked_at: str | None = None
    answered_at: str | None = None
    trouble: str | None = None
    said: int = 0
    passed_over: tuple[PassedOver, ...] = ()
    due: float = 0.0
    failures: int = 0
    reported: set[str] = field(default_factory=set)


class RecallDesk:
    """Asks the configured catalogues and acts on what they say."""

    def __init__(
        self,
        kitchen: Kitchen,
        stop_desk: StopDesk,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._kitchen = kitchen
        self._stops = stop_desk
        self._client = CatalogueClient(transport)
        self._keys = KeyCache(kitchen.settings.folder.known_keys)
        self._asking = anyio.Lock()
        self.catalogues = [CatalogueState(url) for url in kitchen.settings.catalogues.urls]

    async def run(self) -> None:
        """Ask each catalogue when it is due, and hold what runs against what is known; until cancelled."""
        clock = self._kitchen.clock
        while True:
            await self.enforce()
            now = clock.monotonic()
            for catalogue in self.catalogues:
                if catalogue.due <= now:
                    await self._poll(catalogue)
            await clock.sleep(self._until_due())

    async def poll_now(self) -> None:
        """Ask every catalogue now, due or not."""
        for catalogue in self.catalogues:
            await self._poll(catalogue)
        await self.enforce()

    def _until_due(self) -> float:
        now = self._kitchen.clock.monotonic()
        return max(0.05, min([LOOK_EVERY_S, *(one.due - now for one in self.catalogues)]))

    async def _poll(self, catalogue: CatalogueState) -> None:
        """Ask one catalogue; whatever goes wrong is its state, and it is asked again later."""
        every_s = self._kitchen.settings.catalogues.every_s
        async with self._asking:
            now = self._kitchen.clock.wall()
            catalogue.asked_at = format_date_time(now)
            try:
                feed = await self._ask(catalogue.url, now)
                await self._learn(catalogue, feed)
            except (CatalogueError, FeedError, KeyCacheError, StoreFailed) as error:
                catalogue.trouble = str(error)[:500]
                catalogue.failures += 1
                wait_s = min(every_s, FIRST_RETRY_S * 2 ** min(catalogue.failures - 1, 20))
                _LOG.info("no recalls of %s now, what is known holds: %s", catalogue.url, error)
            except Exception as error:  # noqa: BLE001 - a fault of ours with one feed must not end the asking
                _LOG.exception("a fault of ours with the recalls of %s", catalogue.url)
                catalogue.trouble = f"a fault of this program: {type(error).__name__}"
                catalogue.failures += 1
                wait_s = every_s
            else:
                catalogue.trouble, catalogue.failures = None, 0
                catalogue.answered_at = format_date_time(now)
                catalogue.said, catalogue.passed_over = feed.said, feed.passed_over[:100]
                wait_s = every_s
            catalogue.due = self._kitchen.clock.monotonic() + wait_s * (1 + _JITTER * self._chance())
        await self.enforce()

    def _chance(self) -> float:
        """From -1 to 1, so that not every home asks at the same moment."""
        digest = hashlib.sha256(self._kitchen.ids.secret().encode()).digest()
        return int.from_bytes(digest[:4], "big") / 0xFFFF_FFFF * 2 - 1

    async def _ask(self, base: str, now: datetime) -> Feed:
        keys = await self._keys_of(base, now)
        raw = await self._client.recalls(base)
        return read_feed(
            raw,
            issuers=names_of(base),
            keys=keys,
            known=self._kitchen.directory.recalls.keys(),
            now=now,
            max_bytes=FEED_MOST_BYTES,
        )

    async def _keys_of(self, base: str, now: datetime) -> list[KeyRecord]:
        """The catalogue's own keys: those it publishes now, else those that are known of it."""
        named: set[str] = set()
        try:
            fetched = await key_fetch.fetch(base, transport=self._client.transport)
        except KeyFetchError as error:
            _LOG.info("the keys of %s are not to be had now, the known ones hold: %s", base, error)
            source = key_fetch.where(base)[0]
            known = self._keys.read()
        else:
            source = fetched.source
            named = {record.kid for record in fetched.published.records}
            known = self._keys.learn(fetched.published.records, source=source, at=now).known
        return [
            key.record
            for key in known
            if key.source == source
            or key.record.kid in named
            or (is_url(key.record.kid) and origin(key.record.kid) == origin(base))
        ]

    async def _learn(self, catalogue: CatalogueState, feed: Feed) -> None:
        """Record what is new, and once each what does not hold."""
        room = RECALLS_MOST - len(self._kitchen.directory.recalls)
        new = feed.new[: max(0, room)]
        if len(new) < len(feed.new):
            _LOG.error("%d recalls of %s find no room here", len(feed.new) - len(new), catalogue.url)
        strange = [one for one in feed.passed_over if one.what not in catalogue.reported]

        def work(recording: Recording) -> None:
            for one in new:
                recording.record(
                    RecallLearned(catalogue=catalogue.url, hash=one.hash, document=one.text, key=one.key)
                )
            for other in strange[:100]:
                detail = f"{other.what}: {other.detail}"
                recording.turn_away(QUARANTINE, f"recall_{other.reason}", catalogue.url, detail)

        if new or strange:
            await self._kitchen.enrol(work)
        for other in strange:
            if len(catalogue.reported) < _SAID_MOST:
                catalogue.reported.add(other.what)
        for one in new:
            _LOG.warning("%s recalls (%s): %s", one.recall.issuer, one.recall.action, one.recall.id)

    async def enforce(self) -> None:
        """Stop whatever runs of a revision that is to be stopped; on return each has been tried once."""
        book = self._kitchen.directory.recall_book
        async with anyio.create_task_group() as tasks:
            for execution in self._kitchen.open_work.all():
                if execution.stop is not None:
                    continue
                recall = book.strictest(recipe=self._recipe_of(execution), recipe_hash=execution.recipe_hash)
                if recall is not None and stops(recall):
                    tasks.start_soon(self._stop, execution.id, recall)

    def _recipe_of(self, execution: Execution) -> str:
        held = self._kitchen.directory.recipes.get(execution.recipe_hash)
        return execution.recipe if held is None else held.recipe.id

    async def _stop(self, execution: str, recall: Recall) -> None:
        _LOG.warning("%s is stopped: %s recalled it (%s)", execution, recall.issuer, recall.id)
        await self._stops.stop(execution, f"catalogue:{recall.issuer}"[:200], f"recalled: {recall.id}")
