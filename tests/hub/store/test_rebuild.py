"""Projections are what the log gives: the check finds the first row that is not."""

import sqlite3
from functools import partial
from pathlib import Path

import anyio
import pytest

from hub.store.database import StoreUnusable
from hub.store.rebuild import Difference, Entry, check
from hub.store.writer import Transaction


def project(connection: sqlite3.Connection, entry: Entry) -> None:
    """Each entry sets the position of a cursor: `name=position`."""
    name, _, position = entry.payload.decode().partition("=")
    connection.execute(
        "INSERT INTO cursor VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position",
        (name, position),
    )


def put(name: str, position: int, transaction: Transaction) -> None:
    payload = f"{name}={position}".encode()
    seq = transaction.append("cursor.set", payload)
    project(transaction.connection, Entry(seq, "cursor.set", transaction.at, payload))


@pytest.fixture
async def kitchen(tmp_path: Path, opened) -> Path:
    async with opened(tmp_path) as store:
        for number in range(60):
            await store.writer.submit(partial(put, f"c{number % 7}", number))
    return tmp_path / "hub.db"


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.close()


async def test_projections_equal_to_the_log_replayed_pass(kitchen: Path) -> None:
    report = check(kitchen, project, ["cursor"])
    assert report.ok
    assert report.entries == 60


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        (
            "UPDATE cursor SET position = 1000 WHERE name = 'c2'",
            Difference("cursor", 3, "('c2', 1000)", "('c2', 58)"),
        ),
        ("DELETE FROM cursor WHERE name = 'c6'", Difference("cursor", 7, None, "('c6', 55)")),
        ("INSERT INTO cursor VALUES ('c9', 1)", Difference("cursor", 8, "('c9', 1)", None)),
        (
            "UPDATE cursor SET position = 56.5 WHERE name = 'c0'",
            Difference("cursor", 1, "('c0', 56.5)", "('c0', 56)"),
        ),
    ],
)
async def test_a_row_that_the_log_does_not_give_is_named(
    kitchen: Path, statement: str, difference: Difference
) -> None:
    change(kitchen, statement)
    report = check(kitchen, project, ["cursor"])
    assert report.differences == (difference,)
    assert report.findings == ()
    assert not report.ok


async def test_an_entry_the_projections_cannot_take_is_named(kitchen: Path) -> None:
    def stumbling(connection: sqlite3.Connection, entry: Entry) -> None:
        if entry.seq == 30:
            raise KeyError("no such dish")
        project(connection, entry)

    report = check(kitchen, stumbling, ["cursor"])
    assert report.replay_failed is not None
    assert report.replay_failed.startswith("entry 30 (cursor.set): KeyError")
    assert report.entries == 29
    assert not report.ok


async def test_a_table_that_is_not_there_is_an_error_not_a_pass(kitchen: Path) -> None:
    with pytest.raises(StoreUnusable, match="no table 'curser'"):
        check(kitchen, project, ["curser"])


async def test_another_schema_version_is_an_error_not_a_pass(kitchen: Path) -> None:
    change(kitchen, "PRAGMA user_version = 0")
    with pytest.raises(StoreUnusable, match="schema 0000"):
        check(kitchen, project, ["cursor"])


async def test_the_check_leaves_every_file_as_it_is(kitchen: Path) -> None:
    def state() -> dict[str, tuple[bytes, int]]:
        return {
            file.name: (file.read_bytes(), file.stat().st_mtime_ns)
            for file in kitchen.parent.iterdir()
            if file.is_file() and not file.name.endswith(("-wal", "-shm"))
        }

    before = state()
    check(kitchen, project, ["cursor"])
    assert state() == before


async def test_the_check_sees_one_moment_of_a_running_hub(tmp_path: Path, opened) -> None:
    async with opened(tmp_path) as store:
        stop = False

        async def work() -> None:
            number = 0
            while not stop:
                number += 1
                await store.writer.submit(partial(put, f"c{number % 7}", number))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            entries = []
            for _ in range(8):
                await anyio.sleep(0.02)
                report = await anyio.to_thread.run_sync(check, store.path, project, ["cursor"])
                assert report.ok, report
                entries.append(report.entries)
            stop = True
        assert entries == sorted(entries)
        assert entries[-1] > entries[0] > 0
