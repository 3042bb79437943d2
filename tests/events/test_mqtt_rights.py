"""The same table of rights, held against every broker we set up."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from events import topics
from events.access_rights import Rights
from events.embedded_broker import EmbeddedBroker
from events.mqtt import MqttSession, MqttSettings, MqttTransport
from events.seams import SystemClock
from events.transport import TransportRefused
from tests.mosquitto_process import Mosquitto

RIGHTS = Rights("home", devices={"oven", "hob"}, readers={"display"})


@dataclass(frozen=True)
class Case:
    """`writer` publishes on `topic`; does it come to `reader`, who subscribes to `filter_`?"""

    writer: str
    topic: str
    reader: str
    filter_: str
    arrives: bool


CASES = [
    Case("oven", "cookwala/home/from/oven/execution/e-1", "hub", "cookwala/home/from/#", True),
    Case("oven", "cookwala/home/from/hob/execution/e-1", "hub", "cookwala/home/from/#", False),
    Case("oven", "cookwala/home/to/hob/grant/1", "hob", "cookwala/home/to/hob/#", False),
    Case("oven", "cookwala/home/to/hub/marker/n", "hub", "cookwala/home/to/hub/#", False),
    Case("oven", "cookwala/home/execution/e-1", "display", "cookwala/home/+/+", False),
    Case("oven", "cookwala/other/from/oven/execution/e-1", "hub", "cookwala/+/from/#", False),
    Case("oven", "cookwala/home/from/oven", "hob", "cookwala/home/+/+", False),
    Case("oven", "cookwala/home/from/oven/execution/e-1", "hob", "#", False),
    Case("oven", "cookwala/home/from/oven/execution/e-1", "hob", "cookwala/+/from/#", False),
    Case("oven", "cookwala/home/from/oven/execution/e-1", "hob", "cookwala/home/from/oven/#", False),
    Case("oven", "cookwala/home/from/oven/execution/e-1", "display", "cookwala/home/#", False),
    Case("hub", "cookwala/home/to/oven/grant/1", "oven", "cookwala/home/to/oven/#", True),
    Case("hub", "cookwala/home/to/oven/grant/1", "hob", "cookwala/home/to/#", False),
    Case("hub", "cookwala/home/to/oven/grant/1", "hob", "cookwala/home/to/oven/#", False),
    Case("hub", "cookwala/home/to/oven/grant/1", "display", "#", False),
    Case("hub", "cookwala/home/to/hub/marker/n", "hub", "cookwala/home/to/hub/#", True),
    Case("hub", "cookwala/home/to/hub/marker/n", "oven", "cookwala/home/to/hub/#", False),
    Case("hub", "cookwala/home/execution/e-1", "display", "cookwala/home/+/+", True),
    Case("hub", "cookwala/home/execution/e-1", "oven", "cookwala/home/execution/+", True),
    Case("hub", "cookwala/other/execution/e-1", "display", "cookwala/other/+/+", False),
    Case("hub", "cookwala/home/from/oven/execution/e-1", "hub", "cookwala/home/from/#", False),
    Case("display", "cookwala/home/from/display/a/b", "hub", "cookwala/home/from/#", False),
    Case("display", "cookwala/home/execution/e-1", "oven", "cookwala/home/+/+", False),
]


@asynccontextmanager
async def embedded() -> AsyncGenerator[int, None]:
    def right(user: str, password: bytes) -> bool:
        return password.decode() == Mosquitto.secret(user)

    async with EmbeddedBroker("127.0.0.1", 0, right, RIGHTS).running() as broker:
        yield broker.port


def session_of(port: int, user: str) -> MqttTransport:
    settings = MqttSettings("127.0.0.1", port, user, Mosquitto.secret(user), user, "3.1.1")
    return MqttTransport(settings, SystemClock())


async def subscribe_if_possible(session: MqttSession, filter_: str) -> bool:
    try:
        await session.subscribe([(filter_, 1)])
    except TransportRefused:
        return False
    return True


async def hold_against(port: int, case: Case) -> None:
    """Publish what the case says, then a message that surely arrives, and look what came before it."""
    writer, reader, hub = (session_of(port, user) for user in (case.writer, case.reader, "hub"))
    async with reader.connect() as reading:
        subscribed = await subscribe_if_possible(reading, case.filter_)
        assert subscribed or not case.arrives
        end = topics.marker("home", "end") if case.reader == "hub" else topics.public("home", "e", "end")
        await reading.subscribe([(end, 1)])
        if case.writer == case.reader:
            await reading.publish(case.topic, b"said", qos=1)
        else:
            async with writer.connect() as writing:
                await writing.publish(case.topic, b"said", qos=1)
                await anyio.sleep(0.02)  # amqtt loses what is sent in the instant before hanging up
        if case.reader == "hub":
            await reading.publish(end, b"end", qos=1)
            came = await until_end(reading)
        else:
            async with hub.connect() as ending:
                await ending.publish(end, b"end", qos=1)
                came = await until_end(reading)
    assert came == ([(case.topic, b"said")] if case.arrives else [])


async def until_end(session: MqttSession) -> list[tuple[str, bytes]]:
    came: list[tuple[str, bytes]] = []
    with anyio.fail_after(5):
        while not came or came[-1][1] != b"end":
            came += [(one.topic, one.payload) for one in await session.batch(1)]
    return came[:-1]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_table_says_what_the_rights_say(case: Case) -> None:
    allowed = RIGHTS.may_publish(case.writer, case.topic) and RIGHTS.may_subscribe(case.reader, case.filter_)
    assert allowed is case.arrives


@pytest.mark.mosquitto
async def test_mosquitto_holds_the_rights(mosquitto_factory: Callable[[], Mosquitto]) -> None:
    for case in CASES:  # each with a broker of its own: subscriptions outlive connections
        broker = mosquitto_factory()
        await hold_against(broker.port, case)
        broker.kill()


async def test_the_embedded_broker_holds_the_rights() -> None:
    for case in CASES:
        async with embedded() as port:
            await hold_against(port, case)
