"""One running kitchen: what its parts share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio

from adapters.protocol import DeviceAdapter
from config.settings import Settings
from events.registry import Registry
from events.seams import Clock, Ids
from hub.directory import DeviceEntry, Directory, read_directory
from hub.liveness import Liveness
from hub.open_work import OpenWork
from hub.presence import Presence
from hub.recorder import Recorder, Recording
from hub.store.database import Store, StoreFailed
from hub.vocabularies import own_allergen_facts
from safety.allergens import AllergenFacts
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
    allergens: AllergenFacts = field(default_factory=own_allergen_facts)
    stale: bool = False
    """Whether the store may say otherwise than `directory`; nobody is let in on its word then."""
    _begun: int = 0
    _read: int = 0
    _doubted: int = 0

    @property
    def name(self) -> str:
        """The kitchen's id."""
        return self.settings.kitchen

    async def enrol(self, work: Callable[[Recording], T]) -> T:
        """Commit what changes the directory, and read it anew.

        Raises:
            StoreFailed: it is not confirmed, or not read anew: until it is, the directory is `stale`.
        """
        try:
            value = await self.recorder.commit(work)
        except (StoreFailed, anyio.get_cancelled_exc_class()):
            self._doubt()
            raise
        await self.reload()
        return value

    async def reload(self) -> None:
        """Read the directory anew. Of several at once the one that began last counts.

        Raises:
            StoreFailed: it cannot be read at the moment.
        """
        self._begun += 1
        mine, known = self._begun, self.directory
        try:
            directory = await self.store.read(lambda connection: read_directory(connection, self.name, known))
        except BaseException:
            self._doubt()
            raise
        if mine <= self._read:
            return
        self.directory, self._read = directory, mine
        self.stale = self._read <= self._doubted
        for device in directory.devices.values():
            self.liveness.watch(device.name, self.clock.monotonic(), device.interval_s)

    def _doubt(self) -> None:
        """No reading that has begun by now is to be relied on."""
        self.stale = True
        self._doubted = self._begun
        # Who watches for what is in doubt reads it as soon as the store answers again.
        self.recorder.doubt.set()
