"""The life of an execution: Core's transitions and no others, one event for every step of seq."""

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.documents import HumanNeeded, Refusal, State, Step
from adapters.states import FINAL, TRANSITIONS
from events import documents
from sim.lifecycle import IllegalTransition, Life, at_step, begin, move, path, revive

STATES: tuple[State, ...] = get_args(State)
ALLOWED = {
    ("accepted", "preparing"),
    ("accepted", "refused"),
    ("accepted", "stopped"),
    ("preparing", "running"),
    ("preparing", "needs_human"),
    ("preparing", "stopping"),
    ("preparing", "failed"),
    ("running", "paused"),
    ("running", "needs_human"),
    ("running", "stopping"),
    ("running", "completed"),
    ("running", "failed"),
    ("paused", "running"),
    ("paused", "stopping"),
    ("needs_human", "running"),
    ("needs_human", "stopping"),
    ("needs_human", "failed"),
    ("stopping", "stopped"),
}


def attempt(life: Life, state: State) -> Life | None:
    needed = HumanNeeded(why="a person") if state == "needs_human" else None
    try:
        return move(life, state, "2026-10-05T12:00:00Z", human_needed=needed).life
    except IllegalTransition:
        return None


@given(st.lists(st.sampled_from(STATES), max_size=40))
def test_whatever_is_tried_only_cores_transitions_happen_and_each_counts_one(tries: list[State]) -> None:
    life = begin("ex-1", "req-1", "boot", "2026-10-05T12:00:00Z").life
    for state in tries:
        after = attempt(life, state)
        assert (after is not None) == ((life.state, state) in ALLOWED)
        if after is not None:
            assert (after.state, after.seq) == (state, life.seq + 1)
            assert (after.human_needed is not None) == (state == "needs_human")
            life = after
    assert life.final == (life.state in {"refused", "stopped", "completed", "failed"})
    kept = revive(documents.read(type(life.status()), documents.write(life.status())))
    assert kept == life


def test_the_table_is_cores_own() -> None:
    assert {(state, after) for state, afters in TRANSITIONS.items() for after in afters} == ALLOWED
    assert {"refused", "stopped", "completed", "failed"} == FINAL


@pytest.mark.reference
def test_the_public_vectors_agree() -> None:
    folder = Path(__file__).parents[3] / "shared/reference/cookwala/conformance/transitions.json"
    if not folder.exists():
        pytest.skip(f"the public reference data is not there: {folder}")
    vectors = [one for one in json.loads(folder.read_text()) if one["kind"] == "execution_transition"]
    assert vectors
    for vector in vectors:
        start, end = vector["input"]["from"], vector["input"]["to"]
        assert (end in TRANSITIONS[start]) == vector["expected"]["allowed"], vector["id"]


def test_every_change_is_told_by_exactly_one_kind_of_event() -> None:
    step = Step(node="n1", op="cw.op.cut")
    refused = begin("ex-1", "req-1", "b", "2026-10-05T12:00:00Z", Refusal(reason="busy"))
    assert (refused.event_type, refused.life.state, refused.life.seq) == (
        "cookwala.execution.refused",
        "refused",
        0,
    )
    accepted = begin("ex-1", "req-1", "b", "2026-10-05T12:00:00Z")
    preparing = move(accepted.life, "preparing", "2026-10-05T12:00:01Z")
    running = move(preparing.life, "running", "2026-10-05T12:00:02Z", step=step)
    further = at_step(running.life, step, "2026-10-05T12:00:03Z")
    completed = move(further.life, "completed", "2026-10-05T12:00:04Z")
    changes = [accepted, preparing, running, further, completed]
    assert [change.life.seq for change in changes] == [0, 1, 2, 3, 4]
    assert [change.kind for change in changes] == [
        "accepted",
        "state_changed",
        "state_changed",
        "step",
        "completed",
    ]


def test_no_step_moves_while_the_execution_is_not_running() -> None:
    life = begin("ex-1", "req-1", "b", "2026-10-05T12:00:00Z").life
    with pytest.raises(IllegalTransition):
        at_step(life, Step(node="n1"), "2026-10-05T12:00:01Z")


def test_a_state_is_reached_by_cores_shortest_way() -> None:
    assert path("running", "failed") == ("failed",)
    assert path("accepted", "failed") == ("preparing", "failed")
    assert path("paused", "failed") == ("running", "failed")
    assert path("running", "running") == ()
    for end in STATES:
        with pytest.raises(IllegalTransition):
            path("completed", end) if end != "completed" else path("completed", "accepted")
