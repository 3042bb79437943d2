"""A broker inside the hub's process, for trying out and for one machine: amqtt behind a gate of our own.

It listens on loopback only. amqtt 0.12.1 acts on a CONNECT before it has checked the password: a wrong one
ends the hub's connection or deletes its session. It publishes wills without asking for rights, on
connecting hands a client the retained messages of everybody's subscriptions, and leaves a client deaf that
took over from its own earlier connection. So the gate reads the CONNECT first: only who has the password,
uses the user name as client id and may publish the will gets to amqtt at all; it also ends a user's earlier
connection first, enforces keepalive and packet size, and holds back what the client may not read.

What remains, and why a home uses Mosquitto:

- MQTT 3.1.1 only; sessions, queues and retained messages live in memory and end with the process.
- A publication is confirmed before it is delivered; a delivery that is not acknowledged never comes again.
- How much is on its way to a client is not limited by number, only by the time it may take to read.
- Messages for a known client that is away are kept without a bound.
- A publication without right is confirmed and dropped, as MQTT 3.1.1 has no other answer.
"""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import anyio
from amqtt.adapters import ReaderAdapter, StreamWriterAdapter
from amqtt.broker import Broker
from amqtt.contexts import Action, BrokerConfig, ListenerConfig, ListenerType
from amqtt.plugins.base import BaseAuthPlugin, BaseTopicPlugin
from amqtt.session import Session

from events.access_rights import Rights
from events.connect_packet import (
    NOT_AUTHORIZED,
    NOT_THIS_CLIENT_ID,
    Connect,
    UnreadableConnect,
    read_connect,
    without_keepalive,
)
from events.steady_subscriptions import SteadySubscriptions

Credentials = Callable[[str, bytes], bool]

MOST_PACKET_BYTES: Final = 320 * 1024
MOST_CONNECT_BYTES: Final = 16 * 1024
MOST_CONNECTIONS: Final = 256
CONNECT_TIMEOUT_S: Final = 5.0
CLOSE_TIMEOUT_S: Final = 1.0
STALL_TIMEOUT_S: Final = 5.0
SETTLE_TIMEOUT_S: Final = 2.0
STOP_TIMEOUT_S: Final = 10.0

_LISTENER: Final = "default"
_CONNECT: Final = 0x10
_PUBLISH: Final = 0x30
_DISCONNECT: Final = b"\xe0"

_log = logging.getLogger(__name__)


class EmbeddedBroker:
    """amqtt on loopback.

    Args:
        host: `localhost` or a loopback address.
        port: TCP port; 0 = any free one, see `port` while running.
        credentials: whether a user's password is right; called in the event loop, so quick.
        rights: who may publish and read what.

    Raises:
        ValueError: `host` is not loopback.
    """

    def __init__(self, host: str, port: int, credentials: Credentials, rights: Rights) -> None:
        self.host = _loopback(host)
        self._wanted_port = port
        self._port: int | None = None
        self._credentials = credentials
        self._rights = rights
        self._connections: set[asyncio.Task[None]] = set()
        self._present: dict[str, tuple[asyncio.Task[None], asyncio.StreamWriter]] = {}

    @property
    def port(self) -> int:
        """The port it listens on.

        Raises:
            RuntimeError: it is not running.
        """
        if self._port is None:
            raise RuntimeError("the broker is not running")
        return self._port

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["EmbeddedBroker", None]:
        """Listen for the length of the context; leaving takes at most `STOP_TIMEOUT_S`.

        Raises:
            OSError: the port cannot be listened on.
        """
        if self._port is not None:
            raise RuntimeError("the broker is running already")
        broker = Broker(self._configuration())
        broker._subscriptions = SteadySubscriptions()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connected(broker, reader, writer)

        await broker.start()
        try:
            server = await asyncio.start_server(connected, self.host, self._wanted_port)
            try:
                self._port = server.sockets[0].getsockname()[1]
                yield self
            finally:
                server.close()
                self._port = None
        finally:
            await self._stop(broker)

    def _configuration(self) -> BrokerConfig:
        here = __name__
        return BrokerConfig(
            listeners={_LISTENER: ListenerConfig(type=ListenerType.EXTERNAL)},
            plugins={
                f"{here}.{LoginPlugin.__name__}": {"credentials": self._credentials},
                f"{here}.{RightsPlugin.__name__}": {"rights": self._rights},
            },
        )

    async def _stop(self, broker: Broker) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_TIMEOUT_S) as bound:
            for connection in self._connections:
                connection.cancel()
            if self._connections:
                await asyncio.wait(self._connections)
            await broker.shutdown()
        if bound.cancelled_caught:
            _log.warning("the embedded broker did not stop within %g s", STOP_TIMEOUT_S)

    async def _connected(
        self, broker: Broker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = asyncio.current_task()
        if connection is None or len(self._connections) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(connection)
        try:
            admitted = await self._admit(reader, writer)
            if admitted is not None:
                connect, packet = admitted
                await self._displace(connect.client_id)
                self._present[connect.client_id] = connection, writer

                async def settle() -> None:
                    await _until_delivered(broker, connect.client_id)

                await broker.external_connected(
                    _GateReader(reader, packet, connect.keepalive_s, settle),
                    _GateWriter(writer, self._rights, connect.client_id),
                    _LISTENER,
                )
        except (OSError, EOFError) as broken:
            _log.debug("a connection broke: %s", type(broken).__name__)
        finally:
            writer.transport.abort()
            self._connections.discard(connection)
            for user, (present, _) in list(self._present.items()):
                if present is connection:
                    del self._present[user]

    async def _displace(self, user: str) -> None:
        """End the connection a user still has, all the way.

        amqtt's own taking over marks the session as gone after the new connection has come: it stays deaf.
        """
        while user in self._present:
            present, writer = self._present[user]
            writer.transport.abort()
            done, _ = await asyncio.wait({present}, timeout=CLOSE_TIMEOUT_S)
            if not done:
                present.cancel()

    async def _admit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[Connect, bytes] | None:
        """The CONNECT to hand to amqtt, or None after refusing it."""
        try:
            with anyio.fail_after(CONNECT_TIMEOUT_S):
                body = await _read_first_packet(reader)
            connect = read_connect(body)
        except UnreadableConnect as unreadable:
            await _refuse(reader, writer, unreadable.answer, str(unreadable))
            return None
        except TimeoutError:
            await _refuse(reader, writer, None, "no CONNECT in time")
            return None
        refusal = self._refusal(connect)
        if refusal is not None:
            await _refuse(reader, writer, *refusal)
            return None
        patient = without_keepalive(body)  # amqtt's own timer can cut a packet in two, and ends nothing
        return connect, bytes((_CONNECT,)) + _length(len(patient)) + patient

    def _refusal(self, connect: Connect) -> tuple[bytes, str] | None:
        user = connect.username
        if user is None or connect.password is None or self._rights.role(user) is None:
            return NOT_AUTHORIZED, "unknown user or no login at all"
        if not self._credentials(user, connect.password):
            return NOT_AUTHORIZED, f"wrong password for {user}"
        if connect.client_id != user:
            return NOT_THIS_CLIENT_ID, f"{user} used another client id than the user name"
        if connect.will_topic is not None and not self._rights.may_publish(user, connect.will_topic):
            return NOT_AUTHORIZED, f"{user} may not publish the will"
        return None


class LoginPlugin(BaseAuthPlugin):
    """amqtt's question who somebody is; the gate has answered it, and is not trusted blindly."""

    @dataclass
    class Config:
        """Settings amqtt passes on."""

        credentials: Any

    async def authenticate(self, *, session: Session) -> bool | None:
        """Whether the login is right and the client id is the user name."""
        user, password = session.username, session.password
        if not user or password is None or session.client_id != user:
            return False
        return bool(self.config.credentials(user, password.encode()))


class RightsPlugin(BaseTopicPlugin):
    """amqtt's question what somebody may publish, subscribe to and receive."""

    @dataclass
    class Config:
        """Settings amqtt passes on."""

        rights: Any

    async def topic_filtering(
        self, *, session: Session | None = None, topic: str | None = None, action: Action | None = None
    ) -> bool | None:
        """Whether the session's user may do that with the topic or filter."""
        rights: Rights = self.config.rights
        if session is None or not session.username or not topic:
            return False
        if action == Action.PUBLISH:
            return rights.may_publish(session.username, topic)
        return rights.may_subscribe(session.username, topic)


class _GateReader(ReaderAdapter):
    """A client's bytes for amqtt: the CONNECT again, then the stream, as long as the client is alive."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        first: bytes,
        keepalive_s: int,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        self._reader = reader
        self._first = first
        self._patience_s = 1.5 * keepalive_s if keepalive_s else None
        self._settle = settle
        self._ended = False

    async def read(self, n: int = -1) -> bytes:
        if n == 0:
            return b""
        if self._ended or n < 0 or n > MOST_PACKET_BYTES:
            self._ended = True
            raise asyncio.IncompleteReadError(b"", n)
        if self._first:
            head, self._first = self._first[:n], self._first[n:]
            return head if len(head) == n else head + await self.read(n - len(head))
        try:
            with anyio.fail_after(self._patience_s):
                data = await self._reader.readexactly(n)
        except TimeoutError:
            self._ended = True
            raise asyncio.IncompleteReadError(b"", n) from None
        except (EOFError, OSError):
            self._ended = True
            await self._settle()
            raise
        if data == _DISCONNECT:  # or a byte that looks like it: then this only takes a moment longer
            await self._settle()
        return data

    def feed_eof(self) -> None:
        self._ended = True


class _GateWriter(StreamWriterAdapter):
    """amqtt's packets for a client: only what it may read, as long as it reads."""

    def __init__(self, writer: asyncio.StreamWriter, rights: Rights, user: str) -> None:
        super().__init__(writer)
        self._rights = rights
        self._user = user

    def write(self, data: bytes) -> None:
        if data and data[0] & 0xF0 == _PUBLISH and not self._may_read(data):
            return
        super().write(data)

    async def drain(self) -> None:
        # amqtt lets one write at a time wait here and piles up the others behind it
        try:
            with anyio.fail_after(STALL_TIMEOUT_S):
                await super().drain()
        except TimeoutError:
            _log.warning("%s does not read and is disconnected", self._user)
            self._writer.transport.abort()
            raise ConnectionResetError("the client does not read") from None

    async def close(self) -> None:
        try:
            with anyio.move_on_after(CLOSE_TIMEOUT_S):
                await super().close()
        except OSError as broken:
            _log.debug("closing a broken connection: %s", type(broken).__name__)
        finally:
            self._writer.transport.abort()

    def _may_read(self, packet: bytes) -> bool:
        start = 2
        while packet[start - 1] & 0x80:
            start += 1
        end = start + 2 + int.from_bytes(packet[start : start + 2], "big")
        return self._rights.may_subscribe(self._user, packet[start + 2 : end].decode("utf-8", "replace"))


async def _until_delivered(broker: Broker, user: str) -> None:
    """Wait until amqtt has passed on what the user sent: it forgets the rest as soon as the user hangs up."""
    turns = 5  # of the event loop, which amqtt's tasks take from one queue to the next
    with anyio.move_on_after(SETTLE_TIMEOUT_S):
        while turns:
            await asyncio.sleep(0)
            session, _ = broker.sessions.get(user, (None, None))
            turns = turns - 1 if session is None or session.delivered_message_queue.empty() else 5


async def _read_first_packet(reader: asyncio.StreamReader) -> bytes:
    if (await reader.readexactly(1))[0] != _CONNECT:
        raise UnreadableConnect("does not begin with a CONNECT")
    length = 0
    for place in range(4):
        digit = (await reader.readexactly(1))[0]
        length |= (digit & 0x7F) << (7 * place)
        if not digit & 0x80:
            break
    else:
        raise UnreadableConnect("an endless length")
    if length > MOST_CONNECT_BYTES:
        raise UnreadableConnect("a CONNECT of unusual size")
    return await reader.readexactly(length)


def _length(value: int) -> bytes:
    digits = bytearray()
    while True:
        value, digit = divmod(value, 128)
        digits.append(digit | (0x80 if value else 0))
        if not value:
            return bytes(digits)


async def _refuse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes | None, why: str
) -> None:
    _log.info("connection refused: %s", why)
    if answer is not None:
        writer.write(answer)
        writer.write_eof()
        # Hanging up with input unread could make the client's system discard the answer.
        with anyio.move_on_after(CLOSE_TIMEOUT_S):
            while await reader.read(4096):
                pass


def _loopback(host: str) -> str:
    """The loopback address meant by `host`.

    A name other than `localhost` is not looked up: what it points to can change.
    """
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback or getattr(address, "ipv4_mapped", None) is not None:
        raise ValueError(f"the embedded broker listens on loopback only, not on {host!r}")
    return str(address)
