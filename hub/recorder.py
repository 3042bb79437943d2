"""The one way anything changes: an entry is appended to the log and folded into the projections at once."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

import anyio

from events.envelope import Event
from hub import entries
from hub.entries import Payload
from hub.executions.model import Execution
from hub.projections.executions import read_execution
from hub.projections.fold import Fold
from hub.projections.projector import Projector
from hub.store.database import StoreFailed
from hub.store.rings import Ring
from hub.store.writer import Transaction, Writer

STARTING_S: Final = 5.0
"""So long a caller waits for a hub that is starting."""

T = TypeVar("T")


class Recording:
    """One transaction as a piece of the hub sees it: entries to record, rows to read, rings to add to.

    Attributes:
        fold: for reading projections inside the transaction.
        touched: the executions that its entries changed, as they are now, with the place of the last entry.
    """

    def __init__(self, transaction: Transaction, projector: Projector) -> None:
        self._transaction = transaction
        self._projector = projector
        self.touched: dict[str, tuple[int, Execution]] = {}
        self.fold: Final[Fold] = projector.fold(transaction.connection, 0, transaction.at, self.touched)

    def record(self, payload: Payload, event: Event | None = None) -> None:
        """Append an entry and fold it."""
        seq = self._transaction.append(entries.kind_of(payload), entries.encode(payload))
        self._projector.apply(
            self._transaction.connection,
            seq,
            self._transaction.at,
            payload,
            event=event,
            touched=self.touched,
        )

    @property
    def last_seq(self) -> int:
        """The place of the newest entry, those of this transaction included."""
        return self._transaction.last_seq

    def logged(self, seq: int) -> bytes | None:
        """The payload of an entry; `None` where it was erased."""
        return self._transaction.payload_of(seq)

    @contextmanager
    def part(self) -> Generator[None, None, None]:
        """A part that leaves no trace, in tables, log or `touched`, if it raises."""
        before = dict(self.touched)
        try:
            with self._transaction.part():
                yield
        except BaseException:
            self.touched.clear()
            self.touched.update(before)
            raise

    def turn_away(self, ring: Ring, reason: str, source: str, detail: str = "", body: bytes = b"") -> None:
        """Keep in a ring what was refused."""
        ring.add(
            self._transaction.connection,
            kitchen=self._transaction.kitchen,
            at=self._transaction.at,
            reason=reason,
            source=source,
            detail=detail,
            body=body,
        )


class Listener(Protocol):
    """Told of executions after their change is on disk."""

    def changed(self, seq: int, execution: Execution) -> None: ...


class Recorder:
    """Runs works through the writer and tells what they changed, whatever becomes of the caller."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self._listeners: list[Listener] = []
        self._writer: Writer | None = None
        self._attached = anyio.Event()
        self._in_doubt: set[str] = set()
        self.doubt = anyio.Event()
        """Set where a commit was not confirmed: what it would have changed may or may not be on disk."""

    def attach(self, writer: Writer) -> None:
        """The writer is there: what waited for it goes on."""
        self._writer = writer
        self._attached.set()

    def give_up(self) -> None:
        """No writer will come: whoever waits for it is told now."""
        self._attached.set()

    def listen(self, listener: Listener) -> None:
        """Have `listener` told of every change from now on."""
        self._listeners.append(listener)

    async def commit(self, work: Callable[[Recording], T]) -> T:
        """Have `work` committed as a whole; returns once it is on disk and the listeners know.

        A caller that is cancelled waits for it all the same: the writer's waits are bounded.

        Raises:
            StoreFailed: it is not confirmed.
            Exception: whatever `work` raised; nothing of it is stored.
        """

        touching: set[str] = set()

        def recorded(transaction: Transaction) -> tuple[T, dict[str, tuple[int, Execution]]]:
            recording = Recording(transaction, self._projector)
            try:
                return work(recording), recording.touched
            finally:
                touching.update(recording.touched)

        with anyio.move_on_after(STARTING_S):
            await self._attached.wait()
        if self._writer is None:
            raise StoreFailed("the hub is still starting")
        try:
            with anyio.CancelScope(shield=True):
                value, touched = await self._writer.submit(recorded)
        except StoreFailed:
            self._in_doubt |= touching
            self.doubt.set()
            raise
        self._tell(touched)
        return value

    def _tell(self, touched: dict[str, tuple[int, Execution]]) -> None:
        for seq, execution in touched.values():
            for listener in self._listeners:
                listener.changed(seq, execution)

    async def settle(self) -> None:
        """Have the listeners told what really holds of executions that are in doubt since a failed commit.

        A failure after the commit itself (of the log's head, say) leaves on disk what nobody was told.

        Raises:
            StoreFailed: not yet.
        """
        self.doubt = anyio.Event()
        doubtful, self._in_doubt = self._in_doubt, set()

        def look(recording: Recording) -> dict[str, tuple[int, Execution]]:
            found = {}
            for execution in sorted(doubtful):
                row = recording.fold.one(
                    "SELECT body FROM execution WHERE kitchen = ?1 AND id = ?2", execution
                )
                if row is not None:
                    found[execution] = (recording.last_seq, read_execution(row[0]))
            return found

        try:
            # As a work of the writer: nothing can change between the look and the telling.
            self._tell(await self.commit(look))
        except StoreFailed:
            self._in_doubt |= doubtful
            raise

    async def record(self, payload: Payload) -> None:
        """Have one entry committed.

        Raises:
            StoreFailed: it is not confirmed.
        """
        await self.commit(lambda recording: recording.record(payload))
