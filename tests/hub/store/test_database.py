"""One hub per data folder, reads that wait for nobody, and files only their owner can read."""

import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hub.store.database import (
    Database,
    DataFolderLock,
    FolderInUse,
    StoreUnusable,
    open_reader,
    open_writer,
)
from hub.store.migrations import Migration, SchemaTooNew, available, migrate


async def test_a_second_hub_on_the_same_folder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "hub.db")
    try:
        with pytest.raises(FolderInUse, match=f"process {os.getpid()}"):
            await Database.open(tmp_path / "hub.db")
    finally:
        await database.close()
    again = await Database.open(tmp_path / "hub.db")
    await again.close()
    await again.close()


def test_a_killed_hub_does_not_keep_its_folder(tmp_path: Path, killed: Callable[..., str]) -> None:
    killed(
        """
        import os, signal, sys
        from pathlib import Path
        from hub.store.database import DataFolderLock
        lock = DataFolderLock(Path(sys.argv[1]))
        lock.acquire()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        tmp_path,
    )
    with DataFolderLock(tmp_path):
        pass


async def test_a_failed_opening_gives_the_folder_back(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    path.write_bytes(b"this is no database, but it is long enough to look like a file of one" * 50)
    with pytest.raises(StoreUnusable, match="not a database"):
        await Database.open(path)
    with DataFolderLock(tmp_path):
        pass


async def test_a_database_of_a_newer_program_is_not_opened(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "hub.db")
    known = available()
    migrate(connection, [*known, Migration(known[-1].number + 1, "later", "CREATE TABLE later (a);")])
    connection.close()
    with pytest.raises(SchemaTooNew, match="later"):
        await Database.open(tmp_path / "hub.db")
    with DataFolderLock(tmp_path):
        pass


def test_the_files_are_closed_to_others(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "hub.db")
    migrate(connection, available())
    for name in ("hub.db", "hub.db-wal", "hub.db-shm"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_a_connection_that_would_not_flush_is_not_handed_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless(sqlite3.Connection):
        def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
            return super().execute(sql.replace("synchronous = FULL", "synchronous = OFF"), *arguments)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Careless))
    for opening in (open_writer, open_reader):
        with pytest.raises(StoreUnusable, match="not flushed"):
            opening(tmp_path / "hub.db")


def test_a_reader_cannot_write_and_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="no such database"):
        open_reader(tmp_path / "hub.db")
    assert list(tmp_path.iterdir()) == []
    migrate(open_writer(tmp_path / "hub.db"), available())
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        open_reader(tmp_path / "hub.db").execute("INSERT INTO cursor VALUES ('a', 1)")


async def test_reads_do_not_wait_for_a_write_and_see_nothing_half_done(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "hub.db")
    holding, release = threading.Event(), threading.Event()

    def slow_write(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO cursor VALUES ('a', 1)")
        holding.set()
        assert release.wait(10)
        connection.execute("COMMIT")

    def count(connection: sqlite3.Connection) -> int:
        return int(connection.execute("SELECT count(*) FROM cursor").fetchone()[0])

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(database.run, slow_write)
            await anyio.to_thread.run_sync(holding.wait)
            with anyio.fail_after(5):
                seen: list[int] = []

                async def look() -> None:
                    seen.append(await database.read(count))

                async with anyio.create_task_group() as looking:
                    for _ in range(100):
                        looking.start_soon(look)
            assert seen == [0] * 100
            release.set()
        assert await database.read(count) == 1
    finally:
        release.set()
        await database.close()


async def test_one_read_sees_one_moment(tmp_path: Path, opened) -> None:
    async with opened(tmp_path) as store:
        first_done, go_on = threading.Event(), threading.Event()

        def twice(connection: sqlite3.Connection) -> tuple[int, int]:
            first = connection.execute("SELECT count(*) FROM log").fetchone()[0]
            first_done.set()
            assert go_on.wait(10)
            return first, connection.execute("SELECT count(*) FROM log").fetchone()[0]

        async with anyio.create_task_group() as tasks:
            seen: list[tuple[int, int]] = []

            async def look() -> None:
                seen.append(await store.database.read(twice))

            tasks.start_soon(look)
            await anyio.to_thread.run_sync(first_done.wait)
            await store.writer.submit(lambda transaction: transaction.append("test.noted", b"between"))
            go_on.set()
        assert seen == [(0, 0)]
