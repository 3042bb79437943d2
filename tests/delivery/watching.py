"""A transport that notes what the hub acknowledged, and can change what is delivered."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from events.transport import Delivery, Session, Transport
from hub.service import Seams


class Watched:
    """What went through every connection of a hub.

    `alter` may change each batch before the hub sees it; `more` are further subscriptions.
    """

    def __init__(
        self,
        *,
        alter: Callable[[list[Delivery]], list[Delivery]] = lambda batch: batch,
        more: Sequence[tuple[str, int]] = (),
    ) -> None:
        self.alter = alter
        self.more = more
        self.connections = 0
        self.delivered: list[Delivery] = []
        self.acknowledged: list[Delivery] = []

    @property
    def seams(self) -> Seams:
        return Seams(transport=lambda inner: _Transport(inner, self))


class _Transport:
    def __init__(self, inner: Transport, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        async with self._inner.connect() as session:
            self._watched.connections += 1
            yield _Session(session, self._watched)


class _Session:
    def __init__(self, inner: Session, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched
        self.generation = inner.generation

    async def subscribe(self, filters: Sequence[tuple[str, int]]) -> None:
        await self._inner.subscribe([*filters, *self._watched.more])

    async def batch(self, most: int) -> list[Delivery]:
        batch = self._watched.alter(await self._inner.batch(most))
        self._watched.delivered += batch
        return batch

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        await self._inner.acknowledge(deliveries)
        self._watched.acknowledged += deliveries

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        await self._inner.publish(topic, payload, qos=qos, retain=retain)
