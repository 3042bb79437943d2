"""A reboot: what a device promised it still keeps; what it was doing is over and said to be."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.documents import ExecutionStatus
from sim.acceptance import Rejected
from sim.memory import MAX_WAITING, DeviceMemory, Kept, MemoryFull, Outgoing

Benches = Callable[..., Any]


@pytest.mark.parametrize("hours", [0, 23, 24, 47])
async def test_a_start_is_known_again_by_its_key_through_reboots(bench: Benches, hours: int) -> None:
    one = bench()
    first = await one.start("salata-baladi")
    end = one.cook(first.id)
    for _ in range(3):
        one.boot()
    one.clock.turn(one.clock.seconds + hours * 3_600)
    assert await one.start("salata-baladi") == end
    assert one.fetched == [one.fetched[0]]
    with pytest.raises(Rejected) as reused:
        await one.start("salata-baladi", servings=7)
    assert reused.value.status == 422


async def test_a_start_sent_again_with_an_older_word_of_presence_is_the_same_start(bench: Benches) -> None:
    one = bench()
    first = await one.start("koshari")
    word = {"by": "person:anna", "saidAt": "2026-10-05T12:00:00Z", "ageS": 31.0}
    assert await one.start("koshari", **{"x-aboyeur-presence": word}) == first
    assert await one.start("koshari", **{"x-aboyeur-presence": None, "x-vendor-note": 1}) == first
    assert one.appliance.busy_with == first.id


async def test_a_start_is_on_the_disk_before_it_is_answered(bench: Benches) -> None:
    one = bench()
    status = await one.start("koshari")
    other = DeviceMemory(one.folder / "demo-hob-robot.sqlite")
    assert other.by_key("idempotent-1").status == status
    other.close()


@pytest.mark.parametrize(
    ("until", "states"),
    [
        ("accepted", ["preparing", "failed"]),
        ("preparing", ["failed"]),
        ("running", ["failed"]),
        ("paused", ["running", "failed"]),
        ("needs_human", ["failed"]),
        ("stopping", ["stopped"]),
    ],
)
async def test_what_was_going_on_is_over_under_the_new_boot(
    bench: Benches, until: str, states: list[str]
) -> None:
    one = bench()
    status = await one.start("koshari")
    if until == "needs_human":
        one.turn_until(status.id, "needs_human")
    elif until != "accepted":
        one.turn(0.1 if until == "preparing" else 2)
    if until == "paused":
        one.appliance.press_pause()
    if until == "stopping":
        one.appliance.press_stop()
    before = one.appliance.status(status.id)
    assert before.state == until
    said, boot = len(one.said()), one.appliance.boot
    one.boot()
    after = one.appliance.status(status.id)
    assert (after.state, after.seq) == (states[-1], before.seq + len(states))
    assert after.x_boot == one.appliance.boot != boot
    news = one.said()[said:]
    assert [event["data"]["state"] for event in news] == states
    assert [event["cookwalaseq"] for event in news] == list(range(before.seq + 1, after.seq + 1))
    assert {event["data"]["x-aboyeur-boot"] for event in news} == {one.appliance.boot}
    log = one.log_of(status.id)
    assert log.outcome == ("aborted_safe" if until == "stopping" else "failed")
    assert (log.x_execution, log.x_request) == (status.id, "req-1")
    assert one.appliance.busy_with is None
    assert (one.appliance.heat_w(), one.appliance.due()) == (0, None)
    one.turn(10_000)
    assert one.appliance.status(status.id) == after
    assert (await one.start("lentil-soup", 2)).state == "accepted"


async def test_statuses_and_logs_are_kept_byte_for_byte(bench: Benches) -> None:
    one = bench()
    status = await one.start("salata-baladi")
    one.cook(status.id)
    before = (one.appliance.status("req-1"), one.appliance.log("req-1"))
    one.boot()
    assert (one.appliance.status("req-1"), one.appliance.log("req-1")) == before


async def test_every_start_of_a_device_is_another_boot(bench: Benches) -> None:
    one = bench()
    boots = {one.appliance.boot} | {one.boot().boot for _ in range(4)}
    assert len(boots) == 5


async def test_what_was_not_said_before_the_reboot_is_said_after_it(bench: Benches) -> None:
    one = bench()
    await one.start("koshari")
    one.turn(1)
    before = one.said()
    one.boot()
    assert one.said()[: len(before)] == before


def kept(number: int, at: datetime) -> Kept:
    status = ExecutionStatus(
        core="0.2.0",
        kind="ExecutionStatus",
        id=f"ex-{number:06d}",
        request=f"req-{number:06d}",
        state="refused",
        seq=0,
        updated_at="2026-10-05T12:00:00Z",
    )
    return Kept(status, f"key-{number:06d}", "sha256:0", "r", "sha256:0", at, None)


def test_the_memory_is_bounded_and_keeps_its_promise_rather_than_take_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.memory.MAX_STARTS", 5)
    now = datetime(2026, 10, 5, 12, tzinfo=UTC)
    memory = DeviceMemory(tmp_path / "m.sqlite")
    for number in range(5):
        memory.begin(kept(number, now), True, [])
    with pytest.raises(MemoryFull):
        memory.begin(kept(5, now + timedelta(hours=47)), True, [])
    assert memory.by_key("key-000000") is not None
    memory.begin(kept(5, now + timedelta(hours=49)), True, [])
    assert memory.by_key("key-000000") is None
    memory.close()


def test_events_that_wait_are_bounded_and_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_WAITING >= 10_000
    monkeypatch.setattr("sim.memory.MAX_WAITING", 10)
    memory = DeviceMemory(tmp_path / "m.sqlite")
    for number in range(25):
        memory.say([Outgoing("execution", "ex-1", str(number).encode())])
    assert [event.payload for event in memory.waiting(100)] == [str(n).encode() for n in range(15, 25)]
    first = memory.waiting(1)[0]
    memory.confirmed(first.number)
    assert memory.waiting(1)[0].payload == b"16"
    memory.close()


def test_a_memory_is_its_owners_alone_and_synced(tmp_path: Path) -> None:
    memory = DeviceMemory(tmp_path / "m.sqlite")
    assert (tmp_path / "m.sqlite").stat().st_mode & 0o077 == 0
    assert memory.durability() == ("wal", 2)
    memory.close()
