"""The brigade: a station for every device, and who is to be told of what (DESIGN §4)."""

import logging
from typing import Final

import anyio
from anyio.abc import TaskGroup

from adapters.protocol import DeviceAdapter
from hub.directory import DeviceEntry
from hub.entries import DeviceLife, DeviceRhythm
from hub.executions.model import Execution
from hub.kitchen import Kitchen
from hub.liveness import DEFAULT_INTERVAL_S
from hub.stations import Station
from hub.stops import StopDesk
from hub.store.database import StoreFailed

LOOK_EVERY_S: Final = 0.2
"""How often the watch looks who has fallen silent."""
RHYTHM_EVERY_S: Final = 60.0
"""A device that changes its interval all the time is written down no oftener than this."""
_LOG: Final = logging.getLogger("aboyeur.brigade")


class Brigade:
    """Keeps a station running for every registered device; passes on what concerns it."""

    def __init__(self, kitchen: Kitchen, tasks: TaskGroup) -> None:
        self._kitchen = kitchen
        self._tasks = tasks
        self._stations: dict[str, tuple[Station, anyio.CancelScope]] = {}
        self._returned: set[str] = set()
        self._said: dict[str, str] = {}
        self._rhythms: dict[str, float] = {}
        self._rhythm_due: dict[str, float] = {}
        self.outbox_bell = anyio.Event()
        self.marker_bell = anyio.Event()
        self.stops = StopDesk(kitchen, self, tasks)
        kitchen.recorder.listen(self)

    def adapter(self, device: str) -> DeviceAdapter | None:
        """The adapter of a registered device."""
        found = self._stations.get(device)
        return found[0].adapter if found else None

    def station(self, device: str) -> Station | None:
        """The station of a registered device."""
        found = self._stations.get(device)
        return found[0] if found else None

    def sync(self) -> None:
        """Open a station for every device that has none, close those of devices that are gone."""
        devices = self._kitchen.directory.devices
        for name in [name for name in self._stations if name not in devices]:
            self._stations.pop(name)[1].cancel()
            self._kitchen.liveness.forget(name)
            for known in (self._said, self._rhythms, self._rhythm_due):
                known.pop(name, None)
        for device in devices.values():
            if device.name not in self._stations:
                self._open(device)

    def _open(self, device: DeviceEntry) -> None:
        station = Station(self._kitchen, device, self._kitchen.connect(device), self.stops.barred)
        scope = anyio.CancelScope()
        self._stations[device.name] = (station, scope)
        self._said[device.name] = device.life
        self._rhythms[device.name] = device.interval_s or DEFAULT_INTERVAL_S

        async def serve() -> None:
            with scope:
                await station.run()

        self._tasks.start_soon(serve, name=f"station {device.name}")

    def reconcile(self) -> None:
        """Read every device: after a start and after each reconnect."""
        for station, _ in self._stations.values():
            station.reconcile()

    # --- What is told -----------------------------------------------------------------------------------

    def changed(self, seq: int, execution: Execution) -> None:
        """An execution changed; it is on disk."""
        self._kitchen.open_work.changed(seq, execution)
        self.outbox_bell.set()
        attempt = execution.attempt
        station = self.station(attempt.device) if attempt is not None else None
        if station is None:
            return
        if execution.state == "accepted" and execution.seq == 0:
            station.ordered(execution.id)
        station.ring()

    def news(self, devices: frozenset[str]) -> None:
        """Events of these devices were committed."""
        self.outbox_bell.set()
        for device in devices:
            station = self.station(device)
            if station is not None:
                station.ring()

    def rebooted(self, device: str) -> None:
        """A device speaks under another boot: only its status tells what still holds."""
        station = self.station(device)
        if station is not None:
            station.reconcile()

    def returned(self, device: str) -> None:
        """A device is heard for the first time after silence."""
        self._returned.add(device)
        self.rebooted(device)

    def incomplete(self, device: str) -> None:
        """Something that a device said may be missing here: only its status tells what holds."""
        self.rebooted(device)

    # --- The watch --------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Look who has fallen silent and who is back, and record it; until cancelled."""
        pending: dict[str, DeviceLife] = {}
        while True:
            liveness = self._kitchen.liveness
            was_deaf = liveness.is_deaf
            for device, life in liveness.judge(self._kitchen.clock.monotonic()):
                pending[device] = DeviceLife(device=device, life=life)
            if liveness.is_deaf and not was_deaf:
                # The hub itself stood still: it marks anew what is history.
                self.marker_bell.set()
            for device in self._returned:
                pending[device] = DeviceLife(device=device, life="returned")
            self._returned.clear()
            for device, entry in list(pending.items()):
                if not self._is_new(entry):
                    del pending[device]
                    continue
                try:
                    await self._kitchen.recorder.record(entry)
                except StoreFailed:
                    break  # still pending; the next look tries again
                except Exception:  # noqa: BLE001 - a damaged row must not end the watch over all devices
                    _LOG.exception("that %s is %s cannot be recorded", device, entry.life)
                del pending[device]
                self._said[device] = "alive" if entry.life == "returned" else entry.life
            await self._note_rhythms()
            await self._kitchen.clock.sleep(LOOK_EVERY_S)

    async def _note_rhythms(self) -> None:
        """Write down whose interval changed, so that a restarted hub waits long enough for a slow device."""
        now = self._kitchen.clock.monotonic()
        for device, interval_s in self._kitchen.liveness.intervals().items():
            known = self._rhythms.get(device)
            if known in (None, interval_s) or now < self._rhythm_due.get(device, now):
                continue
            try:
                await self._kitchen.recorder.record(DeviceRhythm(device=device, interval_s=interval_s))
            except StoreFailed:
                return  # the next look tries again
            self._rhythms[device] = interval_s
            self._rhythm_due[device] = now + RHYTHM_EVERY_S

    def _is_new(self, entry: DeviceLife) -> bool:
        said = self._said.get(entry.device)
        if said is None:
            return False
        if entry.life == "returned":
            return said in ("late", "lost")
        return said != entry.life and not (entry.life == "late" and said == "lost")
