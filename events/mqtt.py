"""MQTT connections for the hub: aiomqtt over paho, with acknowledgement left to whoever commits.

Each connection is a fresh client that is thrown away afterwards: a reused one keeps messages of the dead
connection, and their acknowledgements would confirm others. QoS 2 is not offered, because the client library
confirms its receipt before the application has seen the message.
"""

import asyncio
import itertools
import logging
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import aiomqtt
import anyio
import anyio.lowlevel
from aiomqtt.exceptions import MqttConnectError
from paho.mqtt.client import MQTT_CLEAN_START_FIRST_ONLY, MQTT_ERR_SUCCESS, MQTTMessage
from paho.mqtt.client import Client as PahoClient
from paho.mqtt.enums import MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from events.arrivals import Arrivals, attributes_of
from events.seams import Clock
from events.transport import Delivery, TransportLost, TransportRefused

MOST_PAYLOAD_BYTES = 256 * 1024
MOST_PACKET_BYTES = MOST_PAYLOAD_BYTES + 64 * 1024 + 1024  # a topic may take 64 KiB by itself
MOST_UNCONFIRMED_INCOMING = 1_000  # MQTT 5 tells the broker; for 3.1.1 the broker's own setting holds
MOST_UNCONFIRMED_OUTGOING = 20  # what Mosquitto takes by default
CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 10.0
BUSY_PATIENCE = 6
"""So many times the answer's timeout a broker is waited for that keeps delivering meanwhile: Mosquitto reads
one packet of each client in turn, so under load a publication stands behind our own acknowledgements."""
COMPLAIN_EVERY_S = 60.0

# server unavailable, server busy, quota exceeded, connection rate exceeded (MQTT 5, 2.4): they pass
_PASSING_REASONS = frozenset({0x88, 0x89, 0x97, 0x9F})

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MqttSettings:
    """Where the broker is and who we are there.

    Attributes:
        host: name or address of the broker.
        port: TCP port.
        username: broker user.
        password: its secret; left out of `repr`.
        client_id: MQTT client id; names the persistent session, so it stays the same over restarts.
        protocol: what the broker speaks. Configured, never guessed: an MQTT 5 client at a broker of 3.1.1
            sees nothing but a timeout.
        keepalive_s: longest silence in seconds before the connection counts as lost.
        session_expiry_s: how many seconds the broker keeps session and queued messages (MQTT 5; with 3.1.1
            the broker's own setting holds).
        tls: None for plain TCP.
    """

    host: str
    port: int
    username: str
    password: str = field(repr=False)
    client_id: str
    protocol: Literal["3.1.1", "5"] = "5"
    keepalive_s: int = 30
    session_expiry_s: int = 7 * 24 * 3600
    tls: ssl.SSLContext | None = None


class MqttTransport:
    """`Transport` over MQTT 3.1.1 or 5.

    Args:
        settings: broker and identity.
        clock: for spacing complaints in the log.
        answer_timeout_s: how long a subscription or a QoS 1 publication waits for the broker.
    """

    def __init__(
        self, settings: MqttSettings, clock: Clock, *, answer_timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._answer_timeout_s = answer_timeout_s
        self._generations = itertools.count(1)
        self._receipts = itertools.count(1)
        self._complained_at: float | None = None
        self.dropped = 0
        """QoS 0 messages dropped for want of room, over all connections."""

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator["MqttSession", None]:
        """A fresh connection to the persistent session of our client id.

        Leaving the context closes the connection and keeps the session, so what was not acknowledged comes
        back.

        Raises:
            TransportRefused: the broker refused the login.
            TransportLost: no connection within `CONNECT_TIMEOUT_S` for TCP and as long again for the answer.
        """
        client = self._fresh_client()
        session = MqttSession(self, client, next(self._generations), self._receipts, self._answer_timeout_s)
        try:
            await _open(client)
            session.begin()
            yield session
        finally:
            session.end()

    def note_drop(self) -> None:
        """Count a dropped QoS 0 message and say so now and then."""
        self.dropped += 1
        now = self._clock.monotonic()
        if self._complained_at is None or now - self._complained_at >= COMPLAIN_EVERY_S:
            self._complained_at = now
            _log.warning("QoS 0 messages arrive faster than they are read; %d dropped so far", self.dropped)

    def _fresh_client(self) -> aiomqtt.Client:
        settings = self._settings
        newer = settings.protocol == "5"
        client = aiomqtt.Client(
            settings.host,
            settings.port,
            username=settings.username,
            password=settings.password,
            identifier=settings.client_id,
            protocol=aiomqtt.ProtocolVersion.V5 if newer else aiomqtt.ProtocolVersion.V311,
            clean_session=None if newer else False,
            clean_start=False if newer else MQTT_CLEAN_START_FIRST_ONLY,
            properties=_connect_properties(settings) if newer else None,
            keepalive=settings.keepalive_s,
            timeout=CONNECT_TIMEOUT_S,
            tls_context=settings.tls,
            max_inflight_messages=MOST_UNCONFIRMED_OUTGOING,
            socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
            logger=_log,
        )
        paho = client._client
        paho.manual_ack_set(True)
        paho.connect_timeout = CONNECT_TIMEOUT_S
        return client


class MqttSession:
    """`Session` over one MQTT connection. One task reads; any may publish."""

    def __init__(
        self,
        transport: MqttTransport,
        client: aiomqtt.Client,
        generation: int,
        receipts: Iterator[int],
        answer_timeout_s: float,
    ) -> None:
        self.generation = generation
        self._transport = transport
        self._client = client
        self._paho: PahoClient = client._client
        self._newer = client._client.protocol == MQTTProtocolVersion.MQTTv5
        self._receipts = receipts
        self._answer_timeout_s = answer_timeout_s
        self._lost: str | None = None
        self._arrivals = Arrivals()
        self._something = asyncio.Event()
        self._first_receipt: int | None = None
        self._unconfirmed: dict[int, int] = {}  # packet id -> receipt
        self._answers: dict[int, asyncio.Future[Sequence[ReasonCode]]] = {}
        self._outgoing = anyio.Semaphore(MOST_UNCONFIRMED_OUTGOING)
        # The library's own callbacks drop when full, ignore the broker's refusals, and leave a publication
        # waiting when the connection breaks.
        self._paho.on_message = self._on_message
        self._paho.on_publish = self._on_publish
        self._paho.on_subscribe = self._on_subscribe

    @property
    def lost(self) -> bool:
        """Whether this connection is over."""
        return self._lost is not None

    def begin(self) -> None:
        """Watch the connection that was just made."""
        self._paho.on_socket_register_write = self._on_more_to_write
        self._client._disconnected.add_done_callback(self._on_disconnected)
        # aiomqtt forgets a disconnection that falls between the broker's welcome and its own return
        if self._paho.socket() is None or not self._paho.is_connected():
            self._break("broken right after connecting")

    def end(self) -> None:
        """Close the connection at once; the broker keeps the session."""
        self._break("closed by us")
        self._paho.on_socket_register_write = (
            None  # nothing is written later; the goodbye goes out now or never
        )
        if self._paho.is_connected():
            try:
                self._paho.disconnect()
            except OSError as broken:  # the goodbye is a courtesy: the broker keeps the session without it
                _log.debug("no goodbye on a broken connection: %s", type(broken).__name__)
        broken_off = self._client._disconnected
        if broken_off.done() and not broken_off.cancelled():
            broken_off.exception()  # seen
        self._paho.reinitialise()  # closes the socket, whatever state it is in

    async def subscribe(self, filters: Sequence[tuple[str, int]]) -> None:
        """See `Session.subscribe`."""
        if any(qos not in (0, 1) for _, qos in filters):
            raise ValueError("subscriptions are made at QoS 0 or 1")
        self._require()
        if self._newer:
            code, mid = self._paho.subscribe([(name, SubscribeOptions(qos=qos)) for name, qos in filters])
        else:
            code, mid = self._paho.subscribe(list(filters))
        if code != MQTT_ERR_SUCCESS or mid is None:
            raise self._break(f"cannot subscribe ({code.name})")
        for (name, _), answer in zip(filters, await self._answer(mid, "subscription"), strict=False):
            if answer.is_failure:
                raise TransportRefused(f"subscription to {name} refused: {answer}")

    async def batch(self, most: int) -> list[Delivery]:
        """See `Session.batch`."""
        if most < 1:
            raise ValueError("a batch holds at least one delivery")
        # Lets others run even while messages keep coming, and sees a cancellation before anything is taken.
        await anyio.lowlevel.checkpoint()
        self._require()
        self._read_on(most)
        while not self._arrivals:
            self._something.clear()
            self._require()
            await self._something.wait()
            self._require()
            self._read_on(most)
        self._require()
        return self._arrivals.take(most)

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """See `Session.acknowledge`. Confirming the same delivery again does nothing."""
        self._require()
        receipts = [delivery.receipt for delivery in deliveries if delivery.qos]
        first = self._first_receipt
        if any(first is None or receipt < first for receipt in receipts):
            raise TransportLost("the delivery came on an earlier connection; the broker delivers it again")
        for receipt in receipts:
            mid = receipt & 0xFFFF
            if self._unconfirmed.get(mid) == receipt:
                del self._unconfirmed[mid]
                self._paho.ack(mid, 1)
        self._write_on()

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        """See `Session.publish`. A missing confirmation ends the connection."""
        if qos not in (0, 1):
            raise ValueError("publications are made at QoS 0 or 1")
        async with self._outgoing:
            self._require()
            sent = self._paho.publish(topic, payload, qos, retain)
            if sent.rc != MQTT_ERR_SUCCESS:
                raise self._break(f"cannot publish (code {sent.rc})")
            answer = self._answer(sent.mid, "publication")
            for reason in await answer:
                if reason.is_failure:
                    raise TransportRefused(f"publication on {topic} refused: {reason}")

    def _require(self) -> None:
        if self._lost is not None:
            raise TransportLost(self._lost)

    def _break(self, why: str) -> TransportLost:
        """Declare the connection over and wake everybody who waits on it; returns the error to raise."""
        if self._lost is None:
            self._lost = why
            self._something.set()
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(TransportLost(why))
        return TransportLost(self._lost)

    async def _answer(self, mid: int, to: str) -> Sequence[ReasonCode]:
        answer: asyncio.Future[Sequence[ReasonCode]] = asyncio.get_running_loop().create_future()
        self._answers[mid] = answer
        try:
            self._write_on()
            for _ in range(BUSY_PATIENCE):
                before = self._arrivals.count
                with anyio.move_on_after(self._answer_timeout_s):
                    return await answer
                if self._arrivals.count == before:
                    break
            raise self._break(f"no answer to a {to} within {self._answer_timeout_s:g} s")
        finally:
            del self._answers[mid]
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen, also where another error came first

    def _read_on(self, most: int) -> None:
        """Read what the socket holds already, without a turn of the event loop for each packet."""
        while len(self._arrivals) < most:
            before = self._arrivals.count
            try:
                code = self._paho.loop_read()
            except Exception as broken:
                raise self._break(f"unreadable: {type(broken).__name__}") from broken
            self._require()
            if code != MQTT_ERR_SUCCESS:
                raise self._break(f"broken while reading ({code.name})")
            if self._arrivals.count == before:
                return

    def _write_on(self) -> None:
        """Hand what is queued to the kernel now; the event loop writes the rest when there is room."""
        try:
            code = self._paho.loop_write()
        except OSError as broken:
            raise self._break(f"unwritable: {type(broken).__name__}") from broken
        self._require()
        if code > MQTT_ERR_SUCCESS:
            raise self._break(f"broken while writing ({code.name})")

    def _on_message(self, _client: PahoClient, _userdata: Any, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError as broken:
            topic = broken.object.decode("utf-8", "replace")
        receipt = 0
        if message.qos:
            receipt = next(self._receipts) << 16 | message.mid
            if self._first_receipt is None:
                self._first_receipt = receipt
            self._unconfirmed[message.mid] = receipt
        delivery = Delivery(
            topic=topic,
            payload=bytes(message.payload),
            qos=message.qos,
            retained=message.retain,
            attributes=attributes_of(message.properties),
            receipt=receipt,
        )
        for _ in range(self._arrivals.add(delivery)):
            self._transport.note_drop()
        self._something.set()

    def _on_publish(
        self,
        _client: PahoClient,
        _userdata: Any,
        mid: int,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        self._answered(mid, [reason])

    def _on_subscribe(
        self,
        _client: PahoClient,
        _userdata: Any,
        mid: int,
        reasons: Sequence[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        self._answered(mid, reasons)

    def _answered(self, mid: int, reasons: Sequence[ReasonCode]) -> None:
        answer = self._answers.get(mid)
        if answer is not None and not answer.done():
            answer.set_result(reasons)

    def _on_more_to_write(self, _client: PahoClient, _userdata: Any, connection: Any) -> None:
        # The library's own callback asks for this in the next turn of the event loop; by then the connection
        # can be closed and its descriptor be another connection's.
        asyncio.get_running_loop().add_writer(connection.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        try:
            self._write_on()
        except TransportLost as lost:
            _log.debug("not written: %s", lost)  # whoever waits for it has been told

    def _on_disconnected(self, disconnected: asyncio.Future[None]) -> None:
        broken = None if disconnected.cancelled() else disconnected.exception()
        self._break("closed" if broken is None else f"connection broke: {broken}")


async def _open(client: aiomqtt.Client) -> None:
    opening = asyncio.ensure_future(client.__aenter__())
    try:
        await asyncio.shield(opening)
    except asyncio.CancelledError:
        # The library connects in a thread that nobody can stop. Left alone it would connect under our name
        # later and push the next connection out; so it is waited for (bounded by its timeouts), then closed.
        with anyio.CancelScope(shield=True):
            await asyncio.wait({opening})
        if not opening.cancelled():
            opening.exception()
        raise
    except MqttConnectError as refused:
        reason = refused.rc
        if isinstance(reason, ReasonCode) and reason.value in _PASSING_REASONS:
            raise TransportLost(f"the broker takes no connections now: {reason}") from None
        raise TransportRefused(f"the broker refused the login: {reason}") from None
    except aiomqtt.MqttError as lost:
        raise TransportLost(f"no connection to the broker: {lost}") from None


def _connect_properties(settings: MqttSettings) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho leaves it untyped
    properties.SessionExpiryInterval = settings.session_expiry_s
    properties.ReceiveMaximum = MOST_UNCONFIRMED_INCOMING
    properties.MaximumPacketSize = MOST_PACKET_BYTES
    return properties
