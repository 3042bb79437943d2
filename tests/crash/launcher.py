"""A hub that dies at a named point, or meets a disk that does not do what it should.

`python launcher.py DATA-FOLDER`, told by the environment what is to happen:

- `CRASH_POINT`: a file; where it is there and says `3 before forward`, the hub removes it and kills itself
  with -9 when it comes to the point `before forward` for the third time since then.
- `CRASH_ACKNOWLEDGED`: file to which the id of every event is written right before it is acknowledged.
- `CRASH_SYNCHRONOUS`: the flush level that replaces FULL on the connection that writes.
- `CRASH_SCHEMA`: a schema newer than the program's is there; the point `migration` lies in the middle of it.
- `CRASH_FULL`: while this file exists the disk is full.
"""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from config import logs
from config.settings import load
from events import topics
from events.seams import SystemClock, SystemIds
from hub.service import Seams, serve
from hub.store import database, migrations
from tests.crash.newer_schema import newer

POINT = Path(os.environ["CRASH_POINT"])
_passed: dict[str, int] = {}


def point(name: str) -> None:
    """Die here, if this is the place and the time."""
    if not POINT.exists():
        _passed.clear()
        return
    nth, _, wanted = POINT.read_text().partition(" ")
    if name == wanted:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] == int(nth):
            POINT.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


class Connection:
    """The connection that writes: knows what kinds of entries a transaction holds when it is committed."""

    def __init__(self, inner: sqlite3.Connection) -> None:
        self._inner = inner
        self._kinds: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def executemany(self, sql: str, rows: Any) -> Any:
        if sql.startswith("INSERT INTO log "):
            self._kinds = {row[4] for row in rows}
        return self._inner.executemany(sql, rows)

    def execute(self, sql: str, *arguments: Any) -> Any:
        if sql == "BEGIN IMMEDIATE":
            self._kinds = set()
        if sql != "COMMIT":
            return self._inner.execute(sql, *arguments)
        full = os.environ.get("CRASH_FULL")
        if full and Path(full).exists():
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
            raise error
        for kind in self._kinds:
            point(f"before commit of {kind}")
        done = self._inner.execute(sql)
        for kind in self._kinds:
            point(f"after commit of {kind}")
        return done


class Store:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def run(self, work: Any) -> Any:
        return await self._inner.run(lambda connection: work(Connection(connection)))

    async def read(self, work: Any) -> Any:
        return await self._inner.read(work)


class Head:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def read(self) -> Any:
        return self._inner.read()

    def write(self, head: Any) -> None:
        self._inner.write(head)
        point("after head")


class Session:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def acknowledge(self, deliveries: Sequence[Any]) -> None:
        certain = [one for one in deliveries if one.qos and topics.parse_from(one.topic) is not None]
        if certain:
            point("before acknowledgement")
            _note(certain)
        await self._inner.acknowledge(deliveries)
        if certain:
            point("after acknowledgement")


def _note(deliveries: Sequence[Any]) -> None:
    """Written before it is done: what may have been acknowledged is in the file.

    Heartbeats stand in no log; the embedded broker delivers them, too, as if they were to be acknowledged.
    """
    path = os.environ.get("CRASH_ACKNOWLEDGED")
    if path:
        events = [json.loads(one.payload) for one in deliveries]
        with Path(path).open("a") as file:
            file.writelines(
                event["id"] + "\n" for event in events if event["type"] != "cookwala.device.heartbeat"
            )


class Transport:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Session]:
        async with self._inner.connect() as session:
            yield Session(session)


class Adapter:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def start(self, request: Any) -> Any:
        point("before forward")
        status = await self._inner.start(request)
        point("before the answer")
        return status

    async def resume(self, *arguments: Any) -> Any:
        point("before resume")
        status = await self._inner.resume(*arguments)
        point("before the answer to resume")
        return status

    async def log(self, execution: str) -> bytes:
        raw: bytes = await self._inner.log(execution)
        point("before the log is kept")
        return raw


async def _run(folder: Path) -> None:
    stopping = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_heed, stopping)
        await serve(
            load(folder, {}),
            SystemClock(),
            SystemIds(),
            stopping=stopping,
            seams=Seams(store=Store, head=Head, transport=Transport, adapter=Adapter),
        )
        tasks.cancel_scope.cancel()


async def _heed(stopping: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            stopping.set()


def _change_connections() -> None:
    """What no seam reaches: a weaker flush level, and a schema newer than the program's."""
    open_writer = database.open_writer

    def changed(path: Path, **more: Any) -> sqlite3.Connection:
        connection = open_writer(path, **more)
        level = os.environ.get("CRASH_SYNCHRONOUS")
        if level:
            connection.execute(f"PRAGMA synchronous = {level}")
        connection.create_function("crash_point", 0, lambda: point("migration"))
        return connection

    database.open_writer = changed
    if os.environ.get("CRASH_SCHEMA"):
        schema = newer("SELECT crash_point();")
        migrations.available = lambda: schema


if __name__ == "__main__":
    logs.set_up("info")
    _change_connections()
    anyio.run(_run, Path(sys.argv[1]))
