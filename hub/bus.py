"""The hub on the bus: connect, mark, take what comes, publish what holds; and connect anew (DESIGN §4).

Every connection is subscribed, marked and reconciled from the start. What arrives before the marker is
history: it is committed like everything else, but it proves no life.
"""

import logging
from collections.abc import Sequence
from typing import Final

import anyio

from events import topics
from events.mqtt import MOST_PAYLOAD_BYTES
from events.transport import Delivery, Session, Transport, TransportLost, TransportRefused
from hub.brigade import Brigade
from hub.inbox import Inbox
from hub.kitchen import Kitchen
from hub.store.database import StoreFailed

BATCH_MOST: Final = 200
_OUTBOX_MOST: Final = 100
MARKER_WITHIN_S: Final = 15.0
"""A marker that is not back by then was lost by the broker, and with it perhaps more."""
_AGAIN_FIRST_S: Final = 0.2
_AGAIN_MOST_S: Final = 5.0
_LOG = logging.getLogger("aboyeur.bus")


class Bus:
    """Keeps the hub connected to the broker."""

    def __init__(self, kitchen: Kitchen, transport: Transport, inbox: Inbox, brigade: Brigade) -> None:
        self._kitchen = kitchen
        self._transport = transport
        self._inbox = inbox
        self._brigade = brigade
        self.live = False
        """Whether the hub is subscribed and past its marker."""
        self._marker = ""

    async def run(self) -> None:
        """Stay connected until cancelled."""
        wait_s = _AGAIN_FIRST_S
        told = False
        while True:
            try:
                async with self._transport.connect() as session:
                    wait_s, told = _AGAIN_FIRST_S, False
                    await self._serve(session)
            except* (TransportLost, StoreFailed) as lost:
                if not told:
                    _LOG.warning("not connected to the broker: %s", _first(lost))
                    told = True
            self.live = False
            self._kitchen.liveness.deaf()
            await self._kitchen.clock.sleep(wait_s)
            wait_s = min(wait_s * 2, _AGAIN_MOST_S)

    async def _serve(self, session: Session) -> None:
        kitchen = self._kitchen.name
        await session.subscribe(
            [(topics.all_from_devices(kitchen), 1), (topics.all_to_device(kitchen, "hub"), 1)]
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._publish_outbox, session, name="outbox")
            tasks.start_soon(self._mark, session, name="marker")
            while True:
                batch = await session.batch(BATCH_MOST)
                await self._take(batch)
                await session.acknowledge(batch)

    async def _mark(self, session: Session) -> None:
        """Draw a line now, and again after each stall: what comes before it is history."""
        while True:
            self._brigade.marker_bell = bell = anyio.Event()
            self.live = False
            self._marker = self._kitchen.ids.new("marker")
            await session.publish(topics.marker(self._kitchen.name, self._marker), b"", qos=1)
            with anyio.move_on_after(MARKER_WITHIN_S):
                await bell.wait()
            if not self.live and not bell.is_set():
                # Confirmed, but never delivered: this connection hears nothing.
                raise TransportLost(f"the marker did not come back within {MARKER_WITHIN_S:.0f} s")
            await bell.wait()

    async def _take(self, batch: Sequence[Delivery]) -> None:
        """Commit a batch, before and after the marker each in its own light."""
        waiting: list[Delivery] = []
        for delivery in batch:
            nonce = topics.parse_marker(delivery.topic, self._kitchen.name)
            if nonce is None:
                waiting.append(delivery)
            elif nonce == self._marker and not self.live:
                await self._inbox.take(waiting, live=False)
                waiting = []
                self.live = True
                self._kitchen.liveness.listening(self._kitchen.clock.monotonic())
                self._brigade.reconcile()
                _LOG.info("connected to the broker")
        await self._inbox.take(waiting, live=self.live)

    async def _publish_outbox(self, session: Session) -> None:
        while True:
            self._brigade.outbox_bell = bell = anyio.Event()
            rows = await self._kitchen.store.read(
                lambda connection: connection.execute(
                    # As bytes: a damaged row that is no text must not hold up the others.
                    "SELECT position, CAST(topic AS BLOB), retain, CAST(body AS BLOB) FROM outbox "
                    "WHERE kitchen = ? "
                    "ORDER BY position LIMIT ?",
                    (self._kitchen.name, _OUTBOX_MOST),
                ).fetchall()
            )
            if not rows:
                await bell.wait()
                continue
            for _, topic, retain, body in rows:
                try:
                    if len(body) > MOST_PAYLOAD_BYTES:
                        raise ValueError(f"{len(body)} bytes, at most {MOST_PAYLOAD_BYTES} are carried")
                    await session.publish(topic.decode(), body, qos=1, retain=bool(retain))
                except (TransportRefused, ValueError) as refused:
                    # It would be refused for ever, and hold up everything behind it.
                    _LOG.error("%.200r cannot be published: %s", topic, refused)
            await self._published(rows[-1][0])

    async def _published(self, position: int) -> None:
        await self._kitchen.recorder.commit(
            lambda recording: recording.fold.run(
                "DELETE FROM outbox WHERE kitchen = ?1 AND position <= ?2", position
            )
        )


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, Exception)
    return found
