"""Stop: always, in every state, by either id, before anything is written; and it stays stopped."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import anyio
import pytest

from sim.memory import MAX_BARS, MemoryUnavailable

Benches = Callable[..., Any]


async def in_state(one: Any, state: str) -> str:
    """Bring koshari to `state`; its execution."""
    status = await one.start("koshari")
    if state in ("preparing", "running"):
        one.turn(0.1 if state == "preparing" else 2.0)
    elif state == "paused":
        one.turn(2.0)
        one.appliance.press_pause()
    elif state in ("needs_human", "completed"):
        one.turn_until(status.id, "needs_human")
        if state == "completed":
            one.cook(status.id)
    elif state in ("stopping", "stopped"):
        one.turn(2.0)
        one.appliance.press_stop()
        if state == "stopped":
            one.turn(1.0)
    assert one.appliance.status(status.id).state == state
    execution: str = status.id
    return execution


STATES = ("accepted", "preparing", "running", "paused", "needs_human", "stopping", "stopped", "completed")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("by", ["execution", "request", "red button"])
async def test_a_stop_lands_in_every_state(bench: Benches, state: str, by: str) -> None:
    one = bench()
    execution = await in_state(one, state)
    before = one.appliance.status(execution)
    if by == "red button":
        one.appliance.press_stop()
    else:
        one.appliance.stop(execution if by == "execution" else "req-1")
    assert one.appliance.heat_w() == 0
    assert not one.appliance.moving()
    at_once = one.appliance.status(execution)
    one.turn(0.5)
    after = one.appliance.status(execution)
    if state in ("stopped", "completed"):
        assert after == before
    else:
        assert at_once.state == ("stopped" if state == "accepted" else "stopping")
        assert after.state == "stopped"
        assert one.log_of(execution).outcome == "aborted_safe"
    one.turn(10_000)
    assert one.appliance.status(execution) == after
    assert one.appliance.busy_with is None


async def test_a_repeated_stop_joins_the_first(bench: Benches) -> None:
    one = bench()
    execution = await in_state(one, "running")
    seqs = [one.appliance.stop(execution).seq for _ in range(5)]
    assert len(set(seqs)) == 1
    one.turn(1)
    assert one.appliance.stop(execution).state == "stopped"


@contextmanager
def locked(one: Any) -> Iterator[None]:
    """Somebody else holds the device's file: every write of the device fails."""
    with closing(sqlite3.connect(one.folder / f"{one.device}.sqlite", isolation_level=None)) as thief:
        thief.execute("BEGIN IMMEDIATE")
        yield
        thief.execute("ROLLBACK")


async def test_heat_is_off_though_nothing_can_be_written_and_stays_off(bench: Benches) -> None:
    one = bench()
    execution = await in_state(one, "running")
    assert one.appliance.heat_w() > 0
    with locked(one):
        with pytest.raises(MemoryUnavailable):
            one.appliance.stop(execution)
        assert (one.appliance.heat_w(), one.appliance.moving()) == (0, False)
        one.appliance.press_here()
        one.turn(3)
        assert (one.appliance.heat_w(), one.appliance.moving()) == (0, False)
    one.turn(2)
    assert one.appliance.status(execution).state == "stopped"
    assert one.log_of(execution).outcome == "aborted_safe"


async def test_a_device_that_cannot_remember_what_it_does_stops_doing_it(bench: Benches) -> None:
    one = bench()
    execution = await in_state(one, "running")
    with locked(one):
        one.turn(30)
        assert (one.appliance.heat_w(), one.appliance.moving()) == (0, False)
    one.turn(2)
    assert one.appliance.status(execution).state == "stopped"
    assert (await one.start("salata-baladi", 2)).state == "accepted"


async def test_a_resume_that_cannot_be_remembered_does_not_heat(bench: Benches) -> None:
    one = bench()
    execution = await in_state(one, "needs_human")
    seq = one.appliance.status(execution).seq
    with locked(one):
        with pytest.raises(MemoryUnavailable):
            one.appliance.resume(execution, seq, "resume-key")
        assert (one.appliance.heat_w(), one.appliance.moving()) == (0, False)
    one.turn(2)
    assert one.appliance.status(execution).state == "stopped"


async def test_a_stop_of_an_unknown_request_bars_it_for_a_day_and_through_a_reboot(bench: Benches) -> None:
    one = bench()
    assert one.appliance.stop("req-1") is None
    one.boot()
    one.clock.turn(one.clock.seconds + 23 * 3_600 + 3_599)
    status = await one.start("koshari")
    assert (status.state, status.seq) == ("stopped", 1)
    assert one.fetched == []
    assert [event["data"]["state"] for event in one.said()] == ["accepted", "stopped"]
    assert one.log_of(status.id).outcome == "aborted_safe"
    one.turn(1_000)
    assert one.appliance.status("req-1").state == "stopped"
    assert (await one.start("lentil-soup", 2)).state == "accepted"


async def test_a_bar_ends_after_a_day(bench: Benches) -> None:
    one = bench()
    assert one.appliance.stop("req-1") is None
    one.clock.turn(one.clock.seconds + 24 * 3_600)
    assert (await one.start("koshari")).state == "accepted"


async def test_a_stopped_request_does_not_start_again_under_another_key(bench: Benches) -> None:
    one = bench()
    execution = await in_state(one, "running")
    one.appliance.stop(execution)
    one.turn(1)
    again = await one.start("koshari", idempotencyKey="another-key")
    assert again.state == "stopped"
    assert one.appliance.busy_with is None


async def test_a_stop_that_comes_while_the_recipe_is_fetched_wins(bench: Benches) -> None:
    asked, go = anyio.Event(), anyio.Event()
    one = bench()

    async def slow(recipe_hash: str) -> bytes:
        asked.set()
        await go.wait()
        raw: bytes = one.recipes[recipe_hash]
        return raw

    one.options["fetch"] = slow
    one.boot()
    answers = []
    async with anyio.create_task_group() as group:

        async def order() -> None:
            answers.append(await one.start("koshari"))

        group.start_soon(order)
        await asked.wait()
        assert one.appliance.stop("req-1") is None
        go.set()
    assert answers[0].state == "stopped"
    assert one.appliance.busy_with is None


async def test_whoever_floods_the_bars_stops_everything_and_frees_nothing(bench: Benches) -> None:
    one = bench()
    one.appliance.stop("req-1")
    with closing(sqlite3.connect(one.folder / f"{one.device}.sqlite")) as flood, flood:
        flood.executemany(
            "INSERT INTO bar VALUES (?, ?)",
            [(f"flood-{n}", one.clock.wall().timestamp() + 86_400) for n in range(MAX_BARS - 2)],
        )
    for number in range(5):
        assert one.appliance.stop(f"last-{number}") is None
    assert one.memory.bar_count() == MAX_BARS
    assert (await one.start("koshari")).state == "stopped"
    assert (await one.start("lentil-soup", 2)).state == "stopped"
    one.clock.offset = timedelta(hours=25)
    assert (await one.start("shakshuka", 3)).state == "accepted"


async def test_motion_is_over_within_half_a_second_in_real_time_at_any_speed(bench: Benches) -> None:
    for speed in (1.0, 120.0):
        one = bench(speed=speed)
        status = await one.start("koshari")
        one.turn(60 / speed)
        one.appliance.press_stop()
        assert (one.appliance.heat_w(), one.appliance.moving()) == (0, False)
        one.turn(0.5)
        assert one.appliance.status(status.id).state == "stopped"
