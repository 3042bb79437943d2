"""A device's execution events are read as Core's own types (Core §7)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.documents import HumanNeeded, Refusal, Step
from adapters.events import NAMES, ExecutionData, register_events
from events.envelope import EventError, read_event, write_event
from events.registry import Registry


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    register_events(made)
    return made


def write(registry: Registry, data: Any, name: str = "step") -> bytes:
    return write_event(
        registry,
        event_id="evt-1",
        source="cookwala://home/hob",
        event_type=f"cookwala.execution.{name}",
        time=datetime(2026, 11, 30, 12, tzinfo=UTC),
        data=data,
        subject="exe-0001",
        seq=0,
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "data",
    [
        ExecutionData(request="req-0001", state="accepted", x_boot="boot-1"),
        ExecutionData(request="req-0001", state="refused", refusal=Refusal(reason="busy", detail="cooking")),
        ExecutionData(
            request="req-0001",
            state="needs_human",
            step=Step(node="n14", op="cw.op.fry", progress=0.5),
            human_needed=HumanNeeded(why="turn it"),
        ),
    ],
)
def test_what_an_execution_says_is_read_back_equal(
    name: str, data: ExecutionData, registry: Registry
) -> None:
    read = read_event(write(registry, data, name), registry)
    assert read.data == data
    assert read.event_type.event_class == "sequenced"
    assert read.event_type.senders == {"device", "hub"}


def test_members_of_a_foreign_device_that_we_do_not_know_are_read_over(registry: Registry) -> None:
    raw = write(registry, {"request": "req-0001", "state": "running", "mood": "fine", "x-acme": 1})
    assert read_event(raw, registry).data == ExecutionData(request="req-0001", state="running")
    assert b'"mood":"fine"' in raw


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"request": "req-0001"},
        {"state": "running"},
        {"request": "req-0001", "state": "boiling"},
        {"request": "r", "state": "running"},
        {"request": "req-0001", "state": "running", "step": "n1"},
        {"request": "req-0001", "state": "refused", "refusal": {"reason": "tired"}},
        {"request": "req-0001", "state": "running", "x-aboyeur-boot": ""},
    ],
)
def test_an_execution_event_that_does_not_say_what_happened_is_bad_data(
    data: dict[str, Any], registry: Registry
) -> None:
    with pytest.raises(EventError) as caught:
        write(registry, data)
    assert caught.value.reason == "bad_data"
