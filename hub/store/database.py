"""The database of one data folder: its settings, its two connections, its lock.

Writes go through one connection in one thread, reads through another, so that a read never waits for a write.
"""

import fcntl
import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import aiosqlite
import anyio

from config.paths import PRIVATE_FILE, sync_folder
from hub.store import migrations

LOCK_NAME = "hub.lock"

BUSY_TIMEOUT_S = 5.0
# what stays of the write-ahead log on disk after a burst
_WAL_KEPT_BYTES = 64 * 1024 * 1024
_SYNCHRONOUS_FULL = 2

T = TypeVar("T")


class StoreFailed(Exception):
    """The store could not confirm a write: nothing may be acknowledged.

    What was asked is normally not stored; where the failure came after the commit it may be. Asking again
    with the same keys is safe, taking it as done is not.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class StoreUnusable(Exception):
    """The database cannot be opened the way this program needs it; the message says what is wrong."""


class FolderInUse(Exception):
    """Another process holds the data folder."""

    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(f"{folder} is in use by {holder}: one hub per data folder")
        self.folder = folder
        self.holder = holder


class Store(Protocol):
    """What the writer and the readers need of a database; a simulation runs both in-line."""

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` with the connection that may write; one call at a time."""
        ...

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` with a connection that cannot write, in one snapshot."""
        ...


class DataFolderLock:
    """The right to be the only hub on a data folder, held until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            FolderInUse: another process holds it; names it.
        """
        descriptor = os.open(self._folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise FolderInUse(self._folder, holder or "a process that has just begun") from None
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; the file stays, so that two takers can never lock two different files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def open_writer(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A connection that may write, made (with mode 0600) if it is not there.

    A commit on it returns only after the disk was told to flush (DESIGN: power loss).

    Raises:
        StoreUnusable: the database does not take the settings, or the file is not a database.
    """
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
    connection = _connect(str(path), uri=False)
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StoreUnusable(f"{path}: the file system allows no write-ahead log (journal mode {mode})")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES:d}")
        connection.execute("PRAGMA foreign_keys = ON")
        _settle(connection, path, busy_timeout_s)
        if connection.execute("PRAGMA foreign_keys").fetchone()[0] != 1:
            raise StoreUnusable(f"{path}: this SQLite checks no foreign keys")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreUnusable(f"{path}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """A connection that cannot write, to a database that is there; closing it leaves every file as it is.

    Raises:
        StoreUnusable: no such database, or it is none.
    """
    if not path.is_file():
        raise StoreUnusable(f"{path}: there is no such database")
    # opened read-only, the last one to close does not fold the write-ahead log into the database
    connection = _connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        connection.execute("PRAGMA query_only = ON")
        _settle(connection, path, busy_timeout_s)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreUnusable(f"{path}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def read_snapshot(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """`work(connection)` where every statement of `work` sees the same state of the database."""
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _connect(name: str, *, uri: bool) -> sqlite3.Connection:
    # isolation_level None: transactions are begun and ended by our own statements only
    return sqlite3.connect(name, uri=uri, isolation_level=None, cached_statements=512)


def _settle(connection: sqlite3.Connection, path: Path, busy_timeout_s: float) -> None:
    connection.execute(f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000):d}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    # where a plain fsync does not reach the medium (macOS) ask for the one that does
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA synchronous = FULL")
    found = connection.execute("PRAGMA synchronous").fetchone()[0]
    if found != _SYNCHRONOUS_FULL:
        raise StoreUnusable(f"{path}: commits are not flushed to disk (synchronous = {found}, needed FULL)")


class Database:
    """An open data folder: the lock, the connection that writes, the connection that reads."""

    def __init__(
        self, lock: DataFolderLock, writing: aiosqlite.Connection, reading: aiosqlite.Connection
    ) -> None:
        self._lock = lock
        self._writing = writing
        self._reading = reading
        self._closed = False

    @classmethod
    async def open(cls, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> "Database":
        """Lock the folder of `path`, open the database in it (made if it is not there) and migrate it.

        Raises:
            FolderInUse: another hub runs on this folder.
            StoreUnusable: settings not taken, or not a database.
            migrations.SchemaTooNew: written by a newer program.
        """
        lock = DataFolderLock(path.parent)
        lock.acquire()
        opened: list[aiosqlite.Connection] = []
        try:
            writing = await aiosqlite.Connection(
                lambda: open_writer(path, busy_timeout_s=busy_timeout_s), iter_chunk_size=64
            )
            opened.append(writing)
            await _in_thread(writing, lambda connection: _prepare(connection, path.parent))
            reading = await aiosqlite.Connection(
                lambda: open_reader(path, busy_timeout_s=busy_timeout_s), iter_chunk_size=64
            )
            opened.append(reading)
        except BaseException:
            with anyio.CancelScope(shield=True):
                for connection in opened:
                    await connection.close()
            lock.release()
            raise
        return cls(lock, writing, reading)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` in the thread of the connection that may write; calls run one after the other.

        Once begun `work` runs to its end even if the caller is cancelled.

        Raises:
            StoreFailed: the database is closed.
        """
        if self._closed:
            raise StoreFailed("the database is closed")
        return await _in_thread(self._writing, work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` in the thread of the connection that reads; what it sees is one snapshot.

        Raises:
            StoreFailed: the database is closed.
        """
        if self._closed:
            raise StoreFailed("the database is closed")
        return await _in_thread(self._reading, lambda connection: read_snapshot(connection, work))

    async def close(self) -> None:
        """Finish what runs, close both connections, give the folder back. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            try:
                await self._reading.close()
            finally:
                try:
                    await self._writing.close()
                finally:
                    self._lock.release()


def _prepare(connection: sqlite3.Connection, folder: Path) -> None:
    try:
        migrations.migrate(connection, migrations.available())
    except sqlite3.DatabaseError as error:
        raise StoreUnusable(f"the database could not be brought up to date: {error}") from error
    # SQLite flushes its files, but not the name of a database file it has just made
    sync_folder(folder)


async def _in_thread(connection: aiosqlite.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    # aiosqlite's public calls cross to its thread once per statement, which costs more than the statement.
    # One call per group is what makes grouped commits fast, and `_execute` is the only way to hand that
    # thread a function: used here and nowhere else.
    execute: Callable[..., Awaitable[Any]] = connection._execute
    result: T = await execute(work, connection._conn)
    return result
