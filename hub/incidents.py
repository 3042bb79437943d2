"""Incident reports: checked, shown to a person, taken to the catalogues until they have them (Core §6.9)."""

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, Final

import anyio
import httpx

from events.canonical import digest
from events.documents import DocumentError, from_plain, parse
from events.versions import SPOKEN, other_version
from hub.catalogues import CatalogueClient, CatalogueError
from hub.entries import IncidentAccepted, IncidentQueued
from hub.kitchen import Kitchen
from hub.orders import OrderError
from hub.recorder import Recording
from hub.store.database import StoreFailed
from hub.vocabularies import own_incident_types
from safety.anonymity import Trace, traces
from safety.feed_documents import IncidentReport

FIRST_RETRY_S: Final = 5.0
LONGEST_RETRY_S: Final = 3_600.0
WAITING_MOST: Final = 1_000
"""Reports that no catalogue has taken yet; beyond that nothing new is let go."""
_LOOK_EVERY_S: Final = 30.0
_LOG: Final = logging.getLogger("aboyeur.incidents")


@dataclass(frozen=True, slots=True)
class Preview:
    """A report as it would leave the house.

    Attributes:
        document: the very bytes.
        digest: of these bytes; who lets them go names it, so that nothing else goes.
        traces: what could tell who reports; a report with any does not go.
        catalogues: where it would go.
    """

    document: bytes
    digest: str
    traces: tuple[Trace, ...]
    catalogues: tuple[str, ...]


@dataclass(slots=True)
class _Delivery:
    failures: int = 0
    due: float = 0.0
    trouble: str | None = None


class IncidentDesk:
    """Takes incident reports of people and delivers them."""

    def __init__(self, kitchen: Kitchen, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._kitchen = kitchen
        self._client = CatalogueClient(transport)
        self._types = frozenset(own_incident_types().types)
        self._tries: dict[tuple[str, str], _Delivery] = {}
        self._bell = anyio.Event()

    def preview(self, raw: bytes) -> Preview:
        """What the report in `raw` would be, and what is wrong with it; nothing leaves the house.

        Raises:
            OrderError: 400 not an incident report, 422 of another version or an incident that nobody knows.
        """
        try:
            plain = parse(raw)
            other = other_version(plain)
            if other is not None:
                raise OrderError(422, "unsupported_version", f"only Core {SPOKEN} is read, not {other}")
            report = from_plain(IncidentReport, plain)
        except DocumentError as error:
            raise OrderError(400, error.reason, f"{error.path}: {error.detail}") from None
        if report.category not in self._types and not report.category.startswith("x-"):
            raise OrderError(422, "unknown_incident", f"{report.category[:80]} is in no list of incidents")
        return Preview(
            raw, digest(raw), traces(report, plain, self._known()), self._kitchen.settings.catalogues.urls
        )

    async def queue(self, raw: bytes, shown: str, by: str) -> Preview:
        """Let the report in `raw` go to the catalogues; `by` is the person who read it.

        Args:
            shown: the digest of the preview she was shown.

        Raises:
            OrderError: as `preview`; 409 it is not what was shown, no catalogue, or too many wait; 422 it
                could tell who reports.
            StoreFailed: it is not on disk.
        """
        preview = self.preview(raw)
        if preview.digest != shown:
            raise OrderError(409, "not_what_was_shown", f"this report is {preview.digest}: look at it first")
        if preview.traces:
            named = "; ".join(f"{one.path} {one.kind}: {one.detail}" for one in preview.traces)
            raise OrderError(422, "not_anonymous", named[:1000])
        if not preview.catalogues:
            raise OrderError(
                409, "no_catalogue", "no catalogue is configured: catalogues.urls in aboyeur.toml"
            )
        report = from_plain(IncidentReport, parse(raw))
        entry = IncidentQueued(
            id=report.id, document=raw.decode(), catalogues=list(preview.catalogues), by=by
        )

        def work(recording: Recording) -> None:
            fold = recording.fold
            row = fold.one("SELECT document FROM incident_report WHERE kitchen = ?1 AND id = ?2", report.id)
            if row is not None:
                if row[0] == entry.document:
                    return
                raise OrderError(409, "conflict", f"another report is called {report.id}")
            waiting = fold.one("SELECT count(*) FROM incident_delivery WHERE kitchen = ?1 AND accepted = 0")
            if waiting is not None and waiting[0] >= WAITING_MOST:
                raise OrderError(409, "outbox_full", f"{waiting[0]} deliveries wait already")
            recording.record(entry)

        await self._kitchen.recorder.commit(work)
        self._bell.set()
        return preview

    async def reports(self) -> list[dict[str, Any]]:
        """Every report that was let go, and how it stands with each catalogue."""
        rows = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT report.id, report.document, delivery.catalogue, delivery.accepted "
                "FROM incident_report AS report JOIN incident_delivery AS delivery "
                "ON delivery.kitchen = report.kitchen AND delivery.id = report.id "
                "WHERE report.kitchen = ? ORDER BY report.id, delivery.catalogue",
                (self._kitchen.name,),
            ).fetchall()
        )
        found: dict[str, dict[str, Any]] = {}
        for name, document, catalogue, accepted in rows:
            row = found.setdefault(name, {"id": name, "report": parse(document.encode()), "deliveries": []})
            tried = self._tries.get((name, catalogue))
            row["deliveries"].append(
                {
                    "catalogue": catalogue,
                    "accepted": bool(accepted),
                    "tries": tried.failures if tried else 0,
                    "trouble": tried.trouble if tried and not accepted else None,
                }
            )
        return list(found.values())

    async def run(self) -> None:
        """Deliver what waits, again and again until each catalogue has it; until cancelled."""
        while True:
            self._bell = anyio.Event()
            wait_s = _LOOK_EVERY_S
            try:
                wait_s = await self._deliver_due()
            except StoreFailed as failure:
                _LOG.warning("what waits for a catalogue cannot be read: %s", failure.detail)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._after, wait_s, tasks.cancel_scope)
                await self._bell.wait()
                tasks.cancel_scope.cancel()

    async def _after(self, seconds: float, scope: anyio.CancelScope) -> None:
        await self._kitchen.clock.sleep(seconds)
        scope.cancel()

    async def _deliver_due(self) -> float:
        """Try what is due; how long until the next is."""
        rows = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT delivery.id, delivery.catalogue, report.document FROM incident_delivery AS delivery "
                "JOIN incident_report AS report ON report.kitchen = delivery.kitchen "
                "AND report.id = delivery.id WHERE delivery.kitchen = ? AND delivery.accepted = 0 "
                "ORDER BY delivery.id, delivery.catalogue",
                (self._kitchen.name,),
            ).fetchall()
        )
        for name, catalogue, document in rows:
            # One that is configured no longer is not told anything more; it may come back.
            if catalogue not in self._kitchen.settings.catalogues.urls:
                continue
            delivery = self._tries.setdefault((name, catalogue), _Delivery())
            if delivery.due <= self._kitchen.clock.monotonic():
                await self._deliver(name, catalogue, document.encode(), delivery)
        now = self._kitchen.clock.monotonic()
        dues = [one.due - now for one in self._tries.values()]
        return max(0.05, min([_LOOK_EVERY_S, *dues]))

    async def _deliver(self, name: str, catalogue: str, document: bytes, delivery: _Delivery) -> None:
        # Drawn from the report alone: it tells the catalogue nothing but that it has it already.
        key = f"incident-{hashlib.sha256(document).hexdigest()[:40]}"
        try:
            await self._client.report(catalogue, document, key)
            await self._kitchen.recorder.record(IncidentAccepted(id=name, catalogue=catalogue))
        except (CatalogueError, StoreFailed) as error:
            wait_s = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2 ** min(delivery.failures, 20))
            delivery.failures += 1
            delivery.trouble = str(error)[:300]
            delivery.due = self._kitchen.clock.monotonic() + wait_s
            _LOG.info("%s has not taken an incident report yet: %s", catalogue, error)
        else:
            self._tries.pop((name, catalogue), None)

    def _known(self) -> list[str]:
        """What is called by name here."""
        directory = self._kitchen.directory
        agents = [actor.id for actor in directory.actors.values()]
        # `oven` or `home` is a word; `annas-oven` or `hob-2` is a name.
        things = (*directory.devices, self._kitchen.name)
        return [*directory.people, *agents, *(name for name in things if not name.isalpha())]
