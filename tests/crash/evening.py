"""An evening in a household whose hub may die at any moment: people, agents, appliances, and what they know.

Everybody but the hub lives in the test's own process and goes on while the hub is away, as a home does.
"""

import contextlib
import dataclasses
import json
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from cookwala_samples import load_bundle

from config.settings import Broker
from events.mqtt import MqttSettings, MqttTransport
from events.seams import Clock
from hub.event_types import event_registry
from hub.projections.projector import TABLES, Projector
from hub.store import rebuild
from tests.crash.passage import Passage
from tests.household import Household, HubProcess, found_household, running_kitchen, until
from tests.mosquitto_process import Mosquitto

LAUNCHER = Path(__file__).with_name("launcher.py")
DEVICES = tuple(sorted(load_bundle()["devices"]))
AGENT = "agent:planner"
WITHIN_S = 40.0


@dataclass(frozen=True)
class Taken:
    """An order that was answered with 202, and what the answer said."""

    request: dict[str, Any]
    token: str
    execution: str
    state: str


@dataclass
class Evening:
    """The household, its hub's process, and what those outside the hub remember of it."""

    household: Household
    hub: HubProcess
    kitchen: Path
    hashes: dict[str, str]
    agent_token: str
    mandate: dict[str, Any]
    confirmed: list[str]
    """Ids of the events that devices consider delivered: the broker has confirmed them."""
    promised: bool
    """Whether the broker keeps what it confirmed."""
    taken: list[Taken] = field(default_factory=list)

    @property
    def acknowledged(self) -> list[str]:
        """Ids of the events that the hub acknowledged, or was about to after their commit."""
        path = self._acknowledged
        return path.read_text().split() if path.exists() else []

    @property
    def _acknowledged(self) -> Path:
        return self.household.folder.root.parent / "acknowledged"

    def dies_at(self, point: str, nth: int = 1) -> None:
        """From now on the hub dies when it comes to `point` for the `nth` time; once."""
        written = self._point.with_name("point.new")
        written.write_text(f"{nth} {point}")
        written.rename(self._point)

    @property
    def _point(self) -> Path:
        return self.household.folder.root.parent / "point"

    async def start(self, *, ready: bool = True, prefix: tuple[str, ...] = (), **environ: str) -> None:
        """Start the hub with the launcher's `environ`, under the program `prefix`."""
        self.hub.start(
            prefix=prefix,
            environ={
                "CRASH_POINT": str(self._point),
                "CRASH_ACKNOWLEDGED": str(self._acknowledged),
                **environ,
            },
        )
        if ready:
            await self.hub.wait_ready()

    async def all_alive(self) -> bool:
        """Whether the hub has heard every device."""
        async with self.household.client() as http:
            devices = (await http.get("/v1/devices")).json()["devices"]
        return [device["liveness"] for device in devices] == ["alive"] * len(DEVICES)

    async def order(self, dish: str, *, by: str = AGENT, within_s: float = WITHIN_S) -> Taken:
        """Ask for a dish until it is answered, always the same request under the same key."""
        body = self.household.request(dish, self.hashes[dish], requestedBy=by)
        token = self.household.token
        if by == AGENT:
            body["mandate"] = self.mandate
            token = self.agent_token
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):
                await self.say_here()
                async with self.household.client(token) as http:
                    answer = await http.post("/v1/executions", content=json.dumps(body))
                if answer.status_code == 202:
                    said = answer.json()
                    taken = Taken(body, token, said["id"], said["state"])
                    self.taken.append(taken)
                    return taken
                assert answer.status_code == 503, answer.text
            await anyio.sleep(0.05)
        raise AssertionError(f"nobody took the order of {dish} within {within_s} s; {self.hub.output()}")

    async def say_here(self) -> None:
        """The person says that she is there."""
        async with self.household.client() as http:
            await http.post("/v1/presence", json={"present": True})

    async def execution(self, name: str) -> dict[str, Any] | None:
        """What the hub says of an execution; `None` while there is no hub."""
        with contextlib.suppress(httpx.HTTPError):
            async with self.household.client() as http:
                answer = await http.get(f"/v1/executions/{name}")
                if answer.status_code == 200:
                    status: dict[str, Any] = answer.json()
                    return status
        return None

    async def served(self, name: str, within_s: float = WITHIN_S) -> dict[str, Any]:
        """Wait until the dish is finished and its log is verified."""

        async def finished() -> dict[str, Any] | None:
            status = await self.execution(name)
            assert status is None or status["state"] not in ("refused", "stopped", "failed"), status
            logged = status is not None and "x-aboyeur-log" in status
            return status if logged else None

        status: dict[str, Any] = await until(finished, within_s)
        assert status["state"] == "completed", status
        assert status["x-aboyeur-log"]["verdict"] == "ok", status
        return status

    async def everything_heard(self) -> None:
        """Wait until no device has anything left to say and the hub has taken what the broker kept."""

        async def quiet() -> bool:
            for device in DEVICES:
                with closing(sqlite3.connect(self.kitchen / f"{device}.sqlite")) as memory:
                    if memory.execute("SELECT count(*) FROM waiting").fetchone()[0]:
                        return False
            return not self.promised or set(self.confirmed) <= set(self.logged())

        try:
            await until(quiet, 15)
        except AssertionError:
            missing = set(self.confirmed) - set(self.logged())
            raise AssertionError(f"never heard by the hub: {sorted(missing)}") from None

    def logged(self) -> list[str]:
        """The ids of the devices' events in the hub's log, in its order."""
        path = self.household.folder.database
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT body FROM log JOIN payload USING (log_id, seq) WHERE kind = 'event' ORDER BY seq"
            ).fetchall()
        return [json.loads(body)["event"]["id"] for (body,) in rows]

    def started(self) -> Counter[str]:
        """How often each hub execution began at a device, as all the devices remember it."""
        began: Counter[str] = Counter()
        for device in DEVICES:
            with closing(sqlite3.connect(self.kitchen / f"{device}.sqlite")) as memory:
                for (request,) in memory.execute("SELECT request FROM execution"):
                    began[request.rpartition(".")[0]] += 1
        return began

    def states_at_devices(self) -> dict[str, str]:
        """The state of each hub execution as the device that has it remembers it."""
        states = {}
        for device in DEVICES:
            with closing(sqlite3.connect(self.kitchen / f"{device}.sqlite")) as memory:
                for request, status in memory.execute("SELECT request, status FROM execution"):
                    states[request.rpartition(".")[0]] = json.loads(status)["state"]
        return states

    async def check(self) -> None:
        """What must hold after any number of deaths."""
        await self.everything_heard()
        logged = self.logged()
        twice = [name for name, count in Counter(logged).items() if count > 1]
        assert not twice, f"more than once in the log: {twice}"
        lost = set(self.acknowledged) - set(logged)
        async with self.household.client() as http:
            turned = (await http.get("/v1/quarantine")).json()
        assert not lost, f"acknowledged and not in the log: {lost}; turned away: {turned}"
        assert self.acknowledged, "nothing was acknowledged at all"
        if self.promised:
            assert self.confirmed
            lost = set(self.confirmed) - set(logged)
            assert not lost, f"the device was told it arrived, and it is not in the log: {lost}"
        accepted = {taken.execution for taken in self.taken}
        assert self.started() == Counter(accepted)
        for taken in self.taken:
            async with self.household.client(taken.token) as http:
                again = await http.post("/v1/executions", content=json.dumps(taken.request))
            assert again.status_code == 202 and again.json()["id"] == taken.execution
        report = rebuild.check(
            self.household.folder.database,
            Projector(self.household.settings.kitchen, event_registry()).replay,
            TABLES,
        )
        assert report.ok, report
        assert report.entries > 0


async def _be_there(household: Household) -> None:
    """The person: says that she is there when asked, and goes on with what waits for her."""
    while True:
        with contextlib.suppress(httpx.HTTPError):
            async with household.client() as http:
                answer = await http.get("/v1/needs")
                for need in answer.json()["needs"] if answer.status_code == 200 else ():
                    if need["kind"] == "presence":
                        await http.post("/v1/presence", json={"present": True})
                    elif need["kind"] == "resume":
                        await http.post(
                            f"/v1/executions/{need['execution']}/resume",
                            headers={"If-Match": str(need["seq"])},
                        )
        await anyio.sleep(0.1)


@asynccontextmanager
async def an_evening(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    mosquitto: Mosquitto | None = None,
    *,
    speed: float = 4000.0,
    by_way_of: Passage | None = None,
) -> AsyncIterator[Evening]:
    """A household that is ready to cook; at the end its hub is stopped and must close in order.

    Args:
        by_way_of: the hub reaches every device through it.
    """
    changes: dict[str, Any] = {}
    if mosquitto is not None:
        changes["broker"] = Broker(kind="mosquitto", port=mosquitto.port, protocol="5")
    household = found_household(folder / "data", **changes)
    if mosquitto is not None:
        (household.folder.secrets / "hub.broker").write_text(Mosquitto.secret("hub"))
    confirmed: list[str] = []
    monkeypatch.setattr("sim.kitchen.MqttTransport", _transport_that_notes(confirmed, mosquitto))
    hub = HubProcess(household, launcher=LAUNCHER)
    evening = Evening(household, hub, folder / "kitchen", {}, "", {}, confirmed, mosquitto is not None)
    try:
        await evening.start()
        evening.hashes = await household.add_recipes()
        evening.agent_token, evening.mandate = await household.add_agent(AGENT)
        async with running_kitchen(evening.kitchen, speed=speed) as urls:
            assert set(urls) == set(DEVICES)
            if by_way_of is not None:
                urls = {name: await by_way_of.to(url) for name, url in urls.items()}
            await household.pair(evening.kitchen, urls)
            await until(evening.all_alive)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_be_there, household)
                yield evening
                tasks.cancel_scope.cancel()
        assert hub.stop() == 0, hub.output()
        assert "Traceback" not in hub.output()
    finally:
        hub.kill()


def _transport_that_notes(confirmed: list[str], mosquitto: Mosquitto | None) -> Any:
    """What devices use, noting each event that the broker confirmed."""

    class NotingSession:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
            await self._inner.publish(topic, payload, qos=qos, retain=retain)
            if qos:
                confirmed.append(json.loads(payload)["id"])

    class NotingTransport:
        def __init__(self, settings: MqttSettings, clock: Clock) -> None:
            if mosquitto is not None:
                settings = dataclasses.replace(settings, password=Mosquitto.secret(settings.username))
            self._inner = MqttTransport(settings, clock)

        @asynccontextmanager
        async def connect(self) -> AsyncIterator[NotingSession]:
            async with self._inner.connect() as session:
                yield NotingSession(session)

    return NotingTransport


def entries(household: Household, *kinds: str) -> Sequence[Any]:
    """The payloads of the log's entries of these kinds."""
    path = household.folder.database
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT kind, body FROM log JOIN payload USING (log_id, seq) ORDER BY seq"
        ).fetchall()
    return [msgspec.json.decode(body) for kind, body in rows if kind in kinds]
