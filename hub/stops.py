"""Stops (Core §6.2; ruling X4): to the device at once, ahead of everything, and again until it says so.

A stop needs the path alone. It bars further starts in memory, goes to the device over a connection of its
own, and is committed only then; neither the store nor a free queue is needed for it to leave the hub.
"""

import logging
import sqlite3
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from adapters.protocol import DeviceAdapter, DeviceError, DeviceUnreachable, StopAnswer
from adapters.states import FINAL
from hub.entries import DeviceRead, StopAsked, StopLanded, StopSent
from hub.executions.model import DeviceReport, Execution, Stop
from hub.kitchen import Kitchen
from hub.projections import executions
from hub.recorder import Recording
from hub.store.database import StoreFailed

ANSWER_WITHIN_S: Final = 3.0
"""The caller is answered after this long at the latest, with what is known then."""
_AGAIN_FIRST_S: Final = 0.5
_AGAIN_MOST_S: Final = 5.0
_MOST_EARLY: Final = 1_000
_SPARED_S: Final = 0.02
_LOG = logging.getLogger("aboyeur.stops")


class AdapterSource(Protocol):
    """Where a stop finds the adapters."""

    def adapter(self, device: str) -> DeviceAdapter | None:
        """The adapter of a registered device."""
        ...


@dataclass(slots=True)
class _Running:
    """A stop on its way; later callers join it.

    Attributes:
        tried: it was sent once, or need not be.
        committed: it was recorded once.
        reached: whether the device has it, or none was needed.
        spared: the start seems never to have left, so the device was not told; the commit tells.
        answer: what the device last said to it.
        news: there is something to record.
        recorded: something was recorded; a new event for each round.
    """

    by: str
    reason: str | None
    tried: anyio.Event = field(default_factory=anyio.Event)
    committed: anyio.Event = field(default_factory=anyio.Event)
    news: anyio.Event = field(default_factory=anyio.Event)
    recorded: anyio.Event = field(default_factory=anyio.Event)
    reached: bool = False
    spared: bool = False
    answer: StopAnswer | None = None
    recorded_asked: bool = False
    recorded_sent: bool = False

    def seen_on(self, execution: Execution) -> Execution:
        """`execution` with this stop on it, where the store has not taken it or learned of it last."""
        if execution.stop is not None or (execution.final and execution.state != "stopped"):
            return execution
        phase: Literal["asked", "sent", "landed"] = "asked"
        if self.answer is not None:
            phase = "landed" if self.answer.outcome == "landed" else "sent"
        return replace(execution, stop=Stop(phase=phase, by=self.by))


@dataclass(frozen=True, slots=True)
class StopOutcome:
    """What is known when the caller is answered.

    Attributes:
        execution: the execution as of now; `None` when no such execution is known.
        reached: whether the device has the stop, or none was needed.
    """

    execution: Execution | None
    reached: bool


class StopDesk:
    """Takes stops and sees them land."""

    def __init__(self, kitchen: Kitchen, stations: AdapterSource, tasks: TaskGroup) -> None:
        self._kitchen = kitchen
        self._stations = stations
        self._tasks = tasks
        self._running: dict[str, _Running] = {}
        self._early: dict[str, tuple[str, str | None]] | None = {}
        """Stops of what a starting hub does not know yet; `None` once it knows all that is open."""

    def barred(self, execution: str) -> bool:
        """Whether no start of `execution` may leave any more."""
        if execution in self._running:
            return True
        entry = self._kitchen.open_work.get(execution)
        # What is not open any more has ended, perhaps this very moment by a stop.
        return entry is None or entry.execution.stop is not None

    def take_up(self) -> None:
        """Go on with every stop that had not landed when the hub ended, or came before it knew of what."""
        early, self._early = self._early or {}, None
        for execution in self._kitchen.open_work.all():
            stop = execution.stop
            if execution.id in self._running:
                continue
            if stop is None and execution.id in early:
                self._begin(execution.id, *early[execution.id])
            elif stop is not None:
                running = self._begin(execution.id, stop.by, None)
                running.recorded_asked = True
                running.recorded_sent = stop.phase != "asked"

    async def stop(self, execution: str, by: str, reason: str | None) -> StopOutcome:
        """Stop an execution; answers within `ANSWER_WITHIN_S`."""
        entry = self._kitchen.open_work.get(execution)
        running = self._running.get(execution)
        if entry is None and running is None:
            ended = await self._ended(execution)
            if ended is None and self._early is not None and len(self._early) < _MOST_EARLY:
                self._early[execution] = (by, reason)
            if ended is None or ended.final:
                return StopOutcome(ended, reached=True)
            # The hub is starting and had not looked into its store yet: it is open after all.
            self._kitchen.open_work.changed(0, ended)
            entry, running = self._kitchen.open_work.get(execution), self._running.get(execution)
        if running is None:
            running = self._begin(execution, by, reason)
        with anyio.move_on_after(ANSWER_WITHIN_S):
            await running.tried.wait()
            await running.committed.wait()
        now = self._kitchen.open_work.get(execution)
        if now is not None:
            return StopOutcome(running.seen_on(now.execution), running.reached)
        ended = await self._ended(execution)
        if ended is None and entry is not None:
            ended = entry.execution
        return StopOutcome(running.seen_on(ended) if ended else None, running.reached)

    def _begin(self, execution: str, by: str, reason: str | None) -> _Running:
        running = self._running[execution] = _Running(by, reason)
        self._tasks.start_soon(self._see_it_land, execution, running, name=f"stop {execution}")
        return running

    async def _ended(self, execution: str) -> Execution | None:
        """The execution as the store has it, if the store answers soon."""
        try:
            with anyio.move_on_after(ANSWER_WITHIN_S):
                row = await self._kitchen.store.read(
                    lambda connection: connection.execute(
                        "SELECT body FROM execution WHERE kitchen = ? AND id = ?",
                        (self._kitchen.name, execution),
                    ).fetchone()
                )
                return executions.read_execution(row[0]) if row else None
        except (StoreFailed, sqlite3.Error, msgspec.DecodeError) as failure:
            _LOG.warning("whether %s has ended cannot be read: %s", execution, failure)
        return None

    async def _see_it_land(self, execution: str, running: _Running) -> None:
        """Send it until it landed, and record what comes of that beside: neither waits for the other."""
        wait_s = _AGAIN_FIRST_S
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(self._record, execution, running, name=f"record the stop of {execution}")
                while not self._landed(execution):
                    running.recorded = anyio.Event()
                    running.answer = await self._try(execution, running) or running.answer
                    running.tried.set()
                    running.news.set()
                    with anyio.move_on_after(wait_s):
                        await running.recorded.wait()
                        if not self._landed(execution):
                            await self._kitchen.clock.sleep(_SPARED_S if running.spared else wait_s)
                    wait_s = min(wait_s * 2, _AGAIN_MOST_S)
                beside.cancel_scope.cancel()
        finally:
            running.tried.set()
            running.committed.set()
            del self._running[execution]

    def _landed(self, execution: str) -> bool:
        entry = self._kitchen.open_work.get(execution)
        return entry is None or (entry.execution.stop is not None and entry.execution.stop.phase == "landed")

    async def _record(self, execution: str, running: _Running) -> None:
        """Record what is new, again and again where the store fails; until cancelled."""
        try:
            while True:
                await running.news.wait()
                running.news = anyio.Event()
                try:
                    await self._commit(execution, running)
                except Exception as failure:  # noqa: BLE001 - the stop goes on, and is recorded when it can be
                    _LOG.warning("the stop of %s is under way but not recorded yet: %s", execution, failure)
                    running.news.set()
                    await self._kitchen.clock.sleep(_AGAIN_FIRST_S)
                else:
                    if self._landed(execution) or not running.spared:
                        running.committed.set()
                    running.recorded.set()
        finally:
            if not running.recorded_asked:
                # The hub is ending: with this on disk its next run goes on with the stop.
                with anyio.CancelScope(shield=True):
                    try:
                        await self._commit(execution, running)
                    except StoreFailed as failure:
                        _LOG.warning("the stop of %s is not recorded: %s", execution, failure.detail)

    async def _try(self, execution: str, running: _Running) -> StopAnswer | None:
        """Send it once; what the device said, `None` where nobody did."""
        entry = self._kitchen.open_work.get(execution)
        attempt = entry.attempt if entry else None
        running.spared = entry is not None and self._kitchen.open_work.never_left(execution)
        if entry is None or attempt is None or running.spared:
            running.reached = True
            return None
        running.reached = False
        adapter = self._stations.adapter(attempt.device)
        if adapter is None:
            return None
        answer: StopAnswer | None = None
        # By both names: the device may know the request before the hub knows the device's execution.
        for ref in dict.fromkeys((attempt.device_execution or attempt.request, attempt.request)):
            try:
                answer = await adapter.stop(ref, running.by, running.reason)
            except (DeviceUnreachable, DeviceError) as error:
                if not running.tried.is_set():
                    _LOG.warning("the stop of %s has not reached %s: %s", execution, attempt.device, error)
                return None
            except Exception:  # noqa: BLE001 - whatever goes wrong with one try, there is another
                _LOG.exception("a fault of ours in the stop of %s at %s", execution, attempt.device)
                return None
            if answer.outcome != "not_found":
                running.reached = True
                break
        return answer

    async def _commit(self, execution: str, running: _Running) -> None:
        """Record what is new.

        Raises:
            StoreFailed: it is not on disk.
        """
        answer = running.answer

        def work(recording: Recording) -> None:
            now = executions.load(recording.fold, execution)
            # Stopped already: by this very stop, of which the device itself was the first to tell.
            if now.stop is None and (not now.final or now.state == "stopped"):
                recording.record(StopAsked(execution=execution, by=running.by, reason=running.reason))
            if answer is None or answer.outcome == "not_found":
                return
            if not running.recorded_sent:
                recording.record(StopSent(execution=execution))
            attempt = now.attempt
            if answer.status is not None and attempt is not None:
                recording.record(
                    DeviceRead(
                        device=attempt.device,
                        ref=attempt.request,
                        why="stop",
                        device_execution=answer.status.id,
                        report=DeviceReport.of(answer.status),
                    )
                )
            elif answer.outcome == "landed":
                recording.record(StopLanded(execution=execution))

        sent = answer is not None and answer.outcome != "not_found"
        status = answer.status if answer else None
        news = status is None or status.state in FINAL or not running.recorded_sent
        if running.recorded_asked and not (sent and news):
            return
        await self._kitchen.recorder.commit(work)
        running.recorded_asked = True
        running.recorded_sent = running.recorded_sent or sent
