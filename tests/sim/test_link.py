"""A device on the bus: everything it said arrives, in order, at least once, whatever the broker does."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import pytest

from events.mqtt import MqttSettings, MqttTransport
from events.seams import Clock, SystemClock
from events.transport import Delivery, TransportLost
from sim.link import Link
from tests.mosquitto_process import Mosquitto

Benches = Callable[..., Any]
DEVICE = "demo-hob-robot"
WITHIN_S = 20


class Wire:
    """A broker's side of a connection that a test can let break."""

    def __init__(self) -> None:
        self.arrived: list[tuple[str, dict[str, Any], int, bool]] = []
        self.subscriptions: list[tuple[str, int]] = []
        self.breaks_after: int | None = None
        self.loses_confirmation = False
        self.connections = 0

    def connect(self) -> AbstractAsyncContextManager["WireSession"]:
        return self._connect()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator["WireSession"]:
        self.connections += 1
        yield WireSession(self)

    def of(self, prefix: str) -> list[dict[str, Any]]:
        return [event for _, event, _, _ in self.arrived if event["type"].startswith(prefix)]


class WireSession:
    def __init__(self, wire: Wire) -> None:
        self.generation = wire.connections
        self._wire = wire

    async def subscribe(self, filters: Sequence[tuple[str, int]]) -> None:
        self._wire.subscriptions.extend(filters)

    async def batch(self, most: int) -> list[Delivery]:
        await anyio.sleep_forever()
        return []

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        return None

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        wire = self._wire
        await anyio.lowlevel.checkpoint()
        if wire.breaks_after is not None and len(wire.arrived) >= wire.breaks_after:
            wire.breaks_after = None
            if wire.loses_confirmation:
                wire.arrived.append((topic, json.loads(payload), qos, retain))
            raise TransportLost("cut")
        wire.arrived.append((topic, json.loads(payload), qos, retain))


class HurriedClock(SystemClock):
    """Waits a fiftieth of what it is asked to."""

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds / 50)


@asynccontextmanager
async def linked(
    bench: Any, transport: Any, heartbeat_s: float = 10.0, clock: Clock | None = None
) -> AsyncIterator[Link]:
    voice = bench.appliance.join("home")
    link = Link(bench.appliance, voice, transport, clock or SystemClock(), heartbeat_s)
    async with anyio.create_task_group() as group:
        group.start_soon(link.run)
        yield link
        group.cancel_scope.cancel()


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(WITHIN_S):
        while not holds():
            await anyio.sleep(0.01)


async def test_a_device_says_that_it_is_online_shows_life_and_then_what_happened(bench: Benches) -> None:
    one, wire = bench(), Wire()
    status = await one.start("salata-baladi")
    one.cook(status.id)
    expected = one.said()
    async with linked(one, wire):
        await until(
            lambda: len(wire.of("cookwala.execution")) + len(wire.of("cookwala.notify")) == len(expected)
        )
    assert wire.subscriptions == [(f"cookwala/home/to/{DEVICE}/#", 1)]
    topic, online, qos, retained = wire.arrived[0]
    assert (online["type"], qos, retained) == ("cookwala.device.online", 1, False)
    assert topic == f"cookwala/home/from/{DEVICE}/device/{DEVICE}"
    beats = [entry for entry in wire.arrived if entry[1]["type"] == "cookwala.device.heartbeat"]
    assert [(qos, retained) for _, _, qos, retained in beats] == [(0, False)]
    assert beats[0][1]["data"] == {"intervalS": 10.0, "x-aboyeur-boot": one.appliance.boot, "counter": 0}
    happened = [event for _, event, _, _ in wire.arrived if not event["type"].startswith("cookwala.device")]
    assert happened == expected
    assert one.said() == []
    for topic, event, _, _ in wire.arrived:
        assert topic == f"cookwala/home/from/{DEVICE}/{event['type'].split('.')[1]}/{event['subject']}"


@pytest.mark.parametrize("loses_confirmation", [False, True])
@pytest.mark.parametrize("breaks_after", [0, 1, 2, 5, 9])
async def test_nothing_is_lost_and_order_is_kept_when_the_connection_breaks(
    bench: Benches, breaks_after: int, loses_confirmation: bool
) -> None:
    one, wire = bench(), Wire()
    status = await one.start("salata-baladi")
    one.cook(status.id)
    expected = [event["id"] for event in one.said()]
    wire.breaks_after, wire.loses_confirmation = breaks_after, loses_confirmation
    async with linked(one, wire):
        await until(lambda: one.said() == [])
    assert wire.connections == 2
    arrived = [event["id"] for _, event, _, _ in wire.arrived if "device" not in event["type"]]
    once = list(dict.fromkeys(arrived))
    assert once == expected
    assert len(arrived) <= len(expected) + 1
    assert len(wire.of("cookwala.device.online")) >= 1


async def test_alarms_in_force_are_said_again_after_each_connect_as_new_events(
    bench: Benches, samples: dict[str, Any]
) -> None:
    one, wire = bench(), Wire()
    status = await one.start("shakshuka")
    one.turn_to_step(status.id, "n5")
    one.appliance.stick_heater()
    one.turn_until(status.id, "needs_human")
    for number in (1, 2, 3):
        async with linked(one, wire) as link:
            await until(lambda: link.connections == 1 and one.said() == [])
        # Once when it happened, and once more for every connection.
        assert len(wire.of("cookwala.safety.limit_fired")) == number + 1
        assert len(wire.of("cookwala.device.fault")) == number + 1
    assert len({event["id"] for event in wire.of("cookwala.safety.limit_fired")}) == 4
    one.appliance.press_stop()
    one.turn(1)
    async with linked(one, wire):
        await until(lambda: one.said() == [])
    assert len(wire.of("cookwala.safety.limit_fired")) == 4
    assert len(wire.of("cookwala.safety.cleared")) == 1


async def test_what_happens_while_connected_is_said_at_once(bench: Benches) -> None:
    one, wire = bench(), Wire()
    async with linked(one, wire):
        await until(lambda: bool(wire.of("cookwala.device.heartbeat")))
        await one.start("koshari")
        await until(lambda: bool(wire.of("cookwala.execution.accepted")))
        one.appliance.press_stop()
        await until(lambda: bool(wire.of("cookwala.execution.state_changed")))
    assert wire.connections == 1


async def test_heartbeats_come_at_their_interval_and_count_on_over_connections(bench: Benches) -> None:
    one, wire = bench(), Wire()
    wire.breaks_after = 4
    async with linked(one, wire, 1.0, HurriedClock()):
        await until(lambda: len(wire.of("cookwala.device.heartbeat")) >= 8)
    counters = [event["data"]["counter"] for event in wire.of("cookwala.device.heartbeat")]
    assert counters == sorted(set(counters))


@pytest.mark.mosquitto
@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_real_broker_may_stop_or_die_mid_cook_and_hears_every_event(
    bench: Benches, mosquitto_factory: Callable[..., Mosquitto], end: str
) -> None:
    broker = mosquitto_factory(devices=(DEVICE,), readers=())
    clock = SystemClock()

    def transport(user: str) -> MqttTransport:
        return MqttTransport(MqttSettings(broker.host, broker.port, user, broker.secret(user), user), clock)

    one = bench()
    heard: list[str] = []

    async def listen() -> None:
        while True:
            try:
                async with transport("hub").connect() as session:
                    await session.subscribe([("cookwala/home/from/#", 1)])
                    while True:
                        batch = await session.batch(100)
                        heard.extend(json.loads(delivery.payload)["id"] for delivery in batch)
                        await session.acknowledge(batch)
            except TransportLost:
                await anyio.sleep(0.05)

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        async with linked(one, transport(DEVICE)) as link:
            await until(lambda: link.connections == 1)
            status = await one.start("koshari")
            one.turn(10)
            said = [event["id"] for event in one.said()]
            await until(lambda: one.said() == [])
            broker.stop() if end == "stop" else broker.kill()
            one.turn_until(status.id, "needs_human")
            missed = [event["id"] for event in one.said()]
            assert missed
            broker.start()
            await until(lambda: one.said() == [])
            await until(lambda: set(said + missed) <= set(heard))
        group.cancel_scope.cancel()
    once = [event for event in dict.fromkeys(heard) if event in said + missed]
    assert once == said + missed
