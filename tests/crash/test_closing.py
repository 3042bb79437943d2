"""A hub that is told to end does so in bounded time, whatever its surroundings do."""

import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hub.cli.serve import SHUTDOWN_S
from tests.crash.evening import DEVICES, an_evening
from tests.crash.passage import passage
from tests.mosquitto_process import Mosquitto


@pytest.mark.mosquitto
async def test_a_hub_closes_in_time_with_a_dish_on_and_its_broker_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    broker = mosquitto_factory(devices=DEVICES)
    async with an_evening(tmp_path, monkeypatch, broker, speed=200) as evening:
        order = await evening.order("koshari")
        broker.pause()  # connected, and nothing answers any more
        began = time.monotonic()
        assert await anyio.to_thread.run_sync(evening.hub.stop) == 0, evening.hub.output()
        assert time.monotonic() - began < SHUTDOWN_S
        broker.resume()
        broker.kill()
        await evening.start(ready=False)
        with anyio.fail_after(15):
            while await evening.execution(order.execution) is None:
                await anyio.sleep(0.1)
        began = time.monotonic()
        assert await anyio.to_thread.run_sync(evening.hub.stop) == 0, evening.hub.output()
        assert time.monotonic() - began < SHUTDOWN_S
        broker.start()
        await evening.start()


async def test_a_hub_closes_in_time_with_a_device_that_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with passage() as way, an_evening(tmp_path, monkeypatch, by_way_of=way) as evening:
        way.blocked = True
        order = await evening.order("koshari")
        with anyio.fail_after(10):
            while not way.swallowed:
                await anyio.sleep(0.05)
        began = time.monotonic()
        assert await anyio.to_thread.run_sync(evening.hub.stop) == 0, evening.hub.output()
        assert time.monotonic() - began < SHUTDOWN_S
        way.blocked = False
        await evening.start()
        await evening.served(order.execution)
        await evening.check()
