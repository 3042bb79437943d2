"""The hub is killed at the moments that matter most, and goes on as if nothing had been (ruling Q1)."""

import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hub.store import migrations
from tests.crash.evening import AGENT, DEVICES, Evening, an_evening, entries
from tests.crash.newer_schema import newer
from tests.household import OWNER
from tests.mosquitto_process import Mosquitto

pytestmark = [pytest.mark.mosquitto, pytest.mark.slow]

POINTS = {
    "before the commit, and between the commit and the acknowledgement of events": [
        ("before commit of event", 2),
        ("after commit of event", 3),
        ("before acknowledgement", 4),
        ("after acknowledgement", 3),
    ],
    "before and after the commit of a request that nobody has an answer to": [
        ("before commit of execution.asked", 1),
        ("after commit of execution.asked", 1),
        ("after head", 2),
    ],
    "between an accepted request and its forward": [
        ("before commit of start.sending", 1),
        ("after commit of start.sending", 1),
        ("before forward", 1),
    ],
    "between the forward and what the device says": [
        ("before the answer", 1),
        ("before commit of device.read", 1),
        ("after commit of device.read", 1),
    ],
    "while a person goes on with a dish": [
        ("before commit of resume.asked", 1),
        ("before resume", 1),
        ("before the answer to resume", 1),
    ],
    "while the device's log is collected": [
        ("before the log is kept", 1),
        ("before commit of log.collected", 1),
        ("after commit of log.collected", 1),
    ],
}


async def die_while_cooking(evening: Evening, point: str, nth: int, by: str) -> str:
    """Order koshari, have the hub die at the point, start it again; the order's execution."""
    evening.dies_at(point, nth)
    async with anyio.create_task_group() as tasks:

        async def order() -> None:
            await evening.order("koshari", by=by)

        tasks.start_soon(order)
        assert await evening.hub.wait_dead() == -signal.SIGKILL, evening.hub.output()
        await evening.start()
    return evening.taken[-1].execution


@pytest.mark.parametrize("points", POINTS.values(), ids=POINTS)
async def test_a_hub_killed_finishes_the_dish_and_loses_nothing(
    points: list[tuple[str, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mosquitto_factory: Callable[..., Mosquitto],
) -> None:
    async with an_evening(tmp_path, monkeypatch, mosquitto_factory(devices=DEVICES)) as evening:
        for number, (point, nth) in enumerate(points):
            print(point, nth)  # shown where what follows fails
            execution = await die_while_cooking(evening, point, nth, by=(AGENT, OWNER)[number % 2])
            await evening.served(execution)
            await evening.check()


async def test_a_hub_killed_in_the_middle_of_a_migration_starts_from_the_version_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mosquitto_factory: Callable[..., Mosquitto],
) -> None:
    broker = mosquitto_factory(devices=DEVICES)
    async with an_evening(tmp_path, monkeypatch, broker, speed=1000) as evening:
        order = await evening.order("koshari")
        assert evening.hub.stop() == 0
        evening.dies_at("migration")
        await evening.start(CRASH_SCHEMA="newer", ready=False)
        assert await evening.hub.wait_dead() == -signal.SIGKILL, evening.hub.output()
        # The version before still runs on what the dead one left, and then the newer one does.
        await evening.start()
        assert evening.hub.stop() == 0
        await evening.start(CRASH_SCHEMA="newer")
        schema = newer()
        monkeypatch.setattr(migrations, "available", lambda: schema)
        assert (await evening.execution(order.execution) or {})["state"] != "completed"
        await evening.served(order.execution)
        await evening.check()


async def test_the_word_of_a_person_goes_with_a_start_that_outlived_its_hub(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mosquitto_factory: Callable[..., Mosquitto],
) -> None:
    async with an_evening(tmp_path, monkeypatch, mosquitto_factory(devices=DEVICES)) as evening:
        evening.dies_at("before commit of start.sending")
        order = await evening.order("lentil-soup")
        await evening.hub.wait_dead()
        await evening.start()
        await evening.served(order.execution)
        asked = entries(evening.household, "execution.asked")
        assert [entry["forward"]["x-aboyeur-presence"]["by"] for entry in asked] == [OWNER]
        await evening.check()
