"""A kitchen on a clock of its own: time passes only when a test says so."""

import asyncio
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapters.documents import ExecuteRequest, ExecutionLog, ExecutionStatus, LogStep, PresenceWord
from events import documents
from events.canonical import document_hash
from events.times import format_date_time
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import verify_document
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary
from sim.acceptance import RecipeUnavailable
from sim.appliance import Appliance, served_capabilities
from sim.memory import DeviceMemory

START = datetime(2026, 10, 5, 12, 0, tzinfo=UTC)


class FakeClock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.offset = timedelta()
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.seconds - 1_000.0) + self.offset

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self.seconds + seconds, woken))
        await woken.wait()

    def turn(self, to_s: float) -> None:
        self.seconds = max(self.seconds, to_s)
        for due_s, woken in self._sleepers:
            if due_s <= self.seconds:
                woken.set()
        self._sleepers = [sleeper for sleeper in self._sleepers if not sleeper[1].is_set()]


class CountedIds:
    """Identifiers that only count."""

    def __init__(self, prefix: str = "") -> None:
        self._numbers = itertools.count(1)
        self._prefix = prefix

    def new(self, prefix: str) -> str:
        return f"{prefix}-{self._prefix}{next(self._numbers):06d}"

    def secret(self) -> str:
        return f"secret-{self._prefix}{next(self._numbers):06d}"


class Bench:
    """One simulated device with everything around it, and a person who may or may not answer."""

    def __init__(self, samples: dict[str, Any], folder: Path, device: str, **options: Any) -> None:
        self.samples = samples
        self.folder = folder
        self.device = device
        self.options = options
        self.clock = FakeClock()
        self.recipes: dict[str, bytes] = {
            document_hash(recipe): json.dumps(recipe).encode() for recipe in samples["recipes"].values()
        }
        self.key = PrivateKey.from_seed(hashlib.sha256(device.encode()).digest(), kid=f"{device}-key")
        self.record: KeyRecord = self.key.record(actor=device, valid_from=START - timedelta(days=1))
        self.boots = 0
        self.fetched: list[str] = []
        self.memory: DeviceMemory | None = None
        self.appliance = self.boot()

    def boot(self) -> Appliance:
        """Switch the device on (again): only what is on its disk is left."""
        if self.memory is not None:
            self.memory.close()
        self.boots += 1
        self.memory = DeviceMemory(self.folder / f"{self.device}.sqlite", patience_s=0.05)
        self.appliance = Appliance(
            name=self.device,
            capabilities=served_capabilities(
                json.dumps(self.samples["devices"][self.device]).encode(),
                url="http://127.0.0.1:9101",
                keys=[msgspec.to_builtins(self.record)],
            ),
            limits=self.options.get("limits", json.dumps(self.samples["safetyLimits"]).encode()),
            vocabulary=vocabulary(),
            clock=self.clock,
            ids=CountedIds(f"{self.boots}-"),
            key=self.key,
            memory=self.memory,
            fetch=self.options.get("fetch", self.fetch),
            speed=self.options.get("speed", 120.0),
            presence_interval_s=self.options.get("presence_interval_s", 600.0),
        )
        self.appliance.join("home")
        return self.appliance

    async def fetch(self, recipe_hash: str) -> bytes:
        self.fetched.append(recipe_hash)
        if recipe_hash not in self.recipes:
            raise RecipeUnavailable("404")
        return self.recipes[recipe_hash]

    def request(self, recipe: str, number: int = 1, **changes: Any) -> bytes:
        """An ExecuteRequest for one of the sample recipes, as a hub sends it with a person there."""
        document = self.samples["recipes"][recipe]
        body: dict[str, Any] = {
            "core": "0.2.0",
            "kind": "ExecuteRequest",
            "id": f"req-{number}",
            "recipe": f"cw:cookwala.ai:{document['id']}",
            "recipeHash": document_hash(document),
            "requestedBy": "agent:planner",
            "idempotencyKey": f"idempotent-{number}",
            "x-aboyeur-presence": {"by": "person:anna", "saidAt": format_date_time(START), "ageS": 1.0},
        }
        body.update(changes)
        return json.dumps({name: value for name, value in body.items() if value is not None}).encode()

    async def start(self, recipe: str, number: int = 1, **changes: Any) -> ExecutionStatus:
        return await self.appliance.start(self.request(recipe, number, **changes))

    def said(self) -> list[dict[str, Any]]:
        """Every event that waits for the broker, in order."""
        assert self.memory is not None
        return [json.loads(event.payload) for event in self.memory.waiting(100_000)]

    def open_nonce(self) -> str | None:
        question = self.appliance.station.presence.question
        return None if question is None else question.nonce

    def answer(self, nonce: str | None = None, age_s: float = 0.0) -> str | None:
        word = PresenceWord(
            by="person:anna",
            said_at=format_date_time(self.clock.wall()),
            age_s=age_s,
            nonce=nonce if nonce is not None else self.open_nonce(),
        )
        return self.appliance.present(word)

    def turn(self, seconds: float) -> None:
        """Let `seconds` pass, event by event."""
        end_s = self.clock.seconds + seconds
        while (due_s := self.appliance.due()) is not None and due_s <= end_s:
            self.clock.turn(due_s)
            self.appliance.advance()
        self.clock.turn(end_s)
        self.appliance.advance()

    def turn_until(self, ref: str, *states: str, answers: bool = True, most: int = 5_000) -> ExecutionStatus:
        """Let time pass until the execution is in one of `states`; the person answers every question."""
        for _ in range(most):
            status = self.appliance.status(ref)
            assert status is not None
            if status.state in states:
                return status
            if answers and self.open_nonce() is not None:
                assert self.answer() is None
                continue
            due_s = self.appliance.due()
            assert due_s is not None, f"nothing will happen any more while {status.state}"
            self.clock.turn(due_s)
            self.appliance.advance()
        raise AssertionError(f"never came to {states}")

    def turn_to_step(self, ref: str, node: str, most: int = 500) -> None:
        """Let time pass until the device works on `node`; the person answers every question."""
        for _ in range(most):
            status = self.appliance.status(ref)
            assert status is not None
            if self.open_nonce() is not None:
                assert self.answer() is None
            elif status.step is not None and status.step.node == node and self.appliance.moving():
                return
            else:
                due_s = self.appliance.due()
                assert due_s is not None, f"nothing will happen any more while {status.state}"
                self.clock.turn(due_s)
                self.appliance.advance()
        raise AssertionError(f"never came to {node}")

    def cook(self, ref: str) -> ExecutionStatus:
        """Let time pass until the dish is over; the person answers and helps whenever she is needed."""
        for number in range(200):
            status = self.turn_until(ref, "needs_human", "completed", "stopped", "failed", "refused")
            if status.state != "needs_human":
                return status
            self.clock.turn(self.clock.seconds + 5)
            self.appliance.resume(ref, status.seq, f"resume-{status.seq}-{number}")
        raise AssertionError("a person was needed without end")

    def log_of_steps(self, node: str) -> LogStep:
        """The line of a step that is over, of the dish that is not."""
        cooking = self.appliance._cooking
        assert cooking is not None
        return next(step for step in cooking.dish.steps if step.node == node)

    def log_of(self, ref: str) -> ExecutionLog:
        """The device's log, after its signature was verified with the device's published key."""
        raw = self.appliance.log(ref)
        assert raw is not None
        verdict = verify_document(json.loads(raw), KeyRing([self.record]))
        assert verdict.ok and verdict.form == "header", verdict
        return documents.read(ExecutionLog, raw)


def vocabulary() -> Vocabulary:
    return Vocabulary.from_bytes(resources.files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())


@pytest.fixture(scope="session")
def samples() -> dict[str, Any]:
    """The data of the public sample client."""
    raw = resources.files("cookwala_samples").joinpath("data/bundle.json").read_bytes()
    bundle: dict[str, Any] = json.loads(raw)
    return bundle


@pytest.fixture
def bench(samples: dict[str, Any], tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches: `bench("demo-hob-robot", speed=1.0)`."""
    made: list[Bench] = []

    def make(device: str = "demo-hob-robot", **options: Any) -> Bench:
        one = Bench(samples, tmp_path / f"bench-{len(made)}", device, **options)
        made.append(one)
        return one

    yield make
    for one in made:
        assert one.memory is not None
        one.memory.close()


__all__ = ["Bench", "CountedIds", "ExecuteRequest", "FakeClock", "bench", "samples", "vocabulary"]
