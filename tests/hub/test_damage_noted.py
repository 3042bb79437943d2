"""Damage that a person took note of does not keep the next start from coming up; new damage does."""

import sqlite3
from pathlib import Path

import pytest

from hub.service import LogDamaged
from tests.household import OWNER, Household, found_household, running_hub


def alter(household: Household, seq: int) -> None:
    connection = sqlite3.connect(household.folder.database)
    connection.execute("UPDATE payload SET body = body || x'20' WHERE seq = ?", (seq,))
    connection.commit()
    connection.close()


async def started(household: Household, accept: str | None = None) -> None:
    async with running_hub(household, accept_damage_by=accept), household.client() as anna:
        assert (await anna.get("/v1/people")).status_code == 200


async def refusal(household: Household) -> str:
    """Why the hub does not start, in its own words."""
    with pytest.raises(BaseExceptionGroup) as told:
        await started(household)
    reason: BaseException = told.value
    while isinstance(reason, BaseExceptionGroup):
        reason = reason.exceptions[0]
    assert isinstance(reason, LogDamaged)
    return str(reason)


async def test_damage_is_noted_once_and_new_damage_is_told_again(tmp_path: Path) -> None:
    household = found_household(tmp_path / "hub")
    async with running_hub(household):
        await household.add_recipes()
    alter(household, 2)
    assert "at 2:" in await refusal(household)
    await started(household, accept=OWNER)
    await started(household)
    alter(household, 3)
    words = await refusal(household)
    assert "at 3:" in words and "at 2:" not in words
