"""A hub's inbox over a real store, without sockets: deliveries go in, projection tables come out."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
import msgspec

from adapters.documents import ExecuteRequest, ExecutionStatus, PresenceWord
from adapters.protocol import DeviceError, DeviceUnreachable, StopAnswer
from config.settings import Settings
from events import topics
from events.seams import SystemIds
from events.topics import category_of
from events.transport import Delivery
from hub.directory import DeviceEntry
from hub.entries import Payload
from hub.event_types import event_registry
from hub.inbox import Inbox
from hub.kitchen import Kitchen
from hub.liveness import Liveness
from hub.open_work import OpenWork
from hub.presence import Presence
from hub.projections.projector import TABLES, Projector
from hub.recorder import Recorder
from hub.records.log.head import HeadFile
from hub.stations import Station
from hub.store.database import Database
from hub.store.rebuild import Report, _rows, check
from hub.store.rings import QUARANTINE
from hub.store.writer import Journal, Writer, log_identity
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary

Tables = dict[str, list[tuple[Any, ...]]]
NOW = datetime(2026, 10, 5, 12, 0, tzinfo=UTC)


class StillClock:
    """Time stands until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.offset = timedelta()

    def wall(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds - 1_000.0) + self.offset

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(0.001)


@dataclass
class Heard:
    """What the inbox told, for a test to look at."""

    news: list[frozenset[str]] = field(default_factory=list)
    rebooted: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)


class _Attention:
    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    def news(self, devices: frozenset[str]) -> None:
        self._heard.news.append(devices)

    def rebooted(self, device: str) -> None:
        self._heard.rebooted.append(device)

    def returned(self, device: str) -> None:
        self._heard.returned.append(device)

    def incomplete(self, device: str) -> None:
        self._heard.incomplete.append(device)


class ScriptedDevice:
    """A device that answers reads from a table and does nothing else."""

    def __init__(self) -> None:
        self.statuses: dict[str, ExecutionStatus] = {}
        self.reads: list[str] = []
        self.starts: list[str] = []

    async def status(self, execution: str) -> ExecutionStatus:
        self.reads.append(execution)
        found = self.statuses.get(execution)
        if found is None:
            raise DeviceError(404, "not_found")
        return found

    async def start(self, request: ExecuteRequest) -> ExecutionStatus:
        self.starts.append(request.id)
        found = self.statuses.get(request.id)
        if found is None:
            raise DeviceUnreachable("not yet", "unknown")
        return found

    async def log(self, execution: str) -> bytes:
        raise DeviceError(404, "not_found")

    async def capabilities(self) -> bytes:
        raise DeviceError(404, "not_found")

    async def safety_limits(self) -> bytes:
        raise DeviceError(404, "not_found")

    async def stop(self, execution: str, requested_by: str, reason: str | None = None) -> StopAnswer:
        return StopAnswer("not_found")

    async def resume(self, execution: str, seq: int, key: str, by: str) -> ExecutionStatus:
        raise DeviceError(409, "conflict")

    async def present(self, word: PresenceWord) -> None:
        raise DeviceError(409, "conflict")

    async def close(self) -> None:
        pass


@dataclass
class Counter:
    """The pass of a kitchen: inbox, store and projections."""

    kitchen: Kitchen
    inbox: Inbox
    heard: Heard
    clock: StillClock
    database: Database
    path: Path
    devices: dict[str, ScriptedDevice]

    async def record(self, entries: Sequence[Payload]) -> None:
        for entry in entries:
            await self.kitchen.recorder.record(entry)
        await self.kitchen.reload()

    async def take(self, *deliveries: Delivery, live: bool = True) -> None:
        await self.inbox.take(deliveries, live=live)

    async def tables(self, *names: str) -> Tables:
        wanted = names or TABLES
        return await self.database.read(
            lambda connection: {name: list(_rows(connection, name)) for name in wanted}
        )

    async def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self.database.read(lambda connection: connection.execute(query, values).fetchall())

    async def quarantined(self) -> dict[str, int]:
        """How many were ever quarantined, by reason."""
        return await self.database.read(lambda connection: QUARANTINE.counters(connection, self.kitchen.name))

    def rebuilt(self) -> Report:
        return check(self.path, Projector(self.kitchen.name, self.kitchen.registry).replay, TABLES)

    @asynccontextmanager
    async def stations(self) -> AsyncGenerator[dict[str, Station]]:
        """A running station for every device, on its scripted adapter."""
        made = {
            name: Station(
                self.kitchen, entry, self.devices.setdefault(name, ScriptedDevice()), lambda _: False
            )
            for name, entry in self.kitchen.directory.devices.items()
        }
        async with _beside(*(station.run for station in made.values())):
            yield made


@asynccontextmanager
async def counter(folder: Path, **settings: Any) -> AsyncGenerator[Counter]:
    """An empty kitchen `home` in `folder`."""
    folder.mkdir(exist_ok=True)
    clock, ids, heard = StillClock(), SystemIds(), Heard()
    made = Settings(data=folder, **settings)
    registry = event_registry()
    database = await Database.open(made.folder.database)
    try:
        with HeadFile(made.folder.head) as head:
            log_id = await database.run(lambda connection: log_identity(connection, ids))
            writer = Writer(database, Journal(log_id, made.kitchen, head), clock)
            recorder = Recorder(Projector(made.kitchen, registry))
            recorder.attach(writer)
            open_work = OpenWork()
            recorder.listen(open_work)
            devices: dict[str, ScriptedDevice] = {}
            kitchen = Kitchen(
                settings=made,
                clock=clock,
                ids=ids,
                registry=registry,
                vocabulary=Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes()),
                store=database,
                recorder=recorder,
                connect=_no_network,
                open_work=open_work,
                liveness=Liveness(),
                presence=Presence(clock),
            )
            inbox = Inbox(kitchen, _Attention(heard))
            async with _beside(writer.run):
                yield Counter(kitchen, inbox, heard, clock, database, made.folder.database, devices)
    finally:
        with anyio.CancelScope(shield=True):
            await database.close()


@asynccontextmanager
async def _beside(*works: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Run `works` for the length of the context; a failed test is not wrapped in a group."""
    tasks = [asyncio.create_task(work()) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if not isinstance(outcome, asyncio.CancelledError | None):
            raise outcome


def _no_network(device: DeviceEntry) -> Any:
    raise AssertionError(f"nobody calls {device.name} here")


def delivery(
    device: str, raw: bytes, *, qos: int = 1, retained: bool = False, topic: str | None = None
) -> Delivery:
    """`raw` as the broker hands it over from `device`, on the topic where the event belongs."""
    if topic is None:
        event = msgspec.json.decode(raw)
        topic = topics.from_device("home", device, category_of(event["type"]), event.get("subject"))
    return Delivery(topic=topic, payload=raw, qos=qos, retained=retained, attributes={}, receipt=1)
