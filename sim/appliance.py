"""An appliance: what a device that speaks Cookwala Core decides and does by itself (Core §6, §7).

It runs its own dry run, asks for a person itself, holds its own limits, and stops whoever says so. All calls
but `start` return at once; `run` (or a test, with `advance`) lets time pass.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import anyio
import msgspec

from adapters.documents import (
    ExecuteRequest,
    ExecutionStatus,
    LogDevice,
    PresenceWord,
    Refusal,
    State,
)
from events import documents
from events.canonical import canonical, digest, document_hash
from events.catalogue import InventoryItem
from events.seams import Clock, Ids
from events.times import format_date_time
from hub.vocabularies import own_allergen_facts
from mandates.keys import PrivateKey
from safety.allergens import AllergenFacts
from safety.device_documents import Capabilities, SafetyLimits
from safety.enforcement import LimitWatch
from safety.recalls import stops
from safety.vocabulary import Vocabulary
from sim.acceptance import Acceptance, Fetch, Rejected
from sim.cooking import Cooking
from sim.dish import Dish, write_log
from sim.lifecycle import Change, begin, move, path, reborn, revive
from sim.memory import DeviceMemory, Kept, MemoryFull, MemoryUnavailable
from sim.presence import AnswerFault, Presence
from sim.speech import Voice
from sim.station import Station
from sim.withdrawn import Withdrawn

FIRMWARE: Final = "aboyeur-sim 0.1"
START_DEDUP_H: Final = 24
MAX_RESUME_KEYS: Final = 64

_log = logging.getLogger(__name__)


class Appliance:
    """One device."""

    def __init__(
        self,
        *,
        name: str,
        capabilities: bytes,
        limits: bytes,
        vocabulary: Vocabulary,
        clock: Clock,
        ids: Ids,
        key: PrivateKey,
        memory: DeviceMemory,
        fetch: Fetch,
        speed: float = 1.0,
        presence_interval_s: float = 600.0,
        progress_interval_s: float = 2.0,
        altitude_m: float = 0.0,
        allergens: AllergenFacts | None = None,
    ) -> None:
        """
        Args:
            capabilities: the capabilities document it serves, byte for byte.
            limits: the SafetyLimits pack it enforces and serves.
            speed: how much faster than life the physics runs; nothing else is scaled.
            presence_interval_s: how often it asks again whether a person is there.
            progress_interval_s: how often a running step reports its progress.
            allergens: what it knows of allergens; what comes with this program unless given.

        Raises:
            DocumentError: capabilities or limits cannot be read.
        """
        self.name = name
        self.capabilities_document = capabilities
        self.limits_document = limits
        self._capabilities = documents.read(Capabilities, capabilities)
        self._limits = documents.read(SafetyLimits, limits)
        self._withdrawn = Withdrawn(memory)
        self.stock: tuple[InventoryItem, ...] = msgspec.json.decode(
            memory.stock(), type=tuple[InventoryItem, ...]
        )
        """What is in store in it."""
        self._acceptance = Acceptance(
            capabilities=self._capabilities,
            limits=self._limits,
            vocabulary=vocabulary,
            clock=clock,
            fetch=fetch,
            withdrawn=self._withdrawn,
            stock=lambda: self.stock,
            allergens=own_allergen_facts() if allergens is None else allergens,
            altitude_m=altitude_m,
        )
        self.memory = memory
        self.boot = f"{name}-{memory.next_boot()}"
        actor = self._capabilities.actor
        self._station = Station(
            clock=clock,
            ids=ids,
            key=key,
            memory=memory,
            watch=LimitWatch(self._limits, vocabulary),
            vocabulary=vocabulary,
            presence=Presence(presence_interval_s),
            about=LogDevice(
                vendor=actor.vendor or "unknown",
                model=actor.model or "unknown",
                firmware=self._capabilities.firmware or FIRMWARE,
                capabilities_hash=document_hash(documents.parse(capabilities)),
                safety_limits=f"{self._limits.id}@{self._limits.version}",
            ),
            speed=speed,
            progress_interval_s=progress_interval_s,
        )
        self._cooking: Cooking | None = None
        self._resumed: dict[str, str] = {}
        self._starting = anyio.Lock()
        self._woken = anyio.Event()
        kitchen = memory.kitchen()
        if kitchen is not None:
            self.join(kitchen)
            for kept in memory.open():
                self._give_up(kept)

    # --- what it is ------------------------------------------------------------------------------------

    @property
    def station(self) -> Station:
        """Its surroundings: what it wants to say, and what alarms are in force."""
        return self._station

    @property
    def busy_with(self) -> str | None:
        """The execution it is busy with."""
        return self._cooking.life.execution if self._cooking else None

    def join(self, kitchen: str) -> Voice:
        """Belong to a kitchen, as its pairing says. Idempotent."""
        station = self._station
        if station.voice is None or station.voice.kitchen != kitchen:
            self.memory.join(kitchen)
            station.voice = Voice(kitchen, self.name, self.boot, station.clock, station.ids)
        return station.voice

    def heat_w(self) -> float:
        """The power its heater gives right now, in the physics."""
        cooking = self._cooking
        body = cooking.dish.run.body if cooking and cooking.dish.entered else None
        return 0.0 if body is None else body.heat_w(self._station.physical_s())

    def moving(self) -> bool:
        """Whether anything in it works right now."""
        cooking = self._cooking
        return cooking is not None and cooking.dish.entered and cooking.dish.run.active

    def temperature_c(self) -> float | None:
        """The true temperature of what is on it."""
        cooking = self._cooking
        if cooking is None or not cooking.dish.entered:
            return None
        return cooking.dish.run.temperature_c(self._station.physical_s())

    # --- what it is asked ------------------------------------------------------------------------------

    async def start(self, raw: bytes, header_key: str | None = None) -> ExecutionStatus:
        """Take an ExecuteRequest. The same key with the same content again returns the same execution.

        Raises:
            DocumentError: it cannot be read.
            Rejected: keys differ (400), another content under the key (422), the request was taken under
                another key (409); not now (503): the device belongs to no kitchen yet, it remembers too much,
                or the hub is silent. The same request may come again.
        """
        plain = documents.parse(raw)
        request = documents.from_plain(ExecuteRequest, plain)
        if header_key is not None and header_key != request.idempotency_key:
            raise Rejected(400, "idempotency_key_mismatch", "header and body name different keys")
        # How old a person's word is changes when a hub sends again; what is asked for does not.
        asked = {name: value for name, value in plain.items() if not name.startswith("x-")}
        body = digest(canonical(asked))
        async with self._starting:
            kept = self.memory.by_key(request.idempotency_key)
            if kept is not None:
                if kept.body != body:
                    raise Rejected(422, "idempotency_key_reused", "the key came before with another request")
                return kept.status
            return await self._take(request, body)

    async def _take(self, request: ExecuteRequest, body: str) -> ExecutionStatus:
        station = self._station
        if station.voice is None:
            raise Rejected(503, "not_paired", "the device belongs to no kitchen yet")
        known = self.memory.by_request(request.id)
        if known is not None and known.status.state != "refused" and not self._barred(request):
            raise Rejected(409, "conflict", "the request was taken before under another key")
        dish: Dish | None = None
        refusal: Refusal | None = None
        if not self._barred(request):
            refusal = self._acceptance.objection(request, busy=self._cooking is not None)
            if refusal is None:
                recipe = await self._acceptance.recipe(request)
                # Somebody may have stopped it while the recipe came.
                if not self._barred(request):
                    refusal, dish = self._acceptance.rehearse(request, recipe)
        first = begin(station.ids.new("ex"), request.id, self.boot, station.now_text(), refusal)
        changes = [first]
        if dish is None and refusal is None:
            changes.append(move(first.life, "stopped", station.now_text()))
        try:
            station.begin(changes, request, body)
        except MemoryFull as error:
            raise Rejected(503, "memory_full", str(error)) from None
        if dish is not None:
            station.presence.forget()
            self._cooking = Cooking(station, first.life, request, dish)
            self._wake()
        return changes[-1].life.status()

    def status(self, ref: str) -> ExecutionStatus | None:
        """The status of an execution, by its id or the id of its request."""
        kept = self.memory.by_ref(ref)
        return kept.status if kept else None

    def log(self, ref: str) -> bytes | None:
        """The signed log of an execution that is over."""
        kept = self.memory.by_ref(ref)
        return kept.log if kept else None

    def stop(self, ref: str) -> ExecutionStatus | None:
        """Stop, in whatever state. Heat and motion are off before anything is written down (Core §6.2).

        None when neither execution nor request is known: then nothing starts under this id for a day.

        Raises:
            MemoryUnavailable: it is at rest, but that is not written down yet.
        """
        cooking = self._cooking
        if cooking is not None and ref in (cooking.life.execution, cooking.life.request):
            try:
                cooking.stop()
            finally:
                self._settle()
            self.memory.bar(cooking.life.request, self._station.clock.wall())
            return cooking.life.status()
        kept = self.memory.by_ref(ref)
        self.memory.bar(kept.status.request if kept else ref, self._station.clock.wall())
        return kept.status if kept else None

    def resume(self, ref: str, seq: int, key: str) -> ExecutionStatus:
        """Go on after a person acted.

        Raises:
            Rejected: 404 unknown, 412 the execution has moved on, 409 it waits for nobody.
            MemoryUnavailable: the dish is given up, because the device cannot remember what it does.
        """
        known = self.status(ref)
        if known is None:
            raise Rejected(404, "not_found", "neither an execution nor a request of this device")
        if self._resumed.get(key) == known.id:
            return known
        if seq != known.seq:
            raise Rejected(412, "precondition_failed", f"seq is {known.seq}")
        cooking = self._cooking
        waits = known.state in ("needs_human", "paused")
        if cooking is None or cooking.life.execution != known.id or cooking.barred or not waits:
            raise Rejected(409, "conflict", f"the execution is {known.state} and waits for nobody")
        while len(self._resumed) >= MAX_RESUME_KEYS:
            del self._resumed[next(iter(self._resumed))]
        self._resumed[key] = known.id
        with self._or_fail_safe(cooking):
            cooking.resume()
        return cooking.life.status()

    def present(self, word: PresenceWord) -> AnswerFault | None:
        """Take a person's word that she is there; None when it answers the open question (ruling P2)."""
        station = self._station
        fault = station.presence.answer(word.nonce, word.age_s, station.clock.monotonic())
        if fault is None:
            self._somebody_is_there()
        return fault

    def learn_recalls(self, feed: bytes, keys: bytes) -> None:
        """Take what the hub says is recalled; what is to be stopped stops here, whoever started it.

        Raises:
            FeedError: no such feed.
            MemoryUnavailable: it cannot be remembered, or what was stopped cannot be written down.
        """
        try:
            self._withdrawn.learn(feed, keys, self._station.clock.wall())
        finally:
            self._stop_recalled()

    def _stop_recalled(self) -> None:
        cooking = self._cooking
        if cooking is None:
            return
        for name in (cooking.dish.recipe, cooking.request.recipe):
            recall = self._withdrawn.strictest(recipe=name, recipe_hash=cooking.request.recipe_hash)
            if recall is not None and stops(recall):
                _log.warning("%s: %s recalled what is cooking (%s)", self.name, recall.issuer, recall.id)
                self.stop(cooking.life.execution)
                return

    def put_in_store(self, items: Sequence[InventoryItem]) -> None:
        """What is in store in it is this now; it says so.

        Raises:
            MemoryUnavailable: nothing was changed.
        """
        self.memory.put_in_store(msgspec.json.encode(list(items)))
        self.stock = tuple(items)
        if self._station.voice is not None:
            self._station.say([self._station.voice.inventory(self.stock)])

    # --- its own controls ------------------------------------------------------------------------------

    def press_stop(self) -> None:
        """The red button."""
        if self._cooking is not None:
            self.stop(self._cooking.life.execution)

    def press_here(self) -> None:
        """The button that says somebody is there."""
        self._station.presence.seen(self._station.clock.monotonic())
        self._somebody_is_there()

    def press_pause(self) -> None:
        """The pause button: heat and motion off until somebody resumes."""
        if self._cooking is not None:
            with self._or_fail_safe(self._cooking):
                self._cooking.pause()

    def stick_heater(self) -> None:
        """Break the thermostat of the present step: the heater stays on until a limit cuts it."""
        if self._cooking is not None and self._cooking.dish.entered:
            self._cooking.dish.run.stick_heater(self._station.physical_s())
            self._station.fault("thermostat", "the heater does not switch off")
            self._wake()

    def pull_plug(self) -> None:
        """Break the heater of the present step: it stays cold whatever its controller wants."""
        if self._cooking is not None and self._cooking.dish.entered:
            self._cooking.dish.run.lose_heater(self._station.physical_s())
            self._station.fault("heater", "it stays cold")
            self._wake()

    # --- time ------------------------------------------------------------------------------------------

    def due(self) -> float | None:
        """When something next happens by itself, in monotonic seconds; None: not before somebody acts."""
        following = self._cooking.next() if self._cooking else None
        return None if following is None else following.at_s

    def advance(self) -> None:
        """Let everything happen that is due by now."""
        while self._cooking is not None:
            following = self._cooking.next()
            if following is None or following.at_s > self._station.clock.monotonic():
                return
            try:
                with self._or_fail_safe(self._cooking):
                    self._cooking.happen(following)
            except MemoryUnavailable as error:
                _log.error("%s gives its dish up: its memory cannot be written: %s", self.name, error)
                return

    async def run(self) -> None:
        """Live: let things happen when they are due, until cancelled."""
        while True:
            woken = self._woken = anyio.Event()
            self.advance()
            due_s = self.due()
            if due_s is None:
                await woken.wait()
                continue
            async with anyio.create_task_group() as group:
                group.start_soon(self._sleep_until, due_s, group.cancel_scope)
                await woken.wait()
                group.cancel_scope.cancel()

    async def _sleep_until(self, due_s: float, waiting: anyio.CancelScope) -> None:
        clock = self._station.clock
        await clock.sleep(max(0.0, due_s - clock.monotonic()))
        waiting.cancel()

    # --- the bottom ------------------------------------------------------------------------------------

    def _barred(self, request: ExecuteRequest) -> bool:
        return self.memory.barred(request.id, self._station.clock.wall())

    def _somebody_is_there(self) -> None:
        if self._cooking is not None:
            with self._or_fail_safe(self._cooking):
                self._cooking.somebody_is_there()

    @contextmanager
    def _or_fail_safe(self, cooking: Cooking) -> Iterator[None]:
        """Whatever cannot be remembered is not done: the dish is given up, heat and motion first."""
        try:
            yield
        except MemoryUnavailable:
            cooking.fail_safe()
            raise
        finally:
            self._settle()

    def _settle(self) -> None:
        """After a change: a dish that is over leaves the device, and `run` looks at the clock again."""
        if self._cooking is not None and self._cooking.life.final:
            self._cooking = None
            self._station.presence.forget()
        self._wake()

    def _wake(self) -> None:
        self._woken.set()

    def _give_up(self, kept: Kept) -> None:
        """After a reboot: what was going on is over, by Core's shortest way; its heat went with the power."""
        station = self._station
        life = reborn(revive(kept.status), self.boot)
        end: State = "stopped" if life.state == "stopping" else "failed"
        changes: list[Change] = []
        for state in path(life.state, end):
            changes.append(move(life, state, station.now_text()))
            life = changes[-1].life
        log: dict[str, Any] = write_log(
            log_id=f"log-{life.execution}"[:128],
            execution=life.execution,
            request=life.request,
            recipe=kept.recipe,
            recipe_hash=kept.recipe_hash,
            device=station.about,
            outcome="aborted_safe" if end == "stopped" else "failed",
            started_at=format_date_time(kept.began_at),
            ended_at=station.now_text(),
            servings=None,
            dish=None,
        )
        station.change(changes, station.signed(log))


def served_capabilities(
    raw: bytes, *, url: str, keys: list[dict[str, Any]], start_dedup_h: int = START_DEDUP_H
) -> bytes:
    """A capabilities document as a device serves it: with its real address, keys and promise (ruling D8).

    Raises:
        DocumentError: `raw` is no capabilities document.
    """
    documents.read(Capabilities, raw)
    plain: dict[str, Any] = documents.parse(raw)
    plain["interfaces"] = {**plain["interfaces"], "cookwalaHttp": url}
    plain["x-aboyeur-keys"] = keys
    plain["x-aboyeur-start-dedup-h"] = start_dedup_h
    return msgspec.json.encode(plain)
