"""A station: all the hub's dealings with one device, one at a time, but for stops (DESIGN §4).

It forwards starts, reads statuses, collects logs. What is to be done stands in the store, so a restarted hub
finds it again; what could not be done is tried again at a growing, capped interval.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import anyio
import msgspec
from msgspec.structs import replace

from adapters.documents import ExecuteRequest, ExecutionStatus, Refusal, RefusalReason
from adapters.protocol import DeviceAdapter, DeviceError, DeviceUnreachable
from events.times import parse_date_time
from hub.device_log import judge_log
from hub.directory import DeviceEntry
from hub.entries import (
    DeviceRead,
    LogCollected,
    StartGivenUp,
    StartRefused,
    StartSending,
)
from hub.executions.model import Attempt, DeviceReport, Execution
from hub.kitchen import Kitchen
from hub.projections import executions
from hub.recorder import Recording
from hub.store.database import StoreFailed

HEAL_AFTER_S: Final = 5.0
"""A hole in a subject's order is given this long to close by itself."""
HEAL_MOST_S: Final = 600.0
"""A hole that no read closes is read ever more rarely, but at least this often."""
SURPRISED_S: Final = 5.0
"""After a fault of ours at a station it is tried again after this long."""
START_PATIENCE_S: Final = 60.0
"""A start that found no answer for this long is not sent any more: a person goes on."""
_RETRY_FIRST_S: Final = 0.5
_RETRY_MOST_S: Final = 10.0
_LOG_TRIES: Final = 5

_REASONS: Final[frozenset[str]] = frozenset(RefusalReason.__args__)  # type: ignore[attr-defined] # a Literal's own
_LOG = logging.getLogger("aboyeur.stations")


@dataclass(slots=True)
class _Hole:
    """Something is missing in a subject's order.

    Attributes:
        where: what is known of the subject and what came too early; another one is another hole.
    """

    where: tuple[str | None, int | None, str]
    due: float
    reads: int = 0

    def read(self, now: float) -> None:
        self.reads += 1
        self.due = now + min(HEAL_AFTER_S * 2**self.reads, HEAL_MOST_S)


@dataclass(slots=True)
class _Trying:
    """What could not be done yet."""

    since: float
    tries: int = 0
    due: float = 0.0
    maybe_delivered: bool = False

    def again(self, now: float) -> None:
        self.tries += 1
        self.due = now + min(_RETRY_FIRST_S * 2 ** (self.tries - 1), _RETRY_MOST_S)


class Station:
    """One device's place at the pass."""

    def __init__(
        self,
        kitchen: Kitchen,
        device: DeviceEntry,
        adapter: DeviceAdapter,
        barred: Callable[[str], bool],
    ) -> None:
        self._kitchen = kitchen
        self._device = device
        self._adapter = adapter
        self._barred = barred
        self._bell = anyio.Event()
        self._reads: set[str] = set()
        self._holes: dict[str, _Hole] = {}
        self._trying: dict[str, _Trying] = {}
        self._ordered: dict[str, float] = {}
        self._reconcile = False

    @property
    def name(self) -> str:
        return self._device.name

    @property
    def adapter(self) -> DeviceAdapter:
        return self._adapter

    def ring(self) -> None:
        """There may be something to do."""
        self._bell.set()

    def ordered(self, execution: str) -> None:
        """`execution` was accepted for this device just now, by this very process."""
        self._ordered[execution] = self._kitchen.clock.monotonic()
        self._bell.set()

    def reconcile(self) -> None:
        """Read everything open on this device, as after a reconnect, a return or a reboot."""
        self._reconcile = True
        self._bell.set()

    def read(self, ref: str) -> None:
        """Read one execution of this device."""
        self._reads.add(ref)
        self._bell.set()

    async def run(self) -> None:
        """Serve until cancelled."""
        try:
            while True:
                wait = await self._round()
                with anyio.move_on_after(wait):
                    await self._bell.wait()
                self._bell = anyio.Event()
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await self._adapter.close()

    async def _round(self) -> float | None:
        """Do what can be done now; seconds until there may be more, `None` until the bell."""
        try:
            await self._note_what_is_open()
            await self._do_reads()
            await self._do_starts()
            await self._collect_logs()
        except StoreFailed as failure:
            _LOG.warning("%s: the store failed, trying again: %s", self.name, failure.detail)
            return 1.0
        except Exception:  # noqa: BLE001 - one device's surprise must not end the kitchen
            _LOG.exception("%s: a fault of ours at this station, trying again", self.name)
            return SURPRISED_S
        now = self._kitchen.clock.monotonic()
        due = [trying.due for trying in self._trying.values()]
        due += [hole.due for hole in self._holes.values()]
        return max(0.05, min(due) - now) if due else None

    # --- Reads ------------------------------------------------------------------------------------------

    async def _note_what_is_open(self) -> None:
        if self._reconcile:
            self._reconcile = False
            for execution in self._kitchen.open_work.on(self.name):
                attempt = execution.attempt
                if attempt is not None and attempt.phase in ("answered", "unknown"):
                    self._reads.add(attempt.device_execution or attempt.request)
        now = self._kitchen.clock.monotonic()
        rows = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT parked.subject, max(parked.boot <> coalesce(subject.boot, parked.boot)), "
                "subject.boot, subject.seq, max(parked.boot) FROM parked "
                "LEFT JOIN subject USING (kitchen, device, subject) "
                "WHERE parked.kitchen = ? AND parked.device = ? GROUP BY parked.subject",
                (self._kitchen.name, self.name),
            ).fetchall()
        )
        holes = {}
        for subject, new_boot, *where in rows:
            hole = self._holes.get(subject)
            if hole is None or hole.where != tuple(where):
                hole = _Hole(tuple(where), now if new_boot else now + HEAL_AFTER_S)
            holes[subject] = hole
        self._holes = holes
        for subject, hole in self._holes.items():
            if hole.due <= now:
                self._reads.add(subject)
                hole.read(now)

    async def _do_reads(self) -> None:
        now = self._kitchen.clock.monotonic()
        for ref in sorted(self._reads):
            trying = self._trying.get(f"read {ref}")
            if trying is not None and trying.due > now:
                continue
            try:
                status = await self._adapter.status(ref)
            except DeviceUnreachable as error:
                self._put_off(f"read {ref}", error)
                continue
            except DeviceError as error:
                if error.status != 404:
                    self._put_off(f"read {ref}", error)
                    continue
                await self._record_read(ref, "read", None)
            else:
                await self._record_read(ref, "read", status)
            self._reads.discard(ref)
            self._trying.pop(f"read {ref}", None)

    async def _record_read(self, ref: str, why: str, status: ExecutionStatus | None) -> None:
        entry = DeviceRead(
            device=self.name,
            ref=ref,
            why=why,
            device_execution=status.id if status else None,
            report=DeviceReport.of(status) if status else None,
        )
        await self._kitchen.recorder.record(entry)

    def _put_off(self, what: str, error: Exception) -> _Trying:
        now = self._kitchen.clock.monotonic()
        trying = self._trying.setdefault(what, _Trying(since=now))
        trying.again(now)
        if trying.tries == 1:
            _LOG.info("%s: %s: %s", self.name, what, error)
        return trying

    # --- Starts -----------------------------------------------------------------------------------------

    async def _do_starts(self) -> None:
        waiting: set[str] = set()
        for execution in self._kitchen.open_work.on(self.name):
            attempt = execution.attempt
            if attempt is None or attempt.phase not in ("to_send", "sending") or self._barred(execution.id):
                continue
            waiting.add(f"start {execution.id}")
            trying = self._trying.get(f"start {execution.id}")
            if trying is None or trying.due <= self._kitchen.clock.monotonic():
                await self._start(execution, attempt)
        for what in [what for what in self._trying if what.startswith("start ") and what not in waiting]:
            del self._trying[what]
        self._ordered = {
            execution: since for execution, since in self._ordered.items() if f"start {execution}" in waiting
        }

    async def _start(self, execution: Execution, attempt: Attempt) -> None:
        resumed = attempt.phase == "sending" and f"start {execution.id}" not in self._trying
        if resumed and not self._device.deduplicates_starts:
            # It may have started before this hub did, and would not know the start again.
            await self._give_up(execution, attempt, "the hub ended while the start was under way", True)
            return
        if self._too_old(execution) and await self._settled_by_reading(execution, attempt, resumed):
            return
        request = await self._request(execution, attempt)
        if attempt.phase == "to_send" and not await self._depart(execution, attempt):
            return
        # No await between this look and the send: a stop that comes now finds the start in flight.
        if self._barred(execution.id):
            return
        self._kitchen.open_work.departs(execution.id)
        try:
            status = await self._adapter.start(request)
        except DeviceError as error:
            await self._answered_no(execution, attempt, error)
        except DeviceUnreachable as error:
            await self._unanswered(execution, attempt, error, error.delivered == "unknown")
        else:
            # Should the store fail now, the device tells it again when it is read.
            self._trying.pop(f"start {execution.id}", None)
            self._reads.add(attempt.request)
            await self._record_read(attempt.request, "start", status)
            self._reads.discard(attempt.request)
        finally:
            self._kitchen.open_work.arrived(execution.id)

    def _too_old(self, execution: Execution) -> bool:
        ordered = self._ordered.get(execution.id)
        if ordered is not None:
            return self._kitchen.clock.monotonic() - ordered >= START_PATIENCE_S
        # From before a restart, which only the wall clock has outlived.
        age_s = (self._kitchen.clock.wall() - parse_date_time(execution.updated_at)).total_seconds()
        return not -START_PATIENCE_S < age_s < START_PATIENCE_S

    async def _settled_by_reading(self, execution: Execution, attempt: Attempt, resumed: bool) -> bool:
        """A start from another hour is not simply sent: what does the device know of it?"""
        if f"start {execution.id}" in self._trying and not resumed:
            return False
        if attempt.phase == "to_send":
            await self._give_up(execution, attempt, "the start was not sent in time", False)
            return True
        try:
            status = await self._adapter.status(attempt.request)
        except DeviceError as error:
            if error.status != 404:
                self._put_off(f"start {execution.id}", error)
                return True
            await self._give_up(execution, attempt, "the device does not know the start", False)
            return True
        except DeviceUnreachable as error:
            await self._unanswered(execution, attempt, error, True)
            return True
        await self._record_read(attempt.request, "start", status)
        return True

    async def _request(self, execution: Execution, attempt: Attempt) -> ExecuteRequest:
        row = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT body FROM forward WHERE kitchen = ? AND execution = ? AND attempt = ?",
                (self._kitchen.name, execution.id, attempt.number),
            ).fetchone()
        )
        request = msgspec.json.decode(row[0], type=ExecuteRequest)
        return replace(request, x_presence=self._kitchen.presence.with_start(request.x_presence))

    async def _depart(self, execution: Execution, attempt: Attempt) -> bool:
        """Commit that the start may be at the device from now on; `False` where it may not leave any more."""

        def work(recording: Recording) -> bool:
            now = executions.load(recording.fold, execution.id)
            still = now.attempts[attempt.number - 1].phase == "to_send" and now.stop is None
            if still:
                recording.record(StartSending(execution=execution.id, attempt=attempt.number))
            return still

        return await self._kitchen.recorder.commit(work)

    async def _answered_no(self, execution: Execution, attempt: Attempt, error: DeviceError) -> None:
        if error.status >= 500 or error.status == 429:
            await self._unanswered(execution, attempt, error, True)
            return
        self._trying.pop(f"start {execution.id}", None)
        refusal = Refusal(reason=_reason_of(error), detail=(error.detail or str(error))[:500])
        await self._kitchen.recorder.record(
            StartRefused(execution=execution.id, attempt=attempt.number, refusal=refusal)
        )

    async def _unanswered(
        self, execution: Execution, attempt: Attempt, error: Exception, maybe_delivered: bool
    ) -> None:
        trying = self._put_off(f"start {execution.id}", error)
        trying.maybe_delivered = trying.maybe_delivered or maybe_delivered
        waited_s = self._kitchen.clock.monotonic() - trying.since
        if maybe_delivered and not self._device.deduplicates_starts:
            await self._give_up(execution, attempt, str(error), True)
        elif waited_s >= START_PATIENCE_S:
            await self._give_up(execution, attempt, str(error), trying.maybe_delivered)

    async def _give_up(self, execution: Execution, attempt: Attempt, detail: str, delivered: bool) -> None:
        self._trying.pop(f"start {execution.id}", None)
        await self._kitchen.recorder.record(
            StartGivenUp(
                execution=execution.id, attempt=attempt.number, delivered=delivered, detail=detail[:500]
            )
        )

    # --- Logs -------------------------------------------------------------------------------------------

    async def _collect_logs(self) -> None:
        rows = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT execution, number, request, device_execution FROM attempt WHERE kitchen = ? "
                "AND device = ? AND phase = 'closed' AND logged = 0 AND device_execution IS NOT NULL "
                "ORDER BY execution, number",
                (self._kitchen.name, self.name),
            ).fetchall()
        )
        now = self._kitchen.clock.monotonic()
        for execution, number, request, device_execution in rows:
            what = f"log {execution}.{number}"
            trying = self._trying.get(what)
            if trying is not None and trying.due > now:
                continue
            try:
                raw = await self._adapter.log(device_execution)
            except DeviceUnreachable as error:
                self._put_off(what, error)
                continue
            except DeviceError as error:
                if self._put_off(what, error).tries < _LOG_TRIES:
                    continue
                verdict = LogCollected(execution=execution, attempt=number, verdict="missing")
            else:
                recipe_hash = await self._recipe_hash(execution)
                judged = judge_log(
                    raw,
                    keys=self._device.keys,
                    recipe_hash=recipe_hash,
                    request=request,
                    device_execution=device_execution,
                    first_seen=self._kitchen.clock.wall(),
                )
                verdict = LogCollected(
                    execution=execution,
                    attempt=number,
                    verdict=judged.reason,
                    document=judged.document,
                    outcome=judged.outcome,
                    signed_at_unprotected=judged.signed_at_unprotected,
                )
            self._trying.pop(what, None)
            await self._kitchen.recorder.record(verdict)

    async def _recipe_hash(self, execution: str) -> str:
        row = await self._kitchen.store.read(
            lambda connection: connection.execute(
                "SELECT body FROM execution WHERE kitchen = ? AND id = ?", (self._kitchen.name, execution)
            ).fetchone()
        )
        return executions.read_execution(row[0]).recipe_hash


def _reason_of(error: DeviceError) -> RefusalReason:
    """Core's reason for a device's error: its own word where it gives one (CASES 9)."""
    if error.title in _REASONS:
        return error.title  # type: ignore[return-value] # one of the Literal's own words
    if error.status in (401, 403):
        return "not_authorized"
    if error.status == 409:
        return "needs_human_present"
    return "missing_capability"
