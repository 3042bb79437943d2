"""One running kitchen: what its parts share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from adapters.protocol import DeviceAdapter
from config.settings import Settings
from events.registry import Registry
from events.seams import Clock, Ids
from hub.directory import DeviceEntry, Directory, read_directory
from hub.liveness import Liveness
from hub.open_work import OpenWork
from hub.presence import Presence
from hub.recorder import Recorder, Recording
from hub.store.database import Store
from safety.vocabulary import Vocabulary

T = TypeVar("T")
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
    stale: bool = False
    """Whether the store may say otherwise than `directory`; nobody is let in on its word then."""

    @property
    def name(self) -> str:
        """The kitchen's id."""
        return self.settings.kitchen

    async def enrol(self, work: Callable[[Recording], T]) -> T:
        """Commit what changes the directory, and read it anew.

        Raises:
            StoreFailed: it is not confirmed, or not read anew: until it is, the directory is `stale`.
        """
        self.stale = True
        value = await self.recorder.commit(work)
        await self.reload()
        return value

    async def reload(self) -> None:
        """Read the directory anew.

        Raises:
            StoreFailed: it cannot be read at the moment.
        """
        self.stale = True
        known = self.directory
        self.directory = await self.store.read(
            lambda connection: read_directory(connection, self.name, known)
        )
        self.stale = False
        for device in self.directory.devices.values():
            self.liveness.watch(device.name, self.clock.monotonic(), device.interval_s)
