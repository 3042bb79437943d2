"""What the tests of delivery share: a cook that really happened, as its hub wrote it down."""

import asyncio
from pathlib import Path

import anyio
import pytest

from hub.entries import Payload
from tests.delivery.cooks import KOSHARI, SOUP, all_alive, in_state, log_of, order, person_helping, say_here
from tests.household import found_household, running_hub, running_kitchen, until


@pytest.fixture(scope="session")
def recorded_cook(tmp_path_factory: pytest.TempPathFactory) -> list[Payload]:
    """The log of a hub in whose kitchen koshari and lentil soup were cooked side by side."""
    return asyncio.run(_cook(tmp_path_factory.mktemp("recorded")))


async def _cook(folder: Path) -> list[Payload]:
    household = found_household(folder / "hub")
    kitchen = running_kitchen(folder / "kitchen", speed=1500.0, progress_interval_s=0.05)
    async with running_hub(household), kitchen as urls:
        hashes = await household.add_recipes()
        await household.pair(folder / "kitchen", urls)
        await until(lambda: all_alive(household))
        await say_here(household)
        async with person_helping(household):
            dishes = [await order(household, dish, hashes[dish]) for dish in (KOSHARI, SOUP)]
            for dish in dishes:
                await in_state(household, dish, "completed")
        await anyio.sleep(0.3)
    return log_of(household)
