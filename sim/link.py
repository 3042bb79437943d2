"""A device on the bus: what it has to say reaches the broker, and it shows that it lives (Core §7)."""

import logging
from typing import Final

import anyio

from events.seams import Clock
from events.topics import all_to_device, from_device
from events.transport import Session, Transport, TransportLost
from sim.appliance import Appliance
from sim.memory import MemoryUnavailable, Outgoing, Waiting
from sim.speech import Voice

FIRST_WAIT_S: Final = 0.25
LONGEST_WAIT_S: Final = 10.0
AT_ONCE: Final = 64

_log = logging.getLogger(__name__)


class Link:
    """The MQTT side of one device; it outlives every connection."""

    def __init__(
        self,
        appliance: Appliance,
        voice: Voice,
        transport: Transport,
        clock: Clock,
        heartbeat_s: float = 10.0,
    ) -> None:
        """
        Args:
            heartbeat_s: how often it shows that it lives, 1 to 300 (ruling E1).
        """
        self._appliance = appliance
        self._voice = voice
        self._transport = transport
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._beats = 0
        self.connections = 0
        """How often it was connected."""

    async def run(self) -> None:
        """Connect, speak, and connect again whenever that ends, until cancelled."""
        wait_s = FIRST_WAIT_S
        while True:
            before = self.connections
            try:
                async with self._transport.connect() as session:
                    await self._live(session)
            except* (TransportLost, MemoryUnavailable) as lost:
                _log.info("%s: no connection to the broker: %s", self._voice.device, lost.exceptions[0])
            if self.connections > before:
                wait_s = FIRST_WAIT_S
            await self._clock.sleep(wait_s)
            wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    async def _live(self, session: Session) -> None:
        voice = self._voice
        await session.subscribe([(all_to_device(voice.kitchen, voice.device), 1)])
        await self._publish(session, voice.online())
        # What still holds is said again as a new event: nobody has to have heard it before.
        for report in list(self._appliance.station.alarms.values()):
            await self._publish(session, voice.limit_fired(report))
        for part, detail in list(self._appliance.station.faults.items()):
            await self._publish(session, voice.fault(part, detail))
        if self._appliance.stock:
            await self._publish(session, voice.inventory(self._appliance.stock))
        self.connections += 1
        async with anyio.create_task_group() as group:
            group.start_soon(self._beat, session)
            group.start_soon(self._listen, session)
            group.start_soon(self._speak, session)

    async def _beat(self, session: Session) -> None:
        while True:
            beat = self._voice.heartbeat(self._heartbeat_s, self._beats)
            self._beats += 1
            await self._publish(session, beat, qos=0)
            await self._clock.sleep(self._heartbeat_s)

    async def _listen(self, session: Session) -> None:
        """Nothing that is said to a device moves it yet; it only must not pile up at the broker."""
        while True:
            await session.acknowledge(await session.batch(AT_ONCE))

    async def _speak(self, session: Session) -> None:
        """Publish in the order it happened; an event is forgotten when the broker has confirmed it."""
        memory, station = self._appliance.memory, self._appliance.station
        while True:
            said = station.said
            waiting = memory.waiting(AT_ONCE)
            if not waiting:
                await said.wait()
            for event in waiting:
                await self._publish(session, event)
                memory.confirmed(event.number)

    async def _publish(self, session: Session, event: Outgoing | Waiting, qos: int = 1) -> None:
        topic = from_device(self._voice.kitchen, self._voice.device, event.category, event.subject)
        await session.publish(topic, event.payload, qos=qos)
