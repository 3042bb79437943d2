"""The broker inside the process: who gets in, what they cannot do, and that it ends."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest

import events.embedded_broker
from events.access_rights import Rights
from events.embedded_broker import EmbeddedBroker
from events.mqtt import MqttSession, MqttSettings, MqttTransport
from events.seams import SystemClock
from events.transport import Delivery, TransportLost, TransportRefused
from tests.events.connect_bytes import connect_body, field, packet

FROM_OVEN = "cookwala/home/from/oven/execution/e-1"
FROM_ALL = [("cookwala/home/from/#", 1)]
RIGHTS = Rights("home", devices={"oven", "hob"}, readers={"display"})
WELCOME = b"\x20\x02"


def right(user: str, password: bytes) -> bool:
    return password == secret(user)


def secret(user: str) -> bytes:
    return b"secret-of-" + user.encode()


def embedded(port: int = 0) -> EmbeddedBroker:
    return EmbeddedBroker("127.0.0.1", port, right, RIGHTS)


def transport(broker: EmbeddedBroker, user: str) -> MqttTransport:
    settings = MqttSettings("127.0.0.1", broker.port, user, secret(user).decode(), user, "3.1.1")
    return MqttTransport(settings, SystemClock())


async def take(session: MqttSession, count: int) -> list[Delivery]:
    taken: list[Delivery] = []
    with anyio.fail_after(5):
        while len(taken) < count:
            taken += await session.batch(count - len(taken))
    return taken


@asynccontextmanager
async def raw(
    broker: EmbeddedBroker, first: bytes
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter], None]:
    """A connection that has said `first`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(first)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def heard(reader: asyncio.StreamReader, seconds: float) -> tuple[bytes, bool]:
    """What comes within `seconds`, and whether the other side hung up."""
    came = b""
    with anyio.move_on_after(seconds):
        try:
            while data := await reader.read(65536):
                came += data
        except ConnectionError:
            pass
        return came, True
    return came, False


async def assert_alive(broker: EmbeddedBroker, hub: MqttSession) -> None:
    async with transport(broker, "oven").connect() as oven:
        await oven.publish(FROM_OVEN, b"alive?", qos=1)
        (came,) = await take(hub, 1)
    await hub.acknowledge([came])
    assert came.payload == b"alive?"


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "",
        "192.168.1.2",
        "example.org",
        "localhost.example.org",
        "::ffff:127.0.0.1",
        "*",
        "127",
    ],
)
def test_it_listens_on_loopback_only(host: str) -> None:
    with pytest.raises(ValueError, match="loopback only"):
        EmbeddedBroker(host, 0, right, RIGHTS)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
async def test_loopback_by_any_of_its_names_is_fine(host: str) -> None:
    async with EmbeddedBroker(host, 0, right, RIGHTS).running() as broker:
        assert broker.host.startswith("127.")
        assert broker.port > 0
    with pytest.raises(RuntimeError):
        assert broker.port


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (connect_body("hub"), b"\x20\x02\x00\x05"),
        (connect_body("hub", "hub"), b"\x20\x02\x00\x05"),
        (connect_body("hub", "hub", b"wrong"), b"\x20\x02\x00\x05"),
        (connect_body("hub", "hub", b"wrong", clean=False), b"\x20\x02\x00\x05"),
        (connect_body("hub", "oven", secret("oven")), b"\x20\x02\x00\x02"),
        (connect_body("", "oven", secret("oven")), b"\x20\x02\x00\x02"),
        (connect_body("guest", "guest", secret("guest")), b"\x20\x02\x00\x05"),
        (connect_body("hub", "hub", secret("hub"), level=5), b"\x20\x03\x00\x84\x00"),
        (
            connect_body("oven", "oven", secret("oven"), will=("cookwala/home/safety/x", b"")),
            b"\x20\x02\x00\x05",
        ),
    ],
)
async def test_who_may_not_come_in_is_told_so_and_disturbs_nobody(body: bytes, answer: bytes) -> None:
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)
        async with raw(broker, packet(0x10, body)) as (reader, _):
            assert await heard(reader, 3) == (answer, True)
        await assert_alive(broker, hub)


@pytest.mark.parametrize(
    "first",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x10\xff\xff\xff\xff\x7f",
        b"\x10\xff\xff\xff\x7f",
        b"\x30\x00",
        packet(0x10, b"\x00\x04MQTT"),
    ],
)
async def test_what_is_no_connect_is_hung_up_on(first: bytes) -> None:
    async with embedded().running() as broker, raw(broker, first) as (reader, _):
        assert await heard(reader, 3) == (b"", True)


async def test_a_connection_that_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events.embedded_broker, "CONNECT_TIMEOUT_S", 0.2)
    async with embedded().running() as broker, raw(broker, b"\x10") as (reader, _):
        assert await heard(reader, 3) == (b"", True)


async def test_more_connections_than_allowed_are_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events.embedded_broker, "MOST_CONNECTIONS", 2)
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)
        async with raw(broker, b""), raw(broker, b"") as (reader, _):
            assert await heard(reader, 3) == (b"", True)
        await anyio.sleep(0.05)
        await assert_alive(broker, hub)


async def test_a_will_within_ones_rights_is_published_when_its_client_vanishes() -> None:
    body = connect_body("oven", "oven", secret("oven"), will=(FROM_OVEN, b"gone"))
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)
        async with raw(broker, packet(0x10, body)) as (reader, _):
            assert (await reader.readexactly(4))[:2] == WELCOME
        (came,) = await take(hub, 1)
    assert came.payload == b"gone"


@pytest.mark.parametrize("goodbye", [b"\xe0\x00", b""])
async def test_what_a_client_said_just_before_it_hung_up_arrives(goodbye: bytes) -> None:
    burst = b"".join(
        packet(0x32, field(FROM_OVEN.encode()) + (n + 1).to_bytes(2, "big") + b"%d" % n) for n in range(300)
    )
    body = connect_body("oven", "oven", secret("oven"))
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)
        async with raw(broker, packet(0x10, body) + burst + goodbye) as (reader, writer):
            await reader.readexactly(4 + 300 * 4)  # the confirmations
            writer.write_eof()
            came = await take(hub, 300)
    assert sorted(int(one.payload) for one in came) == list(range(300))


async def test_kept_messages_are_not_handed_to_whoever_connects() -> None:
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)
        async with transport(broker, "oven").connect() as oven:
            await oven.publish(FROM_OVEN, b"for the hub", qos=1, retain=True)
            await take(hub, 1)
        body = connect_body("hob", "hob", secret("hob"))
        async with raw(broker, packet(0x10, body)) as (reader, _):
            came, hung_up = await heard(reader, 0.3)
        assert (len(came), came[:2], hung_up) == (4, WELCOME, False)


async def test_a_client_that_falls_silent_is_disconnected() -> None:
    body = connect_body("oven", "oven", secret("oven"), keepalive_s=1)
    begun = time.monotonic()
    async with embedded().running() as broker, raw(broker, packet(0x10, body)) as (reader, _):
        came, hung_up = await heard(reader, 5)
    assert (came[:2], hung_up) == (WELCOME, True)
    assert 1.4 < time.monotonic() - begun < 4


async def test_a_packet_beyond_the_size_limit_ends_its_connection_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    body = connect_body("oven", "oven", secret("oven"))
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)
        async with raw(broker, packet(0x10, body)) as (reader, writer):
            await reader.readexactly(4)
            writer.write(packet(0x30, field(FROM_OVEN.encode()) + bytes(1024 * 1024)))
            assert (await heard(reader, 3))[1]
        await assert_alive(broker, hub)
    assert "reserved packet" not in caplog.text, "its content was read as packets"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_client_that_does_not_read_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(events.embedded_broker, "STALL_TIMEOUT_S", 0.3)
    subscribe = packet(0x82, b"\x00\x01" + field(b"cookwala/home/to/oven/#") + b"\x00")
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        body = connect_body("oven", "oven", secret("oven"))
        async with raw(broker, packet(0x10, body) + subscribe) as (reader, writer):
            await reader.readexactly(9)
            writer.transport.pause_reading()  # type: ignore[attr-defined]  # every TCP transport has it
            for _ in range(100):
                await hub.publish("cookwala/home/to/oven/x/1", bytes(200 * 1024), qos=1)
            with anyio.fail_after(10):
                while "oven does not read" not in caplog.text:
                    await anyio.sleep(0.01)
            writer.transport.resume_reading()  # type: ignore[attr-defined]  # every TCP transport has it
            assert (await heard(reader, 5))[1]


async def test_a_hub_that_comes_back_still_has_its_subscriptions() -> None:
    async with embedded().running() as broker:
        async with transport(broker, "hub").connect() as hub:
            await hub.subscribe(FROM_ALL)
        async with transport(broker, "oven").connect() as oven:
            await oven.publish(FROM_OVEN, b"meanwhile", qos=1)
            await anyio.sleep(0.05)
        async with transport(broker, "hub").connect() as hub:
            assert [one.payload for one in await take(hub, 1)] == [b"meanwhile"]


async def test_the_right_password_takes_a_session_over() -> None:
    async with embedded().running() as broker:
        hub = transport(broker, "hub")
        async with hub.connect() as first:
            await first.subscribe(FROM_ALL)
            async with hub.connect() as second:
                with anyio.fail_after(5), pytest.raises(TransportLost):
                    await first.batch(1)
                await second.subscribe(FROM_ALL)
                await assert_alive(broker, second)


async def test_a_filter_that_reaches_too_far_is_refused() -> None:
    async with embedded().running() as broker, transport(broker, "oven").connect() as oven:
        for filter_ in ("#", "cookwala/+/from/#", "$SYS/#", "cookwala/home/to/hob/#"):
            with pytest.raises(TransportRefused):
                await oven.subscribe([(filter_, 1)])
        await oven.subscribe([("cookwala/home/to/oven/#", 1)])


async def test_it_stops_in_bounded_time_with_clients_still_there_and_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with AsyncExitStack() as clients:
        async with embedded().running() as broker:
            hub = await clients.enter_async_context(transport(broker, "hub").connect())
            await hub.subscribe(FROM_ALL)
            await clients.enter_async_context(raw(broker, b"\x10"))
            await clients.enter_async_context(raw(broker, b""))
            await anyio.sleep(0.05)
            begun = time.monotonic()
        assert time.monotonic() - begun < 3
        with anyio.fail_after(2), pytest.raises(TransportLost):
            await hub.batch(1)
    await anyio.sleep(0.05)
    assert asyncio.all_tasks() <= before


async def test_it_starts_again_on_the_same_port() -> None:
    broker = embedded()
    async with broker.running():
        port = broker.port
        with pytest.raises(RuntimeError):
            async with broker.running():
                pass
        with pytest.raises(OSError):
            async with embedded(port).running():
                pass
    async with embedded(port).running() as again:
        assert again.port == port
        async with transport(again, "hub").connect() as hub:
            await hub.subscribe(FROM_ALL)
            await assert_alive(again, hub)


async def test_no_message_is_lost_to_others_coming_and_going(caplog: pytest.LogCaptureFixture) -> None:
    count = 150
    async with embedded().running() as broker, transport(broker, "hub").connect() as hub:
        await hub.subscribe(FROM_ALL)

        async def come_and_go(number: int) -> None:
            while True:
                async with transport(broker, "display").connect() as display:
                    await display.subscribe([(f"cookwala/home/execution/{number}-{n}", 1) for n in range(20)])

        async def speak() -> None:
            async with transport(broker, "oven").connect() as oven:
                for number in range(count):
                    await oven.publish(FROM_OVEN, b"%d" % number, qos=1)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(come_and_go, 1)
            tasks.start_soon(speak)
            taken: list[Delivery] = []
            with anyio.move_on_after(15):
                while len(taken) < count:
                    taken += await hub.batch(100)
            tasks.cancel_scope.cancel()
    assert [one.payload for one in taken] == [b"%d" % number for number in range(count)]
    assert "changed size" not in caplog.text
