"""Clocks that jump, hubs that stall, heartbeats that are old: nobody is wrongly lost or alive (CASES 6, 7)."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from events import topics
from events.mqtt import MqttSettings, MqttTransport
from events.seams import SystemClock
from hub.entries import DeviceLife
from hub.inbox import Inbox
from sim.pairing import Pairing
from sim.speech import Voice
from tests.delivery.cooks import KOSHARI, SOUP, in_state, log_of, order, person_helping, rebuilt, say_here
from tests.delivery.home_broker import HomeBroker, mosquitto_settings
from tests.delivery.test_broker_restart import all_alive, lives
from tests.delivery.watching import Watched
from tests.household import Household, found_household, running_hub, running_kitchen, until

HEARTBEAT_S = 1.0
"""The shortest that a device may have: its interval, times three, is when it is lost."""
LOST_S = 3 * HEARTBEAT_S
GRACE_S = 0.5


class MovableClock(SystemClock):
    """The machine's clock with a wall clock that a test sets."""

    def __init__(self) -> None:
        self.offset = timedelta()

    def wall(self) -> datetime:
        return super().wall() + self.offset


def said_of_life(household: Household) -> list[tuple[str, str]]:
    return [(entry.device, entry.life) for entry in log_of(household) if isinstance(entry, DeviceLife)]


@asynccontextmanager
async def kitchen_with_hub(
    folder: Path, clock: MovableClock | None = None, speed: float = 700.0
) -> AsyncGenerator[tuple[Household, dict[str, str]]]:
    household = found_household(folder / "hub")
    kitchen = running_kitchen(
        folder / "kitchen", speed=speed, progress_interval_s=0.1, heartbeat_s=HEARTBEAT_S
    )
    async with running_hub(household, clock=clock), kitchen as urls:
        hashes = await household.add_recipes()
        await household.pair(folder / "kitchen", urls)
        await until(lambda: all_alive(household))
        await say_here(household)
        yield household, hashes


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_wall_clock_that_jumps_in_the_middle_of_a_cook_changes_nothing(
    tmp_path: Path, hours: int
) -> None:
    clock = MovableClock()
    async with kitchen_with_hub(tmp_path, clock) as (household, hashes), person_helping(household):
        dishes = [await order(household, dish, hashes[dish]) for dish in (KOSHARI, SOUP)]
        for dish in dishes:
            await in_state(household, dish, "running")
        clock.offset = timedelta(hours=hours)
        for dish in dishes:
            done = await in_state(household, dish, "completed", within_s=40)
            assert done.get("x-aboyeur-waiting") is None
        await anyio.sleep(LOST_S + GRACE_S)
        assert await all_alive(household)
        # In the new hour everything works as before, a new order too.
        await say_here(household)
        await in_state(household, await order(household, SOUP, hashes[SOUP]), "completed", within_s=40)
    assert said_of_life(household) == []
    assert rebuilt(household).ok
