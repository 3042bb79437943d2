"""The hub is killed at random moments of cooking, again and again."""

import random
import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.crash.evening import AGENT, DEVICES, an_evening
from tests.household import OWNER
from tests.mosquitto_process import Mosquitto

KILLS = 10
DISHES = ("koshari", "lentil-soup", "shakshuka", "salata-baladi")


@pytest.mark.slow
@pytest.mark.mosquitto
@pytest.mark.parametrize(("broker", "seed"), [("mosquitto", 20260301), ("embedded", 20260302)])
async def test_a_hub_killed_at_ten_random_moments_of_cooking_loses_nothing(
    broker: str,
    seed: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mosquitto_factory: Callable[..., Mosquitto],
) -> None:
    chance = random.Random(seed)
    print(f"seed {seed}")  # shown where what follows fails
    outside = mosquitto_factory(devices=DEVICES) if broker == "mosquitto" else None
    async with an_evening(tmp_path, monkeypatch, outside, speed=1500) as evening:
        done = 0
        over = anyio.Event()

        async def cook() -> None:
            """One dish after the other, as long as the hub is being killed, and one more."""
            number = 0
            while not over.is_set() or number < 2:
                order = await evening.order(DISHES[number % 4], by=(AGENT, OWNER)[number % 2])
                await evening.served(order.execution)
                number += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cook)
            for _ in range(KILLS):
                wait_s = chance.uniform(0.0, 1.2)
                print(f"kill after {wait_s:.3f} s, {len(evening.taken)} orders taken")
                await anyio.sleep(wait_s)
                process = evening.hub.process
                assert process is not None and process.poll() is None, evening.hub.output()
                evening.hub.kill()
                assert process.returncode == -signal.SIGKILL
                done += 1
                # Some die while they are still starting.
                await evening.start(ready=chance.random() < 0.7)
            await evening.hub.wait_ready()
            over.set()
        assert done == KILLS
        await evening.check()
