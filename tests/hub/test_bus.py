"""On the bus: nothing is acknowledged before it is on disk, and every connection reads every device."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from events import topics
from events.transport import Delivery, Session, Transport, TransportLost
from hub.store.database import Store, StoreFailed
from tests.household import until
from tests.hub.api.scripted import ScriptedDevice, house


class Wire:
    """A broker of which a test holds both ends: what it delivers, what the hub says, and when it breaks."""

    def __init__(self) -> None:
        self.connections = 0
        self.acknowledged: list[Delivery] = []
        self._arrived: list[Delivery] = []
        self._news = anyio.Event()
        self._broken = anyio.Event()

    def deliver(self, topic: str, payload: bytes, qos: int = 1) -> None:
        self._arrived.append(Delivery(topic, payload, qos, False, {}, len(self._arrived) + 1))
        self._news.set()

    def cut(self) -> None:
        """Break the connection; what was not acknowledged comes again on the next."""
        self._broken.set()

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Session]:
        self.connections += 1
        self._broken, self._news = anyio.Event(), anyio.Event()
        self._arrived = [one for one in self._arrived if one not in self.acknowledged and one.qos]
        yield _End(self)


class _End:
    """The hub's end of one connection."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._next = 0
        self.generation = wire.connections

    async def subscribe(self, filters: Sequence[tuple[str, int]]) -> None:
        """Everything comes here anyway."""

    async def batch(self, most: int) -> list[Delivery]:
        wire = self._wire
        while self._next >= len(wire._arrived):
            if wire._broken.is_set():
                raise TransportLost("cut")
            wire._news = anyio.Event()
            with anyio.move_on_after(0.02):
                await wire._news.wait()
        found = wire._arrived[self._next : self._next + most]
        self._next += len(found)
        return found

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        self._wire.acknowledged += [one for one in deliveries if one.qos]

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        if "/to/hub/marker/" in topic:
            self._wire.deliver(topic, payload)


def wired(wire: Wire) -> Any:
    def transport(_: Transport) -> Transport:
        return wire

    return transport


def fault(name: str) -> bytes:
    event = {
        "specversion": "1.0",
        "id": name,
        "source": "cookwala://home/hob",
        "type": "cookwala.device.fault",
        "subject": "hob",
        "time": "2026-10-05T12:00:00Z",
        "data": {"x-aboyeur-fault": name},
    }
    return json.dumps(event).encode()


async def test_a_hub_that_alone_lost_its_connection_reads_every_device_on_the_next(tmp_path: Path) -> None:
    """CASES 3: the device never noticed and beats every five minutes; it does not say that it is online."""
    wire, hob = Wire(), ScriptedDevice("hob")
    async with house(tmp_path, hob, transport=wired(wire)) as home, home.client() as anna:

        async def state() -> str:
            return str((await anna.get(f"/v1/executions/{execution}")).json()["state"])

        answer = await anna.post("/v1/executions", json=home.order())
        execution = answer.json()["id"]

        async def running() -> bool:
            return await state() == "running"

        async def completed() -> bool:
            return await state() == "completed"

        await until(running)
        hob.put(hob.starts[0].id, "completed")
        await anyio.sleep(0.5)
        assert await state() == "running"
        wire.cut()
        await until(completed, 5)
        assert wire.connections == 2


async def test_what_is_not_on_disk_is_not_acknowledged_and_comes_again(tmp_path: Path) -> None:
    """CASES 4."""
    wire, disk = Wire(), {"full": False}

    class Failing:
        def __init__(self, store: Store) -> None:
            self._store = store

        async def run(self, work: Any) -> Any:
            if disk["full"]:
                raise StoreFailed("the disk is full")
            return await self._store.run(work)

        async def read(self, work: Any) -> Any:
            return await self._store.read(work)

    topic = topics.from_device("home", "hob", "device", "hob")

    async def live() -> bool:
        return any("/marker/" in one.topic for one in wire.acknowledged)

    async def connected_again() -> bool:
        return wire.connections >= 2

    async def acknowledged() -> bool:
        return any(one.topic == topic for one in wire.acknowledged)

    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob, transport=wired(wire), store=Failing) as home, home.client() as anna:
        await until(live)
        disk["full"] = True
        wire.deliver(topic, fault("heater"))
        await until(connected_again)
        assert not await acknowledged()
        disk["full"] = False
        await until(acknowledged)
        conditions = (await anna.get("/v1/conditions")).json()["conditions"]
        assert [one["type"] for one in conditions] == ["cookwala.device.fault"]
