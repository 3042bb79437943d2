"""Alarms and faults in force: which hold, whatever order and whatever clock they come with (DESIGN §7)."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hub.entries import ConditionEnded, DeviceRegistered, DeviceRemoved
from tests.delivery.counter import Counter, counter, delivery
from tests.hub.api.scripted import SAMPLES
from tests.hub.speaking import event

LIMIT = "cookwala.safety.limit_fired"
SMOKE = "cookwala.safety.smoke"
HOB = DeviceRegistered(
    name="hob",
    url="http://hob.invalid:9",
    token_hash="0" * 64,
    broker_hash="none",
    salt="salt",
    capabilities=json.dumps(SAMPLES["devices"]["demo-hob-robot"]),
    safety_limits=json.dumps(SAMPLES["safetyLimits"]),
    by="person:anna",
)


def alarm(name: str, kind: str, time: str, **data: Any) -> bytes:
    """An event of the hob at a time of 1 January 2026."""
    said = {"level": "alarm", "action": "none", **data}
    at = f"2026-01-01T{time}Z"
    whole = event("hob", name, kind.removeprefix("cookwala."), said, subject="hob", time=at)
    return json.dumps({**whole, "cookwalapriority": "safety"}).encode()


def fired(name: str, limit: str, time: str) -> bytes:
    return alarm(name, LIMIT, time, **{"x-aboyeur-limit": limit})


def cleared(name: str, time: str, **what: str) -> bytes:
    return alarm(
        name, "cookwala.safety.cleared", time, **{f"x-aboyeur-{key}": of for key, of in what.items()}
    )


async def tell(pass_: Counter, *said: bytes) -> None:
    for one in said:
        await pass_.take(delivery("hob", one))


async def in_force(pass_: Counter) -> list[tuple[str, str]]:
    return [
        (row[0], row[1])
        for row in await pass_.rows("SELECT type, name FROM condition WHERE active = 1 ORDER BY type, name")
    ]


async def kept(pass_: Counter, kind: str) -> dict[str, Any] | None:
    """The message that a broker keeps of one safety type, `None` where there is none any more."""
    topic = f"cookwala/home/safety/hob%2F{kind}"
    found = await pass_.rows(
        "SELECT body FROM outbox WHERE retain = 1 AND topic = ? ORDER BY position", topic
    )
    assert found, "nothing was ever kept there"
    read: dict[str, Any] | None = json.loads(found[-1][0]) if found[-1][0] else None
    return read


async def test_the_end_of_one_limit_leaves_the_other_and_the_smoke_in_force(tmp_path: Path) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB])
        await tell(
            pass_,
            fired("a-1", "A", "12:00:00"),
            fired("b-1", "B", "12:00:01"),
            fired("a-2", "A", "12:00:02"),
            alarm("s-1", SMOKE, "12:00:01"),
            cleared("c-1", "12:00:03", cleared=LIMIT, limit="A"),
        )
        assert await in_force(pass_) == [(LIMIT, "B"), (SMOKE, "")]
        left = await kept(pass_, LIMIT)
        assert left is not None
        assert left["id"] == "b-1", "what is kept is the alarm that still holds"
        smoke = await kept(pass_, SMOKE)
        assert smoke is not None
        assert smoke["id"] == "s-1"
        await tell(pass_, cleared("c-2", "12:00:04", cleared=LIMIT, limit="B"))
        assert await in_force(pass_) == [(SMOKE, "")]
        assert await kept(pass_, LIMIT) is None
        await tell(pass_, cleared("c-3", "12:00:05"))
        assert await in_force(pass_) == []
        assert await kept(pass_, SMOKE) is None
        assert pass_.rebuilt().ok


@pytest.mark.parametrize("kind", [SMOKE, "cookwala.safety.fire"])
async def test_a_clock_put_back_an_hour_hides_no_new_alarm(tmp_path: Path, kind: str) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB])
        await tell(pass_, alarm("s-1", SMOKE, "12:00:00"), cleared("c-1", "12:00:05"))
        assert await in_force(pass_) == []
        await tell(pass_, alarm("s-2", kind, "11:00:30"))
        assert await in_force(pass_) == [(kind, "")]
        shown = await kept(pass_, kind)
        assert shown is not None
        assert shown["id"] == "s-2"


async def test_a_fault_that_a_person_ended_is_shown_again_by_a_clock_put_back(tmp_path: Path) -> None:
    fault = "cookwala.device.fault"
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB])

        def broken(name: str, time: str) -> bytes:
            data = {"x-aboyeur-fault": "fan"}
            at = f"2026-01-01T{time}Z"
            return json.dumps(event("hob", name, "device.fault", data, subject="hob", time=at)).encode()

        await tell(pass_, broken("f-1", "12:00:00"))
        await pass_.record([ConditionEnded(device="hob", type=fault, by="person:anna")])
        assert await in_force(pass_) == []
        await tell(pass_, broken("f-2", "11:00:30"))
        assert await in_force(pass_) == [(fault, "fan")]


STORY = (
    fired("a-1", "A", "12:00:00"),
    fired("a-2", "A", "12:00:20"),
    cleared("c-1", "12:00:30", cleared=LIMIT, limit="A"),
    fired("b-1", "B", "12:00:10"),
    cleared("c-2", "12:00:40", cleared=SMOKE),
)


@pytest.mark.parametrize(
    ("more", "holds"),
    [
        (alarm("s-1", SMOKE, "12:00:35"), [(LIMIT, "B")]),
        (alarm("s-1", SMOKE, "12:00:45"), [(LIMIT, "B"), (SMOKE, "")]),
        (fired("a-3", "A", "12:00:31"), [(LIMIT, "A"), (LIMIT, "B")]),
        (cleared("c-3", "12:00:50"), []),
    ],
    ids=["smoke before its end", "smoke after its end", "fired again", "all over"],
)
async def test_within_a_minute_the_order_of_arrival_does_not_matter(
    tmp_path: Path, more: bytes, holds: Sequence[tuple[str, str]]
) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB])
        for number, order in enumerate(itertools.permutations((*STORY, more))):
            if number % 17:
                continue
            await pass_.take(*(delivery("hob", one) for one in order))
            assert await in_force(pass_) == holds, number
            gone = DeviceRemoved(name="hob", by="person:anna")
            await pass_.record([gone, HOB])


async def test_a_person_ends_all_of_one_type_and_nothing_else(tmp_path: Path) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB])
        await tell(
            pass_,
            fired("a-1", "A", "12:00:00"),
            fired("b-1", "B", "12:00:01"),
            alarm("s-1", SMOKE, "12:00:01"),
        )
        await pass_.record([ConditionEnded(device="hob", type=LIMIT, by="person:anna")])
        assert await in_force(pass_) == [(SMOKE, "")]
        assert await kept(pass_, LIMIT) is None
        await tell(pass_, fired("a-2", "A", "12:00:09"))
        assert await in_force(pass_) == [(LIMIT, "A"), (SMOKE, "")], "what is said anew holds anew"
        assert pass_.rebuilt().ok


async def test_a_device_registered_anew_under_an_old_name_begins_anew(tmp_path: Path) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB])
        running = {"request": "r-1", "state": "running", "x-aboyeur-boot": "b"}
        job = event("hob", "e-1", "execution.state_changed", running, subject="job-1", cookwalaseq=0)
        other = {**job, "data": {**running, "state": "paused"}}
        await tell(pass_, fired("a-1", "A", "12:00:00"), json.dumps(job).encode())
        await pass_.record([DeviceRemoved(name="hob", by="person:anna"), HOB])
        assert await in_force(pass_) == []
        assert await pass_.rows("SELECT * FROM subject") == []
        await tell(pass_, fired("a-1", "B", "10:00:00"), json.dumps(other).encode())
        assert await pass_.quarantined() == {}, "its ids are its own"
        assert await in_force(pass_) == [(LIMIT, "B")]
        assert [json.loads(row[0])["state"] for row in await pass_.rows("SELECT report FROM subject")] == [
            "paused"
        ]
        assert pass_.rebuilt().ok
