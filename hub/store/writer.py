"""The one writer: works from many tasks, committed in groups.

`commit_group` is the whole of it as a plain function; `Writer` gathers the works and crosses to the thread
once per group. A caller is resumed only after its work is committed and the head of the log is on disk.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

import anyio
import anyio.lowlevel

from events.canonical import digest
from events.seams import Clock, Ids
from events.times import format_date_time
from hub.records.log.chain import Head, chain_head, row_hash
from hub.records.log.head import HeadKeeper
from hub.store.database import Store, StoreFailed

GROUP_MOST = 200
WAITING_MOST = 1000

# After these SQLite may have ended the transaction by itself, or the next statement would meet the same
# trouble: they concern the store, not the work that happened to meet them.
_STORE_ERRORS = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PROTOCOL,
    }
)

T = TypeVar("T")


class Transaction:
    """What a work may use: the connection, the log, and the time of its group.

    A work only adds, changes and reads rows; beginning and ending transactions is not its business. Entries
    it appends reach the tables `log` and `payload` at the end of the group: it cannot read them there.
    """

    __slots__ = ("_base", "_entries", "_log_id", "at", "connection", "kitchen")

    def __init__(
        self, connection: sqlite3.Connection, log_id: str, kitchen: str, at: str, base_seq: int
    ) -> None:
        self.connection = connection
        self._log_id = log_id
        self.kitchen = kitchen
        self.at = at
        self._base = base_seq
        self._entries: list[tuple[str, bytes]] = []

    def append(self, kind: str, payload: bytes) -> int:
        """Add an entry to the event log, in the order of the calls.

        Returns:
            Its seq, counted from 1. It holds only if the work returns: one that raises gives its seqs back.
        """
        self._entries.append((kind, payload))
        return self._base + len(self._entries)

    @contextmanager
    def part(self) -> Generator[None, None, None]:
        """A part of the work that leaves no trace, in tables or log, if it raises."""
        mark = len(self._entries)
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO part")
                self.connection.execute("RELEASE part")
            del self._entries[mark:]
            raise
        self.connection.execute("RELEASE part")

    @property
    def last_seq(self) -> int:
        """The seq of the newest entry, those of this group included."""
        return self._base + len(self._entries)

    def payload_of(self, seq: int) -> bytes | None:
        """The payload of an entry, stored or appended in this very group; `None` where it was erased."""
        if seq > self._base:
            return self._entries[seq - self._base - 1][1]
        row = self.connection.execute(
            "SELECT body FROM payload WHERE log_id = ? AND seq = ?", (self._log_id, seq)
        ).fetchone()
        return None if row is None else row[0]


Work = Callable[[Transaction], T]


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The work is committed."""

    value: T


@dataclass(frozen=True, slots=True)
class Failed:
    """The work raised and left no trace; others of its group are not concerned."""

    error: Exception


@dataclass(slots=True)
class Journal:
    """The event log as the writer carries it along: whose it is, where it ends, where its head is kept.

    `head` None means: read it from the database before the next group.
    """

    log_id: str
    kitchen: str
    head_keeper: HeadKeeper
    head: Head | None = None


def log_identity(connection: sqlite3.Connection, ids: Ids) -> str:
    """The id of this database's event log, given to it once and for ever."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'log_id'").fetchone()
    if row:
        return str(row[0])
    log_id = ids.new("log")
    connection.execute("INSERT INTO meta (name, value) VALUES ('log_id', ?)", (log_id,))
    return log_id


def commit_group(
    connection: sqlite3.Connection, journal: Journal, works: Sequence[Work[Any]], at: str
) -> list[Done[Any] | Failed]:
    """Run `works` in order in one transaction, commit, and put the new head of the log on disk.

    A work that raises is undone alone. On return everything else is on disk.

    Args:
        at: the group's wall time, RFC 3339.

    Returns:
        One outcome per work, in the same order.

    Raises:
        StoreFailed: nothing of the group may be acknowledged. The next call starts from what is stored.
    """
    base = journal.head
    journal.head = None
    try:
        connection.execute("BEGIN IMMEDIATE")
        if base is None:
            base = chain_head(connection, journal.log_id)
        transaction = Transaction(connection, journal.log_id, journal.kitchen, at, base.seq)
        outcomes = [_one(transaction, work) for work in works]
        head = _write_log(transaction, journal, base)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        _abandon(connection)
        raise StoreFailed(f"{error} ({_error_name(error)})") from error
    except BaseException:
        _abandon(connection)
        raise
    if head != base:
        try:
            journal.head_keeper.write(head)
        except OSError as error:
            raise StoreFailed(f"the log's head could not be written: {error}") from error
    journal.head = head
    return outcomes


def _one(transaction: Transaction, work: Work[Any]) -> Done[Any] | Failed:
    connection = transaction.connection
    mark = len(transaction._entries)
    connection.execute("SAVEPOINT work")
    try:
        value = work(transaction)
    except Exception as error:  # whatever a work raises is its caller's, and handed over there
        if isinstance(error, sqlite3.Error) and is_store_error(error):
            raise
        if not connection.in_transaction:
            raise StoreFailed(f"the transaction was ended inside a work: {error}") from error
        connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")
        del transaction._entries[mark:]
        return Failed(error)
    if not connection.in_transaction:
        raise StoreFailed("the transaction was ended inside a work")
    connection.execute("RELEASE work")
    return Done(value)


def _write_log(transaction: Transaction, journal: Journal, head: Head) -> Head:
    if not transaction._entries:
        return head
    log_id, kitchen, at = journal.log_id, transaction.kitchen, transaction.at
    seq, prev = head.seq, head.hash
    rows: list[tuple[str, int, str, str, str, str, str, str]] = []
    payloads: list[tuple[str, int, bytes]] = []
    for kind, payload in transaction._entries:
        seq += 1
        payload_digest = digest(payload)
        own = row_hash(
            log_id=log_id,
            seq=seq,
            prev=prev,
            kind=kind,
            at=at,
            payload_digest=payload_digest,
            kitchen=kitchen,
        )
        rows.append((log_id, seq, prev, own, kind, at, payload_digest, kitchen))
        payloads.append((log_id, seq, payload))
        prev = own
    connection = transaction.connection
    connection.executemany(
        "INSERT INTO log (log_id, seq, prev, hash, kind, at, payload_digest, kitchen)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    connection.executemany("INSERT INTO payload (log_id, seq, body) VALUES (?, ?, ?)", payloads)
    return Head(log_id, seq, prev)


def _abandon(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        # where even this fails the next BEGIN fails too, and comes here again
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def is_store_error(error: sqlite3.Error) -> bool:
    """Whether an error is the store's (full, locked, broken), not the statement's."""
    # extended codes carry the primary one in their low byte; errors of the Python module itself have none
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and (code & 0xFF) in _STORE_ERRORS


def _error_name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", type(error).__name__))


class _Order:
    """One submitted work on its way through the writer."""

    __slots__ = ("done", "outcome", "work")

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.done = anyio.Event()
        self.outcome: Done[Any] | Failed | None = None

    def settle(self, outcome: Done[Any] | Failed) -> None:
        self.outcome = outcome
        self.done.set()


class Writer:
    """The one task that writes. At most `waiting_most` works wait; whoever submits more waits for room."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        *,
        group_most: int = GROUP_MOST,
        waiting_most: int = WAITING_MOST,
    ) -> None:
        self._store = store
        self._journal = journal
        self._clock = clock
        self._group_most = group_most
        # a queue of our own: taking from it never waits, so no cancellation can lose what was taken
        self._waiting: deque[_Order] = deque()
        self._room = anyio.Semaphore(waiting_most, fast_acquire=True)
        self._arrival = anyio.Event()
        self._begun = False
        self._closed = False

    async def submit(self, work: Work[T]) -> T:
        """Have `work` committed; returns what it returned, once it is on disk.

        A caller that is cancelled while its work is queued or under way does not undo it.

        Raises:
            StoreFailed: it is not confirmed (disk full, locked, broken, or the writer has ended).
            Exception: whatever `work` itself raised; then nothing of it is stored.
        """
        await self._room.acquire()
        if self._closed:
            self._room.release()
            raise StoreFailed("the writer has ended")
        order = _Order(work)
        self._waiting.append(order)
        self._arrival.set()
        await order.done.wait()
        if isinstance(order.outcome, Failed):
            raise order.outcome.error
        return cast("Done[T]", order.outcome).value

    async def run(self) -> None:
        """Serve until cancelled; then finish the group under way and what is already queued, and end.

        Runs once in a writer's life. After a store failure it goes on with the next group: the disk may have
        room again.
        """
        if self._begun:
            raise RuntimeError("a writer runs once")
        self._begun = True
        try:
            while True:
                await self._something()
                await self._serve(self._take())
        finally:
            self._closed = True
            with anyio.CancelScope(shield=True):
                await self._drain()

    async def _something(self) -> None:
        # a busy queue must not keep the writer from noticing that it is cancelled
        await anyio.lowlevel.checkpoint()
        while not self._waiting:
            self._arrival = anyio.Event()
            await self._arrival.wait()

    def _take(self) -> list[_Order]:
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._group_most))]
        for _ in group:
            self._room.release()
        return group

    async def _drain(self) -> None:
        failed: StoreFailed | None = None
        try:
            while self._waiting:
                group = self._take()
                if failed is None:
                    failed = await self._serve(group)
                else:
                    # each further group would wait as long as the first for the same answer
                    _settle(group, failed)
        finally:
            # cut off even here: whoever still waits must not wait for ever
            _settle(self._take_all(), StoreFailed("the writer has ended"))

    def _take_all(self) -> list[_Order]:
        left = list(self._waiting)
        self._waiting.clear()
        return left

    async def _serve(self, orders: list[_Order]) -> StoreFailed | None:
        at = format_date_time(self._clock.wall())
        works = [order.work for order in orders]
        try:
            with anyio.CancelScope(shield=True):
                outcomes = await self._store.run(
                    partial(commit_group, journal=self._journal, works=works, at=at)
                )
        except StoreFailed as failure:
            _settle(orders, failure)
            return failure
        except BaseException as error:
            _settle(orders, StoreFailed(f"the writer was cut off: {error!r}"))
            raise
        for order, outcome in zip(orders, outcomes, strict=True):
            order.settle(outcome)
        return None


def _settle(orders: Sequence[_Order], failure: StoreFailed) -> None:
    for order in orders:
        # one exception object raised in many tasks would collect all their tracebacks
        order.settle(Failed(StoreFailed(failure.detail)))
