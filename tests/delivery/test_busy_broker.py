"""A broker that is busy is not one that is gone."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketStream

from events.mqtt import BUSY_PATIENCE, MqttSettings, MqttTransport
from events.seams import SystemClock
from events.transport import TransportLost

ANSWER_S = 0.3
_DELIVERY = bytes([0x30, 5, 0, 1]) + b"axx"  # QoS 0 on topic `a`


@asynccontextmanager
async def broker(*, delivers_for_s: float, answers: bool) -> AsyncGenerator[int]:
    """A server of MQTT 3.1.1 that takes one publication, delivers for a while, and confirms then or never."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(bytes([0x20, 2, 0, 0]))
            published = await stream.receive()
            topic_length = published[3]
            mid = published[4 + topic_length : 6 + topic_length]
            end = time.monotonic() + delivers_for_s
            while time.monotonic() < end:
                await stream.send(_DELIVERY)
                await anyio.sleep(0.05)
            if answers:
                await stream.send(bytes([0x40, 2]) + mid)
            await anyio.sleep(30)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield int(listener.listeners[0].extra(anyio.abc.SocketAttribute.local_port))
        tasks.cancel_scope.cancel()
    await listener.aclose()


def transport(port: int) -> MqttTransport:
    settings = MqttSettings("127.0.0.1", port, "hub", "secret", "hub", protocol="3.1.1")
    return MqttTransport(settings, SystemClock(), answer_timeout_s=ANSWER_S)


async def test_a_confirmation_behind_many_deliveries_is_waited_for() -> None:
    async with (
        broker(delivers_for_s=3 * ANSWER_S, answers=True) as port,
        transport(port).connect() as session,
    ):
        await session.publish("a", b"x", qos=1)


async def test_a_broker_that_delivers_but_never_confirms_is_given_up_in_bounded_time() -> None:
    async with broker(delivers_for_s=60, answers=False) as port, transport(port).connect() as session:
        began = time.monotonic()
        with pytest.raises(TransportLost, match="no answer"):
            await session.publish("a", b"x", qos=1)
        assert BUSY_PATIENCE * ANSWER_S <= time.monotonic() - began <= BUSY_PATIENCE * ANSWER_S + 2


async def test_a_broker_that_does_nothing_at_all_is_given_up_at_the_first_timeout() -> None:
    async with broker(delivers_for_s=0, answers=False) as port, transport(port).connect() as session:
        began = time.monotonic()
        with pytest.raises(TransportLost, match="no answer"):
            await session.publish("a", b"x", qos=1)
        assert time.monotonic() - began <= ANSWER_S + 1
