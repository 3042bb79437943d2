"""What an appliance has around a dish: clock, memory, voice, key and limits. It writes down and says."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import anyio
import msgspec

from adapters.documents import ExecuteRequest, LogDevice
from events.seams import Clock, Ids
from events.times import format_date_time
from mandates.keys import PrivateKey
from mandates.signature import sign_document
from safety.enforcement import FiredLimit, LimitWatch
from safety.vocabulary import Vocabulary
from sim.dish import Dish, Outcome, write_log
from sim.lifecycle import Change, Life
from sim.memory import DeviceMemory, Kept, Outgoing
from sim.presence import Presence
from sim.speech import Voice


class Station:
    """One device's surroundings. Nothing here decides anything about a dish."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Ids,
        key: PrivateKey,
        memory: DeviceMemory,
        watch: LimitWatch,
        vocabulary: Vocabulary,
        presence: Presence,
        about: LogDevice,
        speed: float,
        progress_interval_s: float,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.memory = memory
        self.watch = watch
        self.vocabulary = vocabulary
        self.presence = presence
        self.speed = speed
        self.progress_interval_s = progress_interval_s
        self.voice: Voice | None = None
        self.said = anyio.Event()
        """Set, and replaced by a new one, whenever there is something to publish."""
        self.alarms: dict[str, dict[str, Any]] = {}
        """Limits that fired and are not cleared yet, by id; at most as many as the pack has."""
        self.faults: dict[str, str] = {}
        """What is broken, by the name of the part: how it shows."""
        self._key = key
        self._about = about

    def now_text(self) -> str:
        """The wall clock as documents write it."""
        return format_date_time(self.clock.wall())

    def physical_s(self, at_s: float | None = None) -> float:
        """A monotonic instant (now by default) in the time of the physics."""
        return (self.clock.monotonic() if at_s is None else at_s) * self.speed

    def begin(self, changes: list[Change], request: ExecuteRequest, body: str) -> None:
        """Remember a new execution with its first changes, and say them.

        Raises:
            MemoryFull: nothing was taken.
        """
        life = changes[-1].life
        log = None
        if life.final:
            outcome: Outcome = "refused" if life.state == "refused" else "aborted_safe"
            log = self.log(life, request, outcome, self.clock.wall(), None)
        kept = Kept(
            status=life.status(),
            key=request.idempotency_key,
            body=body,
            recipe=request.recipe,
            recipe_hash=request.recipe_hash,
            began_at=self.clock.wall(),
            log=log,
        )
        events = self._events(changes)
        self.memory.begin(kept, life.final, events)
        self._tell()

    def change(self, changes: list[Change], log: bytes | None = None) -> None:
        """Remember changes of an execution, and say them."""
        life = changes[-1].life
        self.memory.change(life.status(), life.final, log, self._events(changes))
        self._tell()

    def say(self, events: Iterable[Outgoing]) -> None:
        """Publish something that is no change of an execution."""
        self.memory.say(events)
        self._tell()

    def log(
        self, life: Life, request: ExecuteRequest, outcome: Outcome, began_at: datetime, dish: Dish | None
    ) -> bytes:
        """The signed log of an execution that is over."""
        return self.signed(
            write_log(
                log_id=f"log-{life.execution}"[:128],
                execution=life.execution,
                request=life.request,
                recipe=request.recipe,
                recipe_hash=request.recipe_hash,
                device=self._about,
                outcome=outcome,
                started_at=format_date_time(began_at),
                ended_at=self.now_text(),
                servings=request.servings,
                dish=dish,
            )
        )

    def signed(self, log: dict[str, Any]) -> bytes:
        """A log as bytes, signed with the device's key."""
        return msgspec.json.encode(sign_document(log, self._key, signed_at=self.clock.wall()))

    @property
    def about(self) -> LogDevice:
        """What a log says of the device."""
        return self._about

    def alarm(self, execution: str, fired: FiredLimit) -> None:
        """A limit fired: it is in force until somebody or something clears it."""
        report = {
            "reading": {"value": fired.value, "maximum": fired.maximum},
            "x-aboyeur-limit": fired.limit,
            "x-aboyeur-did": fired.action,
            "x-aboyeur-execution": execution,
        }
        self.alarms[fired.limit] = report
        if self.voice is not None:
            self.say([self.voice.limit_fired(report)])

    def fault(self, part: str, detail: str) -> None:
        """A part is broken, and stays so until it is mended."""
        news = self.faults.get(part) != detail
        self.faults[part] = detail
        if news and self.voice is not None:
            self.say([self.voice.fault(part, detail)])

    def clear_alarms(self) -> None:
        """What fired is over."""
        over, self.alarms = self.alarms, {}
        if over and self.voice is not None:
            self.say([self.voice.cleared(limit) for limit in over])

    def _events(self, changes: list[Change]) -> list[Outgoing]:
        return [self.voice.change(change) for change in changes] if self.voice is not None else []

    def _tell(self) -> None:
        self.said.set()
        self.said = anyio.Event()
