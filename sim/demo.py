"""The demo: an evening in a simulated kitchen, told by the clients that live it.

The hub with its broker runs in one process, the four appliances in another; a person and two agents are
clients of their own here, each with its own token. Only the physics runs faster than life.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import msgspec
from msgspec.structs import replace

from adapters.states import FINAL
from config.paths import write_private
from config.settings import Broker, Http, Settings, starting_file
from events.access_rights import HUB
from events.mosquitto import Listener, write_configuration
from events.seams import Clock, Ids
from hub import enrol
from hub.keyfiles import read_key
from sim.board import Kitchen
from sim.household import Client, HubRefused, Person
from sim.kitchen import ADDRESSES, SamplesMissing
from sim.processes import ProcessFailed, aboyeur, free_port, mosquitto_program, running

PERSON: Final = "person:anna"
PLANNER: Final = "agent:planner"
BROWSER: Final = "agent:browser"
START_WITHIN_S: Final = 30.0
EVENING_S: Final = 240.0
"""The longest the story may take, in seconds of life."""
_LOOK_EVERY_S: Final = 0.3
_NOT_TONIGHT: Final = "robot-arm"
"""Where the shakshuka lands that is stopped: Anna lends it no hand."""


class DemoFailed(Exception):
    """The evening went otherwise than it should; the text says how."""


@dataclass(slots=True)
class Evening:
    """What the board shows while the story goes on."""

    clock: Clock
    tell: Callable[[str], None]
    began: float
    kitchen: Kitchen = field(default_factory=Kitchen)
    over: bool = False
    """Whether the story has been told, and the kitchen only goes on."""

    @property
    def seconds(self) -> float:
        """Since it began."""
        return self.clock.monotonic() - self.began

    def say(self, line: str) -> None:
        """Something happened."""
        stamped = f"{self.seconds:5.1f} s  {line}"
        self.kitchen.story.append(stamped)
        self.tell(stamped)


@dataclass(frozen=True, slots=True)
class Dish:
    """One order and what came of it."""

    name: str
    state: str
    device: str | None
    refusal: str | None
    log: str | None
    outcome: str | None


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that is set up before the story begins."""

    settings: Settings
    anna: Person
    clock: Clock
    ids: Ids
    recipes: dict[str, str]
    """Recipe id to hash."""

    def client(self, name: str, token: str) -> Client:
        """A client of the hub with a token of its own."""
        return Client(name, _http(self.settings.url(), token), self.clock, self.ids)


@asynccontextmanager
async def stage(
    folder: Path, evening: Evening, clock: Clock, ids: Ids, *, speed: float, broker: str
) -> AsyncGenerator[Stage]:
    """Set up hub, broker, appliances, recipes and the person in `folder`; all of it ends with the context.

    Raises:
        DemoFailed, SamplesMissing, ProcessFailed
    """
    recipes = _sample_recipes()
    settings = _settings(folder / "hub", broker)
    settings.folder.make()
    enrolled = enrol.create(settings.data, settings, PERSON, clock, ids)
    write_private(settings.folder.token(PERSON), enrolled.token.encode() + b"\n")
    write_private(settings.folder.settings, starting_file(settings).encode())
    appliances = folder / "appliances"
    appliances.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        reread = await _mosquitto(stack, folder, settings) if broker == "mosquitto" else None
        serve = aboyeur("--data", str(settings.data), "serve")
        await stack.enter_async_context(running("hub", serve, folder / "hub.log"))
        kitchen = aboyeur(
            "kitchen",
            "--folder",
            str(appliances),
            "--speed",
            str(speed),
            "--base-port",
            "0",
            "--heartbeat",
            "2",
        )
        await stack.enter_async_context(running("kitchen", kitchen, folder / "appliances.log"))
        key = read_key(settings.folder, PERSON)
        http = await stack.enter_async_context(_http(settings.url(), enrolled.token))
        anna = Person(Client(PERSON, http, clock, ids), key)
        with anyio.fail_after(START_WITHIN_S):
            await _answers(anna.client)
            addresses = await _addresses(appliances / ADDRESSES)
        evening.say(f"the hub answers at {settings.url()}, {len(addresses)} appliances are switched on")
        hashes = {}
        for recipe in recipes:
            added = await anna.client.post("/v1/recipes", json.dumps(recipe).encode())
            hashes[str(added["id"])] = str(added["hash"])
        pairings = {}
        for name, url in addresses.items():
            pairings[name] = await anna.client.post("/v1/devices", {"name": name, "url": url})
        if reread is not None:
            reread()
        for name, pairing in pairings.items():
            write_private(appliances / f"{name}.pairing.json", msgspec.json.encode(pairing))
        await _until(lambda: _all_heard(anna.client), START_WITHIN_S, "not every appliance was heard")
        evening.say("Anna paired them; all are heard")
        yield Stage(settings, anna, clock, ids, hashes)


async def play(set_up: Stage, evening: Evening) -> list[Dish]:
    """The story; the dishes and what came of each.

    Raises:
        DemoFailed: it went otherwise than it should.
    """
    anna, recipes = set_up.anna, set_up.recipes
    token, mandate = await anna.grant(PLANNER, ("plan_meals", "start_cooking", "stop_cooking"))
    weak_token, weak_mandate = await anna.grant(BROWSER, ("plan_meals", "search_recipes"))
    evening.say(f"Anna signs a mandate for {PLANNER}, and one for {BROWSER} that lacks start_cooking")
    ordered: dict[str, str] = {}
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        planner = set_up.client(PLANNER, token)
        browser = set_up.client(BROWSER, weak_token)
        for client in (planner, browser):
            await stack.enter_async_context(client.http)
        tasks.start_soon(_keep_board, anna.client, evening)

        async def order(client: Client, dish: str, under: dict[str, Any]) -> str:
            recipe = f"example-{dish}"
            status = await client.order(recipe, recipes[recipe], under)
            ordered[status["id"]] = dish
            return str(status["id"])

        nobody = await order(planner, "koshari", mandate)
        status = await _reaches(anna.client, nobody, {"refused"})
        _expect(_reason(status) == "needs_human_present", f"koshari with nobody there: {status}")
        evening.say(f"koshari: {_device(status)} itself refuses, nobody is there (needs_human_present)")

        await anna.be_here()
        tasks.start_soon(_be_there, anna, evening)
        evening.say("Anna says that she is here; from now on she answers every appliance that asks")

        koshari = await order(planner, "koshari", mandate)
        evening.say(f"{PLANNER} orders koshari")
        first = await _reaches(anna.client, koshari, {"running", "needs_human"})
        lentils = await order(planner, "lentil-soup", mandate)
        second = await _reaches(anna.client, lentils, {"running", "needs_human"})
        evening.say(f"koshari cooks on {_device(first)}, lentil soup on {_device(second)}, side by side")
        _expect(_device(first) != _device(second), "two dishes on one appliance")

        shakshuka = await order(planner, "shakshuka", mandate)
        third = await _reaches(anna.client, shakshuka, {"running", "needs_human"})
        evening.say(f"shakshuka begins on {_device(third)}")
        await anyio.sleep(2)
        await _stop_without_a_token(set_up.settings.url(), shakshuka)
        await _reaches(anna.client, shakshuka, {"stopped"})
        evening.say("shakshuka is stopped; a stop needs no token")

        outside = await order(browser, "salata-baladi", weak_mandate)
        status = await _reaches(anna.client, outside, {"refused"})
        _expect(_reason(status) == "mandate_scope", f"an order outside the mandate: {status}")
        evening.say(f"{BROWSER} orders salad; the hub refuses: no start_cooking (mandate_scope)")

        for execution in (koshari, lentils):
            status = await _reaches(anna.client, execution, FINAL)
            evening.say(f"{ordered[execution]}: {status['state']}")
            _expect(status["state"] == "completed", f"{ordered[execution]} ended otherwise: {status}")
        dishes = [await _judged(anna.client, execution, dish) for execution, dish in ordered.items()]
        tasks.cancel_scope.cancel()
    for dish in dishes:
        cooked = dish.state in ("completed", "stopped")
        _expect(not cooked or dish.log == "ok", f"the log of {dish.name} is {dish.log}")
    return dishes


# --- The people ------------------------------------------------------------------------------------------


async def _be_there(anna: Person, evening: Evening) -> None:
    """Answer every question, resume what waits; say it again now and then, as somebody does who stays."""
    told: set[str] = set()
    clock = anna.client.clock
    said_at = clock.monotonic()
    while True:
        needs = (await anna.client.get("/v1/needs"))["needs"]
        asked = [need for need in needs if need["kind"] == "presence"]
        if asked or clock.monotonic() - said_at > 20:
            await anna.be_here()
            said_at = clock.monotonic()
        for need in needs:
            if need["kind"] != "resume" or need["device"] == _NOT_TONIGHT:
                continue
            key = f"{need['execution']} {need['seq']}"
            if key not in told:
                told.add(key)
                evening.say(f"{need['device']} waits for Anna: {need['why']}")
                continue  # her hands need a moment; the next look resumes it
            await anyio.sleep(1)
            try:
                await anna.resume(need)
            except HubRefused as refused:
                evening.say(f"not resumed ({refused}); Anna looks again")
        await anyio.sleep(_LOOK_EVERY_S)


async def _keep_board(client: Client, evening: Evening) -> None:
    while True:
        kitchen = evening.kitchen
        kitchen.devices = (await client.get("/v1/devices"))["devices"]
        kitchen.executions = (await client.get("/v1/executions?state=all"))["executions"]
        kitchen.needs = (await client.get("/v1/needs"))["needs"]
        await anyio.sleep(_LOOK_EVERY_S)


async def _stop_without_a_token(url: str, execution: str) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=15) as anybody:
        answer = await anybody.post(f"/v1/executions/{execution}/stop")
        _expect(answer.status_code == 202, f"the stop was answered {answer.status_code}")


# --- Waiting ---------------------------------------------------------------------------------------------


async def _until(condition: Callable[[], Awaitable[Any]], within_s: float, otherwise: str) -> Any:
    with anyio.move_on_after(within_s):
        while True:
            found = await condition()
            if found:
                return found
            await anyio.sleep(_LOOK_EVERY_S)
    raise DemoFailed(f"{otherwise} within {within_s:.0f} s")


async def _reaches(client: Client, execution: str, states: frozenset[str] | set[str]) -> dict[str, Any]:
    """The execution's status once it is in one of `states`."""

    async def look() -> dict[str, Any] | None:
        status = await client.execution(execution)
        ended = status["state"] in FINAL and status["state"] not in states
        _expect(
            not ended, f"{execution} is {status['state']} instead of {' or '.join(sorted(states))}: {status}"
        )
        return status if status["state"] in states else None

    found: dict[str, Any] = await _until(
        look, EVENING_S, f"{execution} did not become {' or '.join(sorted(states))}"
    )
    return found


async def _judged(client: Client, execution: str, dish: str) -> Dish:
    """What came of a dish, with the verdict on its appliance's log where it cooked."""

    async def look() -> dict[str, Any] | None:
        status = await client.execution(execution)
        ready = status["state"] == "refused" or "x-aboyeur-log" in status
        return status if ready else None

    status = await _until(look, 30, f"the log of {dish} did not arrive")
    log = status.get("x-aboyeur-log") or {}
    return Dish(
        name=dish,
        state=status["state"],
        device=status.get("x-aboyeur-device"),
        refusal=_reason(status),
        log=log.get("verdict"),
        outcome=log.get("outcome"),
    )


async def _answers(client: Client) -> None:
    while True:
        try:
            health = await client.get("/health")
        except httpx.HTTPError:
            health = {}
        if health.get("broker") == "connected":
            return
        await anyio.sleep(0.1)


async def _addresses(file: Path) -> dict[str, str]:
    path = anyio.Path(file)
    await _until(path.exists, START_WITHIN_S, "the appliances did not answer")
    found: dict[str, str] = msgspec.json.decode(await path.read_bytes())["devices"]
    return found


async def _all_heard(client: Client) -> bool:
    devices = (await client.get("/v1/devices"))["devices"]
    return all(device["liveness"] == "alive" for device in devices)


def _device(status: dict[str, Any]) -> str:
    return str(status["x-aboyeur-device"])


def _reason(status: dict[str, Any]) -> str | None:
    refusal = status.get("refusal")
    return str(refusal["reason"]) if refusal else None


def _expect(held: bool, otherwise: str) -> None:
    if not held:
        raise DemoFailed(otherwise)


# --- Setting up ------------------------------------------------------------------------------------------


def _settings(folder: Path, broker: str) -> Settings:
    settings = Settings(data=folder, http=Http(port=free_port()), broker=Broker(port=free_port()))
    if broker == "mosquitto":
        return replace(settings, broker=replace(settings.broker, kind="mosquitto", protocol="5"))
    return settings


async def _mosquitto(stack: AsyncExitStack, folder: Path, settings: Settings) -> Callable[[], None]:
    """Start a Mosquitto of our own; returns what makes it read its users again."""
    program = mosquitto_program()
    if program is None:
        raise DemoFailed("mosquitto is not installed; try: apt-get install mosquitto")

    def write() -> Path:
        passwords = enrol.broker_credentials(settings.data)
        return write_configuration(
            folder / "mosquitto",
            kitchen=settings.kitchen,
            data_directory=folder / "mosquitto-state",
            listeners=[Listener(settings.broker.host, settings.broker.port)],
            passwords=passwords,
            devices=[user for user in passwords if user != HUB],
            run_as=_whoami(),
        )

    process = await stack.enter_async_context(
        running("broker", [program, "-c", str(write())], folder / "mosquitto.log")
    )

    def reread() -> None:
        import signal

        write()
        process.send_signal(signal.SIGHUP)

    return reread


def _whoami() -> str:
    import getpass

    return getpass.getuser()


def _sample_recipes() -> list[dict[str, Any]]:
    try:
        raw = resources.files("cookwala_samples").joinpath("data/bundle.json").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        raise SamplesMissing("install the extra `demo`: pip install 'aboyeur[demo]'") from None
    found: list[dict[str, Any]] = list(json.loads(raw)["recipes"].values())
    return found


def _http(url: str, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=20
    )


__all__ = ["DemoFailed", "Dish", "Evening", "ProcessFailed", "Stage", "play", "stage"]
