"""What is open, in memory: all a stop needs when the store is locked, full or not yet there (DESIGN §4)."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from hub.executions.model import Attempt, Execution

_MOST_ENDED: Final = 1_000
"""So many ended executions are remembered, so that news that was overtaken cannot bring one back."""


@dataclass(frozen=True, slots=True)
class OpenExecution:
    """One execution that is not final, as of entry `seq` of the log."""

    seq: int
    execution: Execution

    @property
    def attempt(self) -> Attempt | None:
        return self.execution.attempt


class OpenWork:
    """The executions that are not final, by id; bounded by what is open."""

    def __init__(self) -> None:
        self._open: dict[str, OpenExecution] = {}
        self._ended: OrderedDict[str, int] = OrderedDict()
        self._in_flight: set[str] = set()

    def changed(self, seq: int, execution: Execution) -> None:
        """An execution changed at entry `seq`; older news than what is known is passed over."""
        known = self._open.get(execution.id)
        if seq < self._ended.get(execution.id, -1) or (known is not None and seq < known.seq):
            return
        if execution.final:
            self._open.pop(execution.id, None)
            self._ended[execution.id] = seq
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        else:
            self._open[execution.id] = OpenExecution(seq, execution)

    def get(self, execution: str) -> OpenExecution | None:
        """The open execution called so."""
        return self._open.get(execution)

    def on(self, device: str) -> list[Execution]:
        """The open executions whose last attempt is at `device`, oldest first."""
        return sorted(
            (
                entry.execution
                for entry in self._open.values()
                if entry.attempt is not None and entry.attempt.device == device
            ),
            key=lambda execution: (execution.updated_at, execution.id),
        )

    def busy(self) -> dict[str, str]:
        """Devices that have a dish on, each with one of its executions."""
        return {
            entry.attempt.device: entry.execution.id
            for entry in self._open.values()
            if entry.attempt is not None and entry.attempt.phase != "closed"
        }

    def all(self) -> list[Execution]:
        """All open executions."""
        return [entry.execution for entry in self._open.values()]

    def departs(self, execution: str) -> None:
        """A start of `execution` is leaving for the device this very moment."""
        self._in_flight.add(execution)

    def arrived(self, execution: str) -> None:
        """The start was answered, or will not be tried again."""
        self._in_flight.discard(execution)

    def never_left(self, execution: str) -> bool:
        """Whether the start certainly never left the hub."""
        entry = self._open.get(execution)
        if entry is None or execution in self._in_flight:
            return False
        return entry.attempt is None or entry.attempt.phase == "to_send"
