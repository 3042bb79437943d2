"""A hub whose appliances are scripted at the adapter's seam, and one that serves a whole module of tests."""

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
from cookwala_samples import load_bundle
from msgspec.structs import replace

from adapters.documents import ExecuteRequest, ExecutionStatus, HumanNeeded, PresenceWord, State
from adapters.protocol import DeviceAdapter, DeviceError, StopAnswer
from adapters.states import FINAL
from hub.records.log.head import HeadKeeper
from hub.service import Seams, serve
from mandates.keys import PrivateKey
from tests.household import Household, found_household, running_hub

SAMPLES = load_bundle()


class ScriptedDevice:
    """A `DeviceAdapter` that answers as a test says: by default as an appliance that does what it is asked.

    Attributes:
        said: every call in order, as (verb, reference).
        starts: the requests that reached it.
        on: a function in place of the answer to a verb; awaited with the call's arguments.
        heating: the executions it is at.
    """

    def __init__(self, name: str, like: str = "demo-hob-robot", *, deduplicates: bool = True) -> None:
        self.name = name
        self.key = PrivateKey.from_seed(name.encode().ljust(32, b"0")[:32], kid=f"{name}-key")
        record = self.key.record(actor=name, valid_from=datetime(2026, 1, 1, tzinfo=UTC))
        self.document: dict[str, Any] = {
            **SAMPLES["devices"][like],
            "x-aboyeur-keys": [msgspec.to_builtins(record)],
        }
        if deduplicates:
            self.document["x-aboyeur-start-dedup-h"] = 24
        self.limits: dict[str, Any] = SAMPLES["safetyLimits"]
        self.said: list[tuple[str, str]] = []
        self.starts: list[ExecuteRequest] = []
        self.words: list[PresenceWord] = []
        self.on: dict[str, Callable[..., Awaitable[Any]]] = {}
        self.executions: dict[str, ExecutionStatus] = {}
        self.barred: set[str] = set()
        self.logs: dict[str, bytes] = {}

    @property
    def url(self) -> str:
        return f"http://{self.name}.invalid:9"

    @property
    def heating(self) -> list[str]:
        return [one.id for one in self.executions.values() if one.state not in (*FINAL, "accepted")]

    def find(self, ref: str) -> ExecutionStatus:
        for status in self.executions.values():
            if ref in (status.id, status.request):
                return status
        raise DeviceError(404, "not_found", "no such execution")

    def put(self, ref: str, state: State, **more: Any) -> ExecutionStatus:
        """The execution goes on to `state`."""
        now = self.find(ref)
        self.executions[now.id] = replace(now, state=state, seq=now.seq + 1, **more)
        return self.executions[now.id]

    def waits(self, ref: str, why: str = "look at it") -> None:
        self.put(ref, "needs_human", human_needed=HumanNeeded(why=why))

    async def capabilities(self) -> bytes:
        return await self._answer("capabilities", "", self._capabilities)

    async def safety_limits(self) -> bytes:
        return await self._answer("safety_limits", "", self._safety_limits)

    async def start(self, request: ExecuteRequest) -> ExecutionStatus:
        self.starts.append(request)
        return await self._answer("start", request.id, self.begin, request)

    async def status(self, execution: str) -> ExecutionStatus:
        return await self._answer("status", execution, self._status, execution)

    async def stop(self, execution: str, requested_by: str, reason: str | None = None) -> StopAnswer:
        return await self._answer("stop", execution, self.halt, execution)

    async def resume(self, execution: str, seq: int, key: str, by: str) -> ExecutionStatus:
        return await self._answer("resume", execution, self._resume, execution, seq)

    async def log(self, execution: str) -> bytes:
        return await self._answer("log", execution, self._log, execution)

    async def present(self, word: PresenceWord) -> None:
        self.words.append(word)
        await self._answer("present", word.nonce or "", self._present, word)

    async def close(self) -> None:
        """Nothing to give up."""

    async def _answer(self, verb: str, ref: str, usual: Callable[..., Awaitable[Any]], *given: Any) -> Any:
        self.said.append((verb, ref))
        return await self.on.get(verb, usual)(*given)

    async def _capabilities(self) -> bytes:
        return msgspec.json.encode(self.document)

    async def _safety_limits(self) -> bytes:
        return msgspec.json.encode(self.limits)

    async def begin(self, request: ExecuteRequest) -> ExecutionStatus:
        """What a start usually comes to: it heats, unless it was stopped before it came."""
        known = [one for one in self.executions.values() if one.request == request.id]
        if known:
            return known[0]
        status = ExecutionStatus(
            core="0.2.0",
            kind="ExecutionStatus",
            id=f"{self.name}-{len(self.executions) + 1:04d}",
            request=request.id,
            state="stopped" if request.id in self.barred else "running",
            seq=2,
            updated_at="2026-01-01T00:00:00Z",
            x_boot="boot-1",
        )
        self.executions[status.id] = status
        return status

    async def _status(self, execution: str) -> ExecutionStatus:
        return self.find(execution)

    async def halt(self, execution: str) -> StopAnswer:
        """What a stop usually comes to: it is over, or barred."""
        try:
            known = self.find(execution)
        except DeviceError:
            self.barred.add(execution)
            return StopAnswer("landed")
        if known.state not in FINAL:
            known = self.put(execution, "stopped")
        return StopAnswer("landed", known)

    async def _resume(self, execution: str, seq: int) -> ExecutionStatus:
        if self.find(execution).seq != seq:
            raise DeviceError(412, "precondition_failed", "moved on")
        return self.put(execution, "running", human_needed=None)

    async def _log(self, execution: str) -> bytes:
        found = self.logs.get(self.find(execution).id)
        if found is None:
            raise DeviceError(404, "not_found", "no log")
        return found

    async def _present(self, word: PresenceWord) -> None:
        return None


class Scripts:
    """The scripted devices of a house, put in at the adapter's seam."""

    def __init__(self, *devices: ScriptedDevice) -> None:
        self._by_url = {device.url: device for device in devices}

    def seams(self, **more: Any) -> Seams:
        return Seams(adapter=self._adapter, **more)

    def _adapter(self, real: DeviceAdapter) -> DeviceAdapter:
        found = self._by_url.get(getattr(real, "_base", ""))
        return real if found is None else found


class FailingHeads:
    """Put in for the keeper of the log's head: writing fails while `broken` is set."""

    def __init__(self) -> None:
        self.broken = False

    def __call__(self, keeper: HeadKeeper) -> "FailingHeads":
        self._keeper = keeper
        return self

    def read(self) -> Any:
        return self._keeper.read()

    def write(self, head: Any) -> None:
        if self.broken:
            raise OSError("no space left on device")
        self._keeper.write(head)


async def register(household: Household, *devices: ScriptedDevice) -> None:
    """Register scripted devices at a running hub."""
    await household.pair(household.folder.root, {device.name: device.url for device in devices})


@dataclass
class House:
    """A running hub with what a test needs of it."""

    household: Household
    devices: tuple[ScriptedDevice, ...]
    recipes: dict[str, str] = field(default_factory=dict)

    def client(self, token: str | None = "") -> httpx.AsyncClient:
        return self.household.client(token)

    def order(self, recipe: str = "lentil-soup", /, **more: Any) -> dict[str, Any]:
        return {**self.household.request(recipe, self.recipes[recipe]), **more}


@asynccontextmanager
async def house(
    folder: Path, *devices: ScriptedDevice, changes: dict[str, Any] | None = None, **seams: Any
) -> AsyncGenerator[House]:
    """A new hub with `devices` registered and the sample recipes added, running."""
    household = found_household(folder / "hub", **(changes or {}))
    async with running_hub(household, seams=Scripts(*devices).seams(**seams)):
        await register(household, *devices)
        yield House(household, devices, await household.add_recipes())


@contextmanager
def house_in_a_thread(folder: Path, *devices: ScriptedDevice) -> Generator[House]:
    """The same in a thread of its own, for a module of tests that leave each other alone."""
    household = found_household(folder / "hub")
    built = House(household, devices)
    up = threading.Event()
    fault: list[BaseException] = []
    end: list[Callable[[], None]] = []

    async def main() -> None:
        stopping, ready = anyio.Event(), anyio.Event()
        portal = anyio.from_thread.BlockingPortal()
        async with portal, anyio.create_task_group() as tasks:
            end.append(lambda: portal.start_task_soon(stopping.set))
            tasks.start_soon(
                lambda: serve(
                    household.settings,
                    household.clock,
                    household.ids,
                    stopping=stopping,
                    seams=Scripts(*devices).seams(),
                    ready=ready,
                )
            )
            with anyio.fail_after(15):
                await ready.wait()
            await register(household, *devices)
            built.recipes.update(await household.add_recipes())
            up.set()
            await stopping.wait()

    def run() -> None:
        try:
            anyio.run(main)
        except BaseException as error:  # told to the test that waits for it
            fault.append(error)
        finally:
            up.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        up.wait(30)
        if fault:
            raise fault[0]
        yield built
    finally:
        if end:
            end[0]()
        thread.join(30)
        assert not thread.is_alive()
