"""An open store as the hub opens it, and processes that are killed while they use one."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import pytest

from config.paths import DataFolder
from hub.records.log.chain import Finding
from hub.records.log.head import HeadFile, check_at_start
from hub.store import migrations
from hub.store.database import Database, open_writer
from hub.store.writer import Journal, Transaction, Writer, commit_group, log_identity

ROOT = Path(__file__).resolve().parents[3]


class SteadyClock:
    """Wall time that stands still at noon."""

    def wall(self) -> datetime:
        return datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("the store does not sleep")


class NumberedIds:
    """Ids that count."""

    def __init__(self) -> None:
        self._given = 0

    def new(self, prefix: str) -> str:
        self._given += 1
        return f"{prefix}-{self._given:020d}"

    def secret(self) -> str:
        raise AssertionError("the store needs no secrets")


@dataclass
class OpenStore:
    folder: Path
    database: Database
    journal: Journal
    writer: Writer
    findings: list[Finding]

    @property
    def path(self) -> Path:
        return DataFolder(self.folder).database

    @property
    def head_path(self) -> Path:
        return DataFolder(self.folder).head


Opener = Callable[..., AbstractAsyncContextManager[OpenStore]]


@asynccontextmanager
async def _open(
    folder: Path,
    *,
    busy_timeout_s: float = 5.0,
    group_most: int = 200,
    waiting_most: int = 1000,
    run: bool = True,
) -> AsyncIterator[OpenStore]:
    keeper = HeadFile(DataFolder(folder).head)
    database = await Database.open(DataFolder(folder).database, busy_timeout_s=busy_timeout_s)
    try:
        log_id = await database.run(lambda connection: log_identity(connection, NumberedIds()))
        findings = await database.run(lambda connection: check_at_start(connection, log_id, keeper))
        journal = Journal(log_id, "home", keeper)
        writer = Writer(database, journal, SteadyClock(), group_most=group_most, waiting_most=waiting_most)
        async with anyio.create_task_group() as tasks:
            if run:
                tasks.start_soon(writer.run)
            yield OpenStore(folder, database, journal, writer, findings)
            tasks.cancel_scope.cancel()
    finally:
        await database.close()
        keeper.close()


@pytest.fixture
def opened() -> Opener:
    """`async with opened(folder) as store`: database, journal and a running writer, as the hub has them."""
    return _open


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    """A migrated writing connection on a file of its own."""
    opened = open_writer(DataFolder(tmp_path).database)
    migrations.migrate(opened, migrations.available())
    return opened


def run_until_killed(script: str, *arguments: object) -> str:
    """Run `script` in a Python of its own that kills itself with -9; returns what it printed before."""
    done = _run(script, *arguments)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout


def run_to_end(script: str, *arguments: object) -> str:
    """Run `script` in a Python of its own; returns what it printed."""
    done = _run(script, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(script: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *(str(one) for one in arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(__file__).parent)])},
        check=False,
    )


@pytest.fixture
def killed() -> Callable[..., str]:
    return run_until_killed


@pytest.fixture
def ended() -> Callable[..., str]:
    return run_to_end


def _note(number: int, transaction: Transaction) -> int:
    return transaction.append("test.noted", f"entry {number}".encode())


def fill(folder: Path, entries: int, *, group: int = 10) -> None:
    """Write `entries` entries (kind `test.noted`, payload `entry N`) as the writer does, and close."""
    path = DataFolder(folder).database
    keeper = HeadFile(DataFolder(folder).head)
    connection = open_writer(path)
    migrations.migrate(connection, migrations.available())
    journal = Journal(log_identity(connection, NumberedIds()), "home", keeper)
    for start in range(1, entries + 1, group):
        works = [partial(_note, number) for number in range(start, min(start + group, entries + 1))]
        commit_group(connection, journal, works, "2026-03-01T12:00:00.000Z")
    connection.close()
    keeper.close()


@pytest.fixture
def filled(tmp_path: Path) -> Callable[..., Path]:
    """`filled(entries)`: a data folder with a closed database of that many entries."""

    def make(entries: int, *, group: int = 10) -> Path:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        fill(folder, entries, group=group)
        return folder

    return make
