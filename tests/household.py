"""A whole household for tests: a hub (in this process or its own), its people, agents and appliances.

`running_hub` runs `hub.service.serve` in the test's own event loop with real HTTP, broker and store;
`HubProcess` runs it in a process that can be killed. `running_kitchen` runs the simulated appliances.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
from cookwala_samples import load_bundle
from msgspec.structs import replace

from config.paths import DataFolder, write_private
from config.settings import Broker, Http, Settings, starting_file
from events.seams import Clock, Ids, SystemClock, SystemIds
from hub import enrol
from hub.keyfiles import read_key
from hub.service import Seams, serve
from mandates.signature import sign_document
from sim.kitchen import run_kitchen
from tests.mosquitto_process import free_port

OWNER = "person:anna"
ROOT = Path(__file__).parents[1]


@dataclass
class Household:
    """A hub's data folder, its owner, and how to reach it."""

    settings: Settings
    token: str
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=SystemIds)

    @property
    def url(self) -> str:
        return self.settings.url()

    @property
    def folder(self) -> DataFolder:
        return self.settings.folder

    def client(self, token: str | None = "", **more: Any) -> httpx.AsyncClient:
        """An HTTP client: the owner's, that of `token`, or (None) one without a token."""
        secret = self.token if token == "" else token
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        # plain HTTP: a context with all the system's certificates would only take time
        more.setdefault("verify", False)
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=15, trust_env=False, **more)

    async def add_recipes(self) -> dict[str, str]:
        """Add the sample recipes; their hashes by short name: koshari, lentil-soup, shakshuka, …"""
        hashes = {}
        async with self.client() as http:
            for name, recipe in load_bundle()["recipes"].items():
                answer = await http.post("/v1/recipes", content=json.dumps(recipe).encode())
                assert answer.status_code == 201, answer.text
                hashes[name] = answer.json()["hash"]
        return hashes

    async def pair(self, folder: Path, devices: dict[str, str]) -> None:
        """Register `devices` (name to URL) and hand each its pairing in `folder`."""
        async with self.client() as http:
            for name, url in devices.items():
                answer = await http.post("/v1/devices", json={"name": name, "url": url})
                assert answer.status_code == 201, answer.text
                write_private(folder / f"{name}.pairing.json", answer.content)

    async def add_agent(
        self, agent: str, scopes: tuple[str, ...] = ("start_cooking",), lasts: timedelta = timedelta(hours=1)
    ) -> tuple[str, dict[str, Any]]:
        """Sign and register a mandate of the owner for `agent`; the agent's token and the mandate."""
        mandate = self.mandate(agent, scopes, lasts)
        async with self.client() as http:
            answer = await http.post("/v1/mandates", content=msgspec.json.encode(mandate))
            assert answer.status_code == 201, answer.text
            return answer.json()["token"], mandate

    def mandate(self, agent: str, scopes: tuple[str, ...], lasts: timedelta) -> dict[str, Any]:
        """A mandate of the owner for `agent`, signed with her key."""
        now = self.clock.wall()
        document = {
            "principal": OWNER,
            "agent": agent,
            "scopes": list(scopes),
            "expires": (now + lasts).isoformat().replace("+00:00", "Z"),
        }
        return sign_document(document, read_key(self.folder, OWNER), signed_at=now)

    def request(self, recipe: str, recipe_hash: str, **more: Any) -> dict[str, Any]:
        """An ExecuteRequest of the owner for the sample recipe `recipe`; `more` overrides members."""
        name = self.ids.new("order")
        return {
            "core": "0.2.0",
            "kind": "ExecuteRequest",
            "id": name,
            "recipe": f"cw:cookwala.ai:example-{recipe}",
            "recipeHash": recipe_hash,
            "requestedBy": OWNER,
            "idempotencyKey": f"key-{name}",
            **more,
        }


def found_household(folder: Path, **changes: Any) -> Household:
    """Make a hub in `folder` with free ports and `OWNER` as its owner; `changes` are settings' members."""
    settings = Settings(data=folder, http=Http(port=free_port()), broker=Broker(port=free_port()))
    settings = replace(settings, **changes)
    settings.folder.make()
    enrolled = enrol.create(folder, settings, OWNER, SystemClock(), SystemIds())
    write_private(settings.folder.token(OWNER), enrolled.token.encode())
    write_private(settings.folder.settings, starting_file(settings).encode())
    return Household(settings, enrolled.token)


@asynccontextmanager
async def running_hub(
    household: Household,
    *,
    seams: Seams | None = None,
    clock: Clock | None = None,
    accept_damage_by: str | None = None,
) -> AsyncGenerator[None]:
    """Run the household's hub in this event loop, from when it is ready to when it has closed."""
    stopping, ready = anyio.Event(), anyio.Event()

    async def run() -> None:
        await serve(
            household.settings,
            clock or household.clock,
            household.ids,
            stopping=stopping,
            seams=seams,
            ready=ready,
            accept_damage_by=accept_damage_by,
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(15):
            await ready.wait()
        try:
            yield
        finally:
            stopping.set()


@asynccontextmanager
async def running_kitchen(folder: Path, **options: Any) -> AsyncGenerator[dict[str, str]]:
    """Run the sample appliances in this event loop; the base URL of each by name."""
    folder.mkdir(exist_ok=True)
    urls: dict[str, str] = {}
    ready = anyio.Event()

    def answer(found: Any) -> None:
        urls.update(found)
        ready.set()

    options = {"speed": 2000.0, "base_port": 0, "heartbeat_s": 1.0, **options}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: run_kitchen(folder, ready=answer, **options))
        with anyio.fail_after(15):
            await ready.wait()
        try:
            yield urls
        finally:
            tasks.cancel_scope.cancel()


async def until(condition: Any, within_s: float = 15.0, every_s: float = 0.05) -> Any:
    """Wait until the async `condition()` is true, and return it; fails with what it was instead."""
    value = None
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        value = await condition()
        if value:
            return value
        await anyio.sleep(every_s)
    raise AssertionError(f"not within {within_s} s; last: {value!r}")


class HubProcess:
    """The household's hub in a process of its own, which can be killed.

    `launcher` is a Python file run instead of `aboyeur serve`; it gets the data folder as its argument.
    """

    def __init__(self, household: Household, *, launcher: Path | None = None) -> None:
        self._household = household
        self._launcher = launcher
        self._log = household.folder.root / "hub.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self, *arguments: str, environ: dict[str, str] | None = None, prefix: tuple[str, ...] = ()
    ) -> None:
        """Start it; `wait_ready` says when it answers. `prefix` runs it under another program (strace)."""
        data = str(self._household.folder.root)
        if self._launcher is None:
            main = "from hub.cli.main import main; main()"
            command = [sys.executable, "-c", main, "--data", data, "serve", *arguments]
        else:
            command = [sys.executable, str(self._launcher), data, *arguments]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*prefix, *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def wait_ready(self, within_s: float = 20.0) -> None:
        """Wait until the hub answers and is connected to its broker."""

        async def connected() -> bool:
            if self.process is not None and self.process.poll() is not None:
                raise AssertionError(f"the hub ended with {self.process.returncode}: {self.output()}")
            try:
                async with self._household.client(None) as http:
                    return bool((await http.get("/health")).json()["broker"] == "connected")
            except httpx.HTTPError:
                return False

        await until(connected, within_s)

    def kill(self) -> None:
        """kill -9, as a power cut that the disk survives."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    async def wait_dead(self, within_s: float = 20.0) -> int:
        """Wait until it has died by itself (at a named point); the return code."""

        async def dead() -> bool:
            return self.process is None or self.process.poll() is not None

        await until(dead, within_s)
        return self.process.returncode if self.process else 0

    def output(self) -> str:
        """What it wrote to its log, all runs."""
        return self._log.read_text() if self._log.exists() else ""

    def _end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
        code = self.process.wait(20)
        self.process = None
        return code
