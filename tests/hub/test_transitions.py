"""What a client is shown of an execution, whatever devices report: ruling X1 on the pure function."""

import itertools
import json
import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.documents import HumanNeeded, Refusal, Step
from hub.event_types import event_registry
from hub.executions import advance
from hub.executions.model import Attempt, DeviceReport, Execution, LogVerdict
from hub.executions.view import view
from hub.projections.fold import Fold
from hub.projections.outbox import publish_changes
from hub.store import migrations

# Core's table, written down here once more so that the product's is not its own judge.
CORE: dict[str, set[str]] = {
    "accepted": {"preparing", "refused", "stopped"},
    "preparing": {"running", "needs_human", "stopping", "failed"},
    "running": {"paused", "needs_human", "stopping", "completed", "failed"},
    "paused": {"running", "stopping"},
    "needs_human": {"running", "stopping", "failed"},
    "stopping": {"stopped"},
    "refused": set(),
    "stopped": set(),
    "completed": set(),
    "failed": set(),
}
AT = "2026-01-01T00:00:00Z"
Advance = Callable[[Execution], Execution]


def accepted(number: int = 1, **more: Any) -> Execution:
    attempt = Attempt(number=1, device="hob", request="exe-1.1", key="start-1")
    return Execution(
        id="exe-1",
        request="order-1",
        principal="person:anna",
        requested_by="person:anna",
        recipe="soup",
        recipe_hash="sha256:" + "0" * 64,
        state="accepted",
        updated_at=AT,
        attempts=(attempt,),
        **more,
    )


reports = st.builds(
    DeviceReport,
    state=st.sampled_from(sorted(CORE)),
    seq=st.integers(0, 9),
    boot=st.sampled_from(["a", "b"]),
    step=st.sampled_from([None, Step(node="n1", progress=0.5), Step(node="n2")]),
    refusal=st.sampled_from([None, Refusal(reason="busy", detail="a dish is on")]),
    human_needed=st.sampled_from([None, HumanNeeded(why="stir")]),
)
happenings: st.SearchStrategy[Advance] = st.one_of(
    reports.map(lambda said: lambda now: advance.report(now, 1, "hob-1", said, AT)),
    st.sampled_from(
        [
            lambda now: advance.sending(now, 1),
            lambda now: advance.start_refused(now, 1, "busy", "a dish is on", AT),
            lambda now: advance.start_given_up(now, 1, True, AT),
            lambda now: advance.start_given_up(now, 1, False, AT),
            lambda now: advance.forgotten(now, 1, AT),
            lambda now: advance.stop_asked(now, "anyone", AT),
            lambda now: advance.stop_sent(now, AT),
            lambda now: advance.stop_landed(now, AT),
            lambda now: advance.device_lost(now, "hob", AT),
            lambda now: advance.log_collected(now, LogVerdict(verdict="ok")),
        ]
    ),
)


def seen(execution: Execution) -> dict[str, Any]:
    """What a client sees, but for the number, and for the log, which comes after the end."""
    shown: dict[str, Any] = msgspec.to_builtins(view(execution))
    for beside in ("seq", "updatedAt", "x-aboyeur-log"):
        shown.pop(beside, None)
    return shown


@settings(max_examples=1000, deadline=None)
@given(st.lists(happenings, max_size=12))
def test_whatever_happens_only_cores_transitions_are_shown_each_under_a_seq_of_its_own(
    what: list[Advance],
) -> None:
    now = accepted()
    history = ["accepted"]
    for happens in what:
        before, now = now, happens(now)
        states = advance.shown(before, now)
        assert len(states) == now.seq - before.seq
        for state in states:
            assert state == history[-1] or state in CORE[history[-1]], (history, states)
            history.append(state)
        assert now.state == history[-1]
        if seen(before) != seen(now):
            assert now.seq > before.seq, "a change that nobody can tell by its seq"
        if before.final:
            assert (now.state, now.seq) == (before.state, before.seq)


@settings(max_examples=300, deadline=None)
@given(st.lists(happenings, max_size=8))
def test_every_seq_is_published_once_and_in_order(what: list[Advance]) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection, migrations.available())
    fold = Fold(connection, "home", 1, AT, event_registry(), {})
    now = accepted()
    publish_changes(fold, None, now)
    for happens in what:
        before, now = now, happens(now)
        publish_changes(fold, before, now)
    rows = connection.execute("SELECT topic, body FROM outbox ORDER BY rowid").fetchall()
    events = [json.loads(body) for _, body in rows]
    connection.close()
    assert [event["cookwalaseq"] for event in events] == list(range(now.seq + 1))
    assert len({event["id"] for event in events}) == len(events)
    assert {topic for topic, _ in rows} == {"cookwala/home/execution/exe-1"}
    states = [event["data"]["state"] for event in events]
    assert all(after == before or after in CORE[before] for before, after in itertools.pairwise(states))
    assert states[-1] == now.state


def test_states_that_a_device_skipped_are_shown_on_the_shortest_way() -> None:
    table = {
        ("accepted", "running"): ("preparing", "running"),
        ("accepted", "completed"): ("preparing", "running", "completed"),
        ("accepted", "failed"): ("preparing", "failed"),
        ("accepted", "needs_human"): ("preparing", "needs_human"),
        ("accepted", "paused"): ("preparing", "running", "paused"),
        ("accepted", "stopping"): ("preparing", "stopping"),
        ("accepted", "stopped"): ("stopped",),
        ("preparing", "paused"): ("running", "paused"),
        ("preparing", "completed"): ("running", "completed"),
        ("running", "stopped"): ("stopping", "stopped"),
        ("paused", "completed"): ("running", "completed"),
        ("paused", "failed"): ("running", "failed"),
        ("needs_human", "completed"): ("running", "completed"),
        ("needs_human", "stopped"): ("stopping", "stopped"),
    }
    for (start, goal), way in table.items():
        before = accepted()
        if start != "accepted":
            before = advance.report(before, 1, "hob-1", DeviceReport(state=start, seq=1), AT)
        after = advance.report(before, 1, "hob-1", DeviceReport(state=goal, seq=2), AT)
        assert advance.shown(before, after) == way, (start, goal)


def test_what_cannot_follow_waits_for_a_person_and_a_stop_ends_it() -> None:
    running = advance.report(accepted(), 1, "hob-1", DeviceReport(state="running", seq=2), AT)
    said = DeviceReport(state="refused", seq=3, refusal=Refusal(reason="busy"))
    waits = advance.report(running, 1, "hob-1", said, AT)
    assert (waits.state, waits.seq) == ("running", running.seq + 1)
    assert waits.waiting is not None
    assert waits.waiting.reason == "device_disagrees"
    assert advance.stop_asked(waits, "person:anna", AT).state == "stopped"
    asked = advance.stop_asked(running, "person:anna", AT)
    assert asked.state == "running"
    assert advance.report(asked, 1, "hob-1", said, AT).state == "stopped"


def test_a_refusal_is_shown_as_the_device_said_it() -> None:
    refusal = Refusal(reason="needs_human_present", node="n14", detail="niemand da")
    after = advance.report(accepted(), 1, "hob-1", DeviceReport(state="refused", seq=0, refusal=refusal), AT)
    assert (after.state, after.refusal) == ("refused", refusal)


def test_a_stop_is_shown_asked_sent_and_landed_and_never_goes_back() -> None:
    running = advance.report(accepted(), 1, "hob-1", DeviceReport(state="running", seq=2), AT)
    phases = []
    now = running
    for step in (
        lambda now: advance.stop_asked(now, "a", AT),
        lambda now: advance.stop_sent(now, AT),
        lambda now: advance.stop_asked(now, "b", AT),
        lambda now: advance.report(now, 1, "hob-1", DeviceReport(state="stopping", seq=3), AT),
        lambda now: advance.report(now, 1, "hob-1", DeviceReport(state="stopped", seq=4), AT),
        lambda now: advance.stop_sent(now, AT),
    ):
        now = step(now)
        assert now.stop is not None
        phases.append((now.state, now.stop.phase, now.stop.by))
    assert phases == [
        ("running", "asked", "a"),
        ("running", "sent", "a"),
        ("running", "sent", "a"),
        ("stopping", "sent", "a"),
        ("stopped", "landed", "a"),
        ("stopped", "landed", "a"),
    ]
