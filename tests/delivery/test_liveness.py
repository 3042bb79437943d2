"""Who is heard and who is not: decisions on a monotonic clock, nothing else (DESIGN §4; ruling E1)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.brigade import LOOK_EVERY_S
from hub.liveness import DEFAULT_INTERVAL_S, LATE_AFTER, LOST_AFTER, STALL_S, Liveness

FELL = list[tuple[str, str]]


def looks(liveness: Liveness, since: float, until: float) -> FELL:
    """Look as often as a hub looks; everything that was found."""
    found: FELL = []
    now = since
    while now <= until:
        found += liveness.judge(now)
        now += LOOK_EVERY_S
    return found


def listening(interval_s: float | None = None) -> Liveness:
    made = Liveness()
    made.watch("oven", 0.0, interval_s)
    made.listening(0.0)
    return made


@pytest.mark.parametrize(
    ("silence_s", "life"),
    [(0.0, "alive"), (14.9, "alive"), (15.1, "late"), (29.9, "late"), (30.1, "lost"), (3_600.0, "lost")],
)
def test_one_interval_missed_is_late_and_three_are_lost(silence_s: float, life: str) -> None:
    liveness = listening()
    liveness.heard("oven", 0.0, 10.0)
    looks(liveness, 0.0, silence_s)
    liveness.judge(silence_s)
    assert liveness.life("oven") == life


@pytest.mark.parametrize("interval_s", [1.0, 7.5, 10.0, 300.0])
def test_the_devices_own_interval_counts_else_ten_seconds(interval_s: float) -> None:
    liveness = listening()
    liveness.heard("oven", 0.0, interval_s)
    assert ("oven", "lost") not in looks(liveness, 0.0, LOST_AFTER * interval_s - 0.01)
    assert ("oven", "lost") in looks(liveness, LOST_AFTER * interval_s, LOST_AFTER * interval_s + 0.5)
    assert listening().intervals() == {"oven": DEFAULT_INTERVAL_S}


def test_a_device_that_beats_slowly_is_not_lost_because_the_hub_was_restarted() -> None:
    liveness = listening(300.0)
    assert looks(liveness, 0.0, 899.0) == []
    assert ("oven", "lost") in looks(liveness, 899.0, 900.5)


def test_after_a_start_nobody_is_judged_for_three_intervals() -> None:
    liveness = listening()
    assert looks(liveness, 0.0, 29.9) == []
    assert liveness.life("oven") == "unknown"
    assert looks(liveness, 29.9, 30.4) == [("oven", "lost")]


def test_silence_while_the_hub_hears_nothing_itself_proves_nothing() -> None:
    liveness = listening()
    liveness.heard("oven", 0.0, 10.0)
    liveness.deaf()
    assert looks(liveness, 0.0, 1_000.0) == []
    assert liveness.life("oven") == "unknown"
    assert not liveness.heard("oven", 1_000.0), "what is heard before the marker is no life"
    assert liveness.life("oven") == "unknown"
    liveness.listening(1_000.0)
    assert looks(liveness, 1_000.0, 1_029.9) == []
    assert looks(liveness, 1_029.9, 1_030.4) == [("oven", "lost")]


def test_a_hub_that_was_stalled_calls_nobody_lost_and_then_waits_three_intervals() -> None:
    liveness = listening()
    liveness.heard("oven", 0.0, 10.0)
    looks(liveness, 0.0, 5.0)
    assert liveness.judge(65.0) == []
    assert liveness.life("oven") == "unknown"
    assert liveness.is_deaf
    liveness.listening(65.1)
    assert looks(liveness, 65.1, 95.0) == []
    assert ("oven", "lost") in looks(liveness, 95.0, 95.6)


@pytest.mark.parametrize("judged_first", [False, True])
def test_what_waited_while_the_hub_stood_still_is_no_life(judged_first: bool) -> None:
    liveness = listening()
    liveness.heard("oven", 0.0, 10.0)
    looks(liveness, 0.0, 5.0)
    if judged_first:
        liveness.judge(65.0)
    assert not liveness.heard("oven", 65.0)
    liveness.judge(65.0)
    assert not liveness.heard("oven", 65.0)
    assert liveness.life("oven") == "unknown"
    liveness.listening(65.1)
    assert liveness.heard("oven", 66.0)


def test_a_device_comes_back_once() -> None:
    liveness = listening()
    assert liveness.heard("oven", 1.0)
    looks(liveness, 1.0, 2.0)
    assert not liveness.heard("oven", 2.0)
    looks(liveness, 2.0, 40.0)
    assert liveness.life("oven") == "lost"
    assert liveness.heard("oven", 40.5)


def test_a_device_nobody_watches_is_unknown_whatever_is_heard() -> None:
    liveness = listening()
    assert not liveness.heard("stranger", 1.0)
    assert liveness.life("stranger") == "unknown"
    liveness.forget("oven")
    assert looks(liveness, 1.0, 100.0) == []


@st.composite
def beating(draw: Any) -> tuple[float, list[float], float]:
    """An interval, when heartbeats were heard, and when the device fell silent for good."""
    interval_s = draw(st.sampled_from([1.0, 2.0, 10.0]))
    gaps = draw(st.lists(st.floats(min_value=0.05, max_value=2.8), min_size=1, max_size=20))
    beats, now = [], 0.0
    for gap in gaps:
        now += gap * interval_s
        beats.append(now)
    return interval_s, beats, now


@settings(max_examples=200, deadline=None)
@given(beating(), st.lists(st.floats(min_value=0.0, max_value=60.0), max_size=3))
def test_whoever_beats_is_never_lost_and_whoever_stops_is_lost_in_time(
    case: tuple[float, list[float], float], stalls: list[float]
) -> None:
    interval_s, beats, last = case
    liveness = listening(interval_s)
    now, waiting, lost_at, judged_since = 0.0, list(beats), None, 0.0
    stalls_at = {round(at, 1) for at in stalls}
    while lost_at is None and now < last + 10 * interval_s + 200:
        if round(now, 1) in stalls_at:
            # The hub stands still: what arrives meanwhile is read only afterwards.
            stalls_at.discard(round(now, 1))
            now += STALL_S + 3 * interval_s
            judged_since = now
            liveness.judge(now)
            while waiting and waiting[0] <= now:
                assert not liveness.heard("oven", now, interval_s)
                waiting.pop(0)
            liveness.listening(now)
        while waiting and waiting[0] <= now:
            liveness.heard("oven", now, interval_s)
            waiting.pop(0)
            judged_since = now
        for _, life in liveness.judge(now):
            if life == "lost":
                assert not waiting or now - judged_since >= LOST_AFTER * interval_s
                lost_at = now
        now += LOOK_EVERY_S
    assert lost_at is not None
    assert not waiting
    assert LOST_AFTER * interval_s <= lost_at - judged_since + 1e-6
    assert lost_at - judged_since <= LOST_AFTER * interval_s + 0.5
    assert LATE_AFTER < LOST_AFTER
