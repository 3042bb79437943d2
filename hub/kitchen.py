"""One running kitchen: what its parts share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.protocol import DeviceAdapter
from config.settings import Settings
from events.registry import Registry
from events.seams import Clock, Ids
from hub.directory import DeviceEntry, Directory, read_directory
from hub.liveness import Liveness
from hub.open_work import OpenWork
from hub.presence import Presence
from hub.recorder import Recorder
from hub.store.database import Store
from safety.vocabulary import Vocabulary

Connect = Callable[[DeviceEntry], DeviceAdapter]
"""Makes the adapter of a device."""


@dataclass(slots=True)
class Kitchen:
    """The shared state of a hub; each part gets it whole and uses what it needs.

    Attributes:
        directory: who and what is enrolled; replaced as a whole by `reload`.
    """

    settings: Settings
    clock: Clock
    ids: Ids
    registry: Registry
    vocabulary: Vocabulary
    store: Store
    recorder: Recorder
    connect: Connect
    open_work: OpenWork
    liveness: Liveness
    presence: Presence
    directory: Directory = field(default_factory=Directory)

    @property
    def name(self) -> str:
        """The kitchen's id."""
        return self.settings.kitchen

    async def reload(self) -> None:
        """Read the directory anew, after an enrolment."""
        self.directory = await self.store.read(lambda connection: read_directory(connection, self.name))
        for device in self.directory.devices.values():
            self.liveness.watch(device.name, self.clock.monotonic(), device.interval_s)
