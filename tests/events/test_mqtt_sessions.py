"""Connections to a real Mosquitto: what is lost, what comes again, and when."""

import asyncio
import logging
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

import aiomqtt
import anyio
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

import events.arrivals
import events.mqtt
from events.mosquitto import TlsFiles
from events.mqtt import MqttSession, MqttSettings, MqttTransport
from events.seams import SystemClock
from events.transport import Delivery, TransportLost, TransportRefused
from tests.events.cable import Cable
from tests.mosquitto_process import Mosquitto

pytestmark = pytest.mark.mosquitto

Protocol = Literal["3.1.1", "5"]
FROM_OVEN = "cookwala/home/from/oven/execution/e-1"
FROM_ALL = [("cookwala/home/from/#", 1)]


@pytest.fixture(params=["3.1.1", "5"])
def protocol(request: pytest.FixtureRequest) -> Protocol:
    version: Protocol = request.param
    return version


def transport(
    broker: Mosquitto, user: str, protocol: Protocol, *, port: int | None = None, answer_timeout_s: float = 10
) -> MqttTransport:
    settings = MqttSettings(
        broker.host, port or broker.port, user, broker.secret(user), user, protocol, keepalive_s=5
    )
    return MqttTransport(settings, SystemClock(), answer_timeout_s=answer_timeout_s)


async def take(session: MqttSession, count: int) -> list[Delivery]:
    """Exactly `count` deliveries, or a failure after ten seconds."""
    taken: list[Delivery] = []
    with anyio.fail_after(10):
        while len(taken) < count:
            taken += await session.batch(count - len(taken))
    return taken


async def silence(session: MqttSession, seconds: float = 0.3) -> list[Delivery]:
    """What arrives although nothing should."""
    with anyio.move_on_after(seconds):
        return await session.batch(100)
    return []


async def say(broker: Mosquitto, protocol: Protocol, count: int, *, user: str = "oven") -> list[bytes]:
    payloads = [b"%d" % number for number in range(count)]
    async with transport(broker, user, protocol).connect() as session:
        for payload in payloads:
            await session.publish(FROM_OVEN, payload, qos=1)
    return payloads


async def test_what_was_not_acknowledged_comes_again_after_the_connection_broke(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    async with Cable(mosquitto.port).plugged() as cable:
        hub = transport(mosquitto, "hub", protocol, port=cable.port)
        async with hub.connect() as session:
            await session.subscribe(FROM_ALL)
            said = await say(mosquitto, protocol, 30)
            first = await take(session, 20)
            await session.acknowledge(first[:10])
            await session.publish("cookwala/home/execution/e-1", b"", qos=1)  # the confirmations have arrived
            cable.cut()
            with pytest.raises(TransportLost):
                await take(session, 100)
        async with hub.connect() as session:
            again = await take(session, 20)
            await session.acknowledge(again)
            assert await silence(session) == []
    assert [delivery.payload for delivery in first[:10] + again] == said


async def test_an_acknowledgement_dies_with_its_connection(mosquitto: Mosquitto, protocol: Protocol) -> None:
    async with Cable(mosquitto.port).plugged() as cable:
        hub = transport(mosquitto, "hub", protocol, port=cable.port)
        async with hub.connect() as first:
            await first.subscribe(FROM_ALL)
            said = await say(mosquitto, protocol, 5)
            held = await take(first, 5)
            cable.cut()
            with pytest.raises(TransportLost):
                await first.batch(1)
            with pytest.raises(TransportLost):
                await first.acknowledge(held)
        async with hub.connect() as second:
            again = await take(second, 5)
            assert again[0].receipt & 0xFFFF == held[0].receipt & 0xFFFF, "the packet ids are the same ones"
            for session in (first, second):
                with pytest.raises(TransportLost):
                    await session.acknowledge(held)
            assert second.generation == first.generation + 1
        async with hub.connect() as third:
            assert [delivery.payload for delivery in await take(third, 5)] == said


async def test_confirming_twice_confirms_nothing_else(
    mosquitto: Mosquitto, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packet id is free again once confirmed: a second confirmation could meet another message."""
    hub = transport(mosquitto, "hub", protocol)
    async with hub.connect() as session:
        sent: list[int] = []
        send = session._paho.ack

        def counted(mid: int, qos: int) -> MQTTErrorCode:
            sent.append(mid)
            return send(mid, qos)

        monkeypatch.setattr(session._paho, "ack", counted)
        await session.subscribe(FROM_ALL)
        await say(mosquitto, protocol, 2)
        one, other = await take(session, 2)
        await session.acknowledge([one])
        await session.acknowledge([one, one])
        assert len(sent) == 1
    async with hub.connect() as session:
        assert [delivery.payload for delivery in await take(session, 1)] == [other.payload]


async def test_a_killed_broker_keeps_what_it_confirmed(mosquitto: Mosquitto, protocol: Protocol) -> None:
    async with transport(mosquitto, "hub", protocol).connect() as session:
        await session.subscribe(FROM_ALL)
    said = await say(mosquitto, protocol, 200)
    await anyio.sleep(0.3)  # it saves just after it confirms; see the next test for the moment between
    mosquitto.kill()
    mosquitto.start()
    async with transport(mosquitto, "hub", protocol).connect() as session:
        assert [delivery.payload for delivery in await take(session, 200)] == said
        assert await silence(session) == []


async def test_a_broker_killed_while_it_confirms_loses_at_most_the_last_confirmation(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    """Mosquitto answers first and saves in the same turn; the hub heals the gap by reading its devices."""
    async with transport(mosquitto, "hub", protocol).connect() as session:
        await session.subscribe(FROM_ALL)
    confirmed: list[bytes] = []
    async with transport(mosquitto, "oven", protocol).connect() as oven:
        with pytest.raises(TransportLost):
            for number in range(10_000):
                payload = b"%d" % number
                await oven.publish(FROM_OVEN, payload, qos=1)
                confirmed.append(payload)
                if number == 60:
                    asyncio.get_running_loop().call_later(0.03, mosquitto.kill)
    mosquitto.start()
    async with transport(mosquitto, "hub", protocol).connect() as session:
        kept = [delivery.payload for delivery in await take(session, len(confirmed) - 1)]
    assert len(confirmed) > 60
    assert kept == confirmed[:-1]


async def test_a_restarted_broker_is_found_again_with_its_subscriptions(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    hub = transport(mosquitto, "hub", protocol)
    async with hub.connect() as session:
        await session.subscribe(FROM_ALL)
        mosquitto.stop()
        with anyio.fail_after(5), pytest.raises(TransportLost):
            await session.batch(1)
    with pytest.raises(TransportLost):
        async with hub.connect():
            pass
    mosquitto.start()
    async with hub.connect() as session:
        await session.subscribe(FROM_ALL)
        said = await say(mosquitto, protocol, 3)
        assert [delivery.payload for delivery in await take(session, 3)] == said


async def test_a_kept_message_says_so_and_a_fresh_one_does_not(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    async with transport(mosquitto, "oven", protocol).connect() as oven:
        await oven.publish(FROM_OVEN, b"kept", qos=1, retain=True)
        async with transport(mosquitto, "hub", protocol).connect() as session:
            await session.subscribe(FROM_ALL)
            kept = await take(session, 1)
            await oven.publish(FROM_OVEN, b"fresh", qos=1, retain=True)
            fresh = await take(session, 1)
    assert [(delivery.payload, delivery.retained) for delivery in kept + fresh] == [
        (b"kept", True),
        (b"fresh", False),
    ]


async def test_a_message_through_two_subscriptions_is_passed_on_as_often_as_it_comes(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    hub = transport(mosquitto, "hub", protocol)
    async with hub.connect() as session:
        await session.subscribe([*FROM_ALL, ("cookwala/home/from/oven/#", 1), (FROM_OVEN, 1)])
        await say(mosquitto, protocol, 1)
        came = await take(session, 1)
        came += await silence(session)
        assert {delivery.payload for delivery in came} == {b"0"}
        assert len({delivery.receipt for delivery in came}) == len(came)
        await session.acknowledge(came)
    async with hub.connect() as session:
        assert await silence(session) == []


async def test_a_flood_at_qos_0_stays_bounded_and_costs_no_qos_1(
    mosquitto: Mosquitto, protocol: Protocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events.arrivals, "MOST_QOS0_QUEUED", 500)
    hub = transport(mosquitto, "hub", protocol)
    async with hub.connect() as session:
        await session.subscribe(FROM_ALL)
        async with transport(mosquitto, "oven", protocol).connect() as oven:
            for number in range(3_000):
                qos = 1 if number % 100 == 0 else 0
                await oven.publish(FROM_OVEN, b"%d" % number, qos=qos)
            await oven.publish(FROM_OVEN, b"last", qos=1)
        with anyio.fail_after(5):
            while hub.dropped < 2_970 - 500:
                await anyio.sleep(0.01)
        came = await take(session, 531)
        assert await silence(session, 0.1) == []
    assert [int(delivery.payload) for delivery in came[:-1] if delivery.qos] == list(range(0, 3_000, 100))
    assert [int(delivery.payload) for delivery in came if not delivery.qos] == [
        number for number in range(3_000) if number % 100
    ][-500:]
    assert came[-1].payload == b"last"


async def test_a_broker_that_falls_silent_ends_the_connection_in_bounded_time(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    async with transport(mosquitto, "hub", protocol, answer_timeout_s=0.3).connect() as session:
        await session.subscribe(FROM_ALL)
        mosquitto.pause()
        async with anyio.create_task_group() as tasks:

            async def reading() -> None:
                with pytest.raises(TransportLost):
                    await session.batch(1)

            tasks.start_soon(reading)
            with anyio.fail_after(2), pytest.raises(TransportLost, match="no answer"):
                await session.publish("cookwala/home/execution/e-1", b"", qos=1)
        with pytest.raises(TransportLost):
            await session.publish("cookwala/home/execution/e-1", b"", qos=0)
        mosquitto.resume()


async def test_a_waiting_publication_learns_at_once_that_the_connection_broke(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    async with (
        Cable(mosquitto.port).plugged() as cable,
        transport(mosquitto, "hub", protocol, port=cable.port).connect() as session,
    ):
        cable.hold()
        asyncio.get_running_loop().call_later(0.1, cable.cut)
        with anyio.fail_after(2), pytest.raises(TransportLost):
            await session.publish("cookwala/home/execution/e-1", b"", qos=1)


async def test_a_wrong_password_is_a_refusal_and_stays_out_of_the_log(
    mosquitto: Mosquitto, protocol: Protocol, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = MqttSettings(mosquitto.host, mosquitto.port, "hub", "wrong-secret", "hub", protocol)
    with pytest.raises(TransportRefused) as refused:
        async with MqttTransport(settings, SystemClock()).connect():
            pass
    async with transport(mosquitto, "hub", protocol).connect() as session:
        await session.subscribe(FROM_ALL)
    assert "secret" not in caplog.text + repr(settings) + str(refused.value)


@pytest.mark.parametrize("intruder", ["oven", "hub"])
async def test_nobody_pushes_the_hub_out_without_its_password(
    mosquitto: Mosquitto, protocol: Protocol, intruder: str
) -> None:
    async with transport(mosquitto, "hub", protocol).connect() as session:
        await session.subscribe(FROM_ALL)
        settings = MqttSettings(
            mosquitto.host, mosquitto.port, intruder, mosquitto.secret("oven"), "hub", protocol
        )
        try:
            async with MqttTransport(settings, SystemClock()).connect() as other:
                assert intruder == "oven"
                await other.publish(FROM_OVEN, b"as myself", qos=1)
        except TransportRefused:
            assert intruder == "hub"
        said = await say(mosquitto, protocol, 1)
        assert (await take(session, 1 + (intruder == "oven")))[-1].payload == said[0]


async def test_a_second_hub_with_the_password_ends_the_first(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    hub = transport(mosquitto, "hub", protocol)
    async with hub.connect() as first, hub.connect():
        with anyio.fail_after(5), pytest.raises(TransportLost):
            await first.batch(1)


async def test_mqtt_5_says_when_a_publication_is_not_allowed(mosquitto: Mosquitto) -> None:
    async with transport(mosquitto, "oven", "5").connect() as oven:
        with pytest.raises(TransportRefused):
            await oven.publish("cookwala/home/from/hob/execution/e-1", b"", qos=1)
        await oven.publish(FROM_OVEN, b"", qos=1)


async def test_mqtt_5_carries_attributes(mosquitto: Mosquitto) -> None:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho leaves it untyped
    properties.UserProperty = [("specversion", "1.0"), ("id", "1"), ("id", "2"), ("source", "ä")]
    properties.ContentType = "application/json"
    async with transport(mosquitto, "hub", "5").connect() as session:
        await session.subscribe(FROM_ALL)
        async with aiomqtt.Client(
            mosquitto.host,
            mosquitto.port,
            username="oven",
            password=mosquitto.secret("oven"),
            protocol=aiomqtt.ProtocolVersion.V5,
        ) as oven:
            await oven.publish(FROM_OVEN, b"{}", qos=1, properties=properties)
            await oven.publish(FROM_OVEN, b"{}", qos=1)
        binary, plain = await take(session, 2)
    assert binary.attributes == {
        "specversion": "1.0",
        "id": "1",
        "id#2": "2",
        "source": "ä",
        "datacontenttype": "application/json",
    }
    assert plain.attributes == {}


async def test_a_message_beyond_the_size_limit_reaches_nobody_and_breaks_nothing(
    mosquitto: Mosquitto, protocol: Protocol
) -> None:
    async with transport(mosquitto, "hub", protocol).connect() as session:
        await session.subscribe(FROM_ALL)
        async with transport(mosquitto, "oven", protocol).connect() as oven:
            try:
                await oven.publish(FROM_OVEN, bytes(256 * 1024 + 1), qos=1)
            except TransportLost:  # refused or hung up on, as the version has it
                pass
        async with transport(mosquitto, "oven", protocol).connect() as oven:
            await oven.publish(FROM_OVEN, bytes(256 * 1024), qos=1)
        (came,) = await take(session, 1)
    assert came.payload == bytes(256 * 1024)


async def test_a_server_that_never_answers_is_given_up_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events.mqtt, "CONNECT_TIMEOUT_S", 0.3)
    gone = asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        gone.set()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        settings = MqttSettings("127.0.0.1", server.sockets[0].getsockname()[1], "hub", "s", "hub", "5")
        begun = time.monotonic()
        with pytest.raises(TransportLost):
            async with MqttTransport(settings, SystemClock()).connect():
                pass
        assert time.monotonic() - begun < 3
        with anyio.fail_after(2):
            await gone.wait()


async def test_giving_up_while_connecting_leaves_no_connection_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events.mqtt, "CONNECT_TIMEOUT_S", 0.5)
    come, gone = asyncio.Event(), asyncio.Event()

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        come.set()
        while await reader.read(1000):
            pass
        gone.set()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        settings = MqttSettings("127.0.0.1", server.sockets[0].getsockname()[1], "hub", "s", "hub", "3.1.1")

        async def connecting() -> None:
            async with MqttTransport(settings, SystemClock()).connect():
                raise AssertionError("the server never welcomed us")

        trying = asyncio.create_task(connecting())
        with anyio.fail_after(3):
            await come.wait()
            trying.cancel()
            with pytest.raises(asyncio.CancelledError):
                await trying
            await gone.wait()


async def test_hundreds_of_publications_at_once_all_arrive(mosquitto: Mosquitto, protocol: Protocol) -> None:
    async with transport(mosquitto, "hub", protocol).connect() as session:
        await session.subscribe(FROM_ALL)
        async with (
            transport(mosquitto, "oven", protocol).connect() as oven,
            anyio.create_task_group() as tasks,
        ):
            for number in range(200):
                tasks.start_soon(partial(oven.publish, FROM_OVEN, b"%d" % number, qos=1))
        came: list[Delivery] = []
        while len(came) < 200:
            came += await take(session, 50)
            await session.acknowledge(came[-50:])
    assert sorted(int(delivery.payload) for delivery in came) == list(range(200))


async def test_over_tls_only_a_broker_with_the_known_certificate_is_talked_to(
    mosquitto_factory: Callable[..., Mosquitto], tmp_path: Path, protocol: Protocol
) -> None:
    certificate = self_signed(tmp_path)
    broker = mosquitto_factory(tls=certificate)
    for known, welcome in ((ssl.create_default_context(cafile=certificate.certificate), True), (None, False)):
        settings = MqttSettings(
            broker.host,
            broker.port,
            "hub",
            broker.secret("hub"),
            "hub",
            protocol,
            tls=known or ssl.create_default_context(),
        )
        if not welcome:
            with pytest.raises(TransportLost):
                async with MqttTransport(settings, SystemClock()).connect():
                    pass
            continue
        async with MqttTransport(settings, SystemClock()).connect() as session:
            await session.subscribe([("cookwala/home/to/hub/#", 1)])
            for number in range(20):
                await session.publish("cookwala/home/to/hub/marker/n", bytes(50_000) + b"%d" % number, qos=1)
            came = await take(session, 20)
            await session.acknowledge(came)
            assert [one.payload for one in came] == [bytes(50_000) + b"%d" % n for n in range(20)]


def self_signed(directory: Path) -> TlsFiles:
    """A certificate for 127.0.0.1 that nobody but its owner trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = TlsFiles(directory / "broker.pem", directory / "broker.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


async def test_qos_2_is_not_offered(mosquitto: Mosquitto) -> None:
    async with transport(mosquitto, "hub", "5").connect() as session:
        with pytest.raises(ValueError):
            await session.subscribe([("cookwala/home/from/#", 2)])
        with pytest.raises(ValueError):
            await session.publish("cookwala/home/execution/e-1", b"", qos=2)
