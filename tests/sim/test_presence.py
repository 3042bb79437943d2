"""Presence: the device asks by itself, and only a fresh answer to its own open question is somebody (P2)."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from adapters.documents import PresenceWord
from sim.presence import Presence

Benches = Callable[..., Any]


async def asked(one: Any) -> str:
    """Start shakshuka, whose first step may not run unattended; its execution once the question is put."""
    status = await one.start("shakshuka")
    one.turn(0.5)
    assert one.open_nonce() is not None
    assert one.appliance.status(status.id).state == "running"
    assert not one.appliance.moving()
    execution: str = status.id
    return execution


def questions(one: Any) -> list[dict[str, Any]]:
    return [event for event in one.said() if event["type"] == "cookwala.notify.request"]


async def test_before_a_step_that_may_not_run_unattended_the_device_asks_and_waits(bench: Benches) -> None:
    one = bench()
    execution = await asked(one)
    (question,) = questions(one)
    assert question["subject"] == question["data"]["relatesTo"] == execution
    assert question["data"]["x-aboyeur-nonce"] == one.open_nonce()
    assert question["data"]["audience"] == ["role:household"]
    assert question["data"]["urgency"] == "time_critical"
    assert [action["id"] for action in question["data"]["actions"]] == ["here"]
    one.turn(58)
    assert (one.appliance.heat_w(), one.appliance.moving()) == (0, False)
    assert one.answer() is None
    assert one.appliance.moving()
    assert one.cook(execution).state == "completed"


async def test_the_word_that_came_with_the_start_does_not_start_a_step(bench: Benches) -> None:
    one = bench()
    await asked(one)
    assert len(questions(one)) == 1


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("fresh", None),
        ("59 seconds on the way", None),
        ("61 seconds old", "too_old"),
        ("expired", "expired"),
        ("wrong nonce", "wrong_nonce"),
        ("no nonce", "wrong_nonce"),
        ("replayed", "no_question"),
        ("an earlier question's", "wrong_nonce"),
        ("of another boot", "wrong_nonce"),
    ],
)
async def test_only_a_fresh_answer_to_the_open_question_is_somebody(
    bench: Benches, case: str, fault: str | None
) -> None:
    one = bench()
    execution = await asked(one)
    nonce = one.open_nonce()
    if case == "fresh":
        assert one.answer() is None
    elif case == "59 seconds on the way":
        one.turn(59)
        assert one.answer(age_s=59) is None
    elif case == "61 seconds old":
        assert one.answer(age_s=61) == fault
    elif case == "expired":
        one.clock.turn(one.clock.seconds + 60)
        assert one.answer() == fault
    elif case == "wrong nonce":
        assert one.answer(nonce="secret-guessed") == fault
    elif case == "no nonce":
        assert one.appliance.present(word_without_nonce()) == fault
    elif case == "replayed":
        assert one.answer() is None
        one.appliance.press_stop()
        assert one.answer(nonce=nonce) == fault
        return
    elif case == "an earlier question's":
        one.turn(61)
        waiting = one.appliance.status(execution)
        one.appliance.resume(execution, waiting.seq, "resume-key")
        assert one.open_nonce() not in (None, nonce)
        assert one.answer(nonce=nonce) == fault
    elif case == "of another boot":
        one.boot()
        await one.start("shakshuka", 2)
        one.turn(0.5)
        assert one.answer(nonce=nonce) == fault
    assert one.appliance.moving() == (fault is None)


def word_without_nonce() -> Any:
    return PresenceWord(by="person:anna", said_at="2026-10-05T12:00:00Z", age_s=0)


async def test_a_question_nobody_answers_needs_a_human_and_then_asks_again(bench: Benches) -> None:
    one = bench()
    execution = await asked(one)
    one.turn(59.4)
    assert one.appliance.status(execution).state == "running"
    one.turn(0.7)
    waiting = one.appliance.status(execution)
    assert waiting.state == "needs_human"
    assert "nobody answered" in waiting.human_needed.why
    assert one.answer(nonce="anything") == "no_question"
    one.appliance.resume(execution, waiting.seq, "resume-key")
    assert len(questions(one)) == 2
    assert not one.appliance.moving()
    assert one.answer() is None
    assert one.appliance.moving()


async def test_during_such_a_step_the_device_asks_again_and_without_an_answer_cuts_the_heat(
    bench: Benches, samples: dict[str, Any]
) -> None:
    one = bench(speed=1.0, presence_interval_s=100.0)
    status = await one.start("shakshuka")
    one.turn_until(status.id, "running")
    while one.appliance.status(status.id).step.node != "n5":
        one.turn(1)
        if one.open_nonce() is not None:
            assert one.answer() is None
    one.turn(30)
    assert one.appliance.heat_w() > 0
    before = len(questions(one))
    while one.open_nonce() is None:
        one.turn(1)
    asked_at = one.clock.seconds
    assert len(questions(one)) == before + 1
    assert one.appliance.heat_w() > 0
    one.turn(58)
    assert one.appliance.heat_w() > 0
    one.turn(2)
    waiting = one.appliance.status(status.id)
    assert (waiting.state, waiting.step.node) == ("needs_human", "n5")
    assert one.appliance.heat_w() == 0
    assert one.clock.seconds - asked_at < 62


async def test_an_answer_during_the_step_keeps_it_going_for_another_interval(bench: Benches) -> None:
    one = bench(speed=1.0, presence_interval_s=100.0)
    status = await one.start("shakshuka")
    end = one.turn_until(status.id, "completed", "needs_human")
    assert end.state == "completed"
    # Some forty minutes, most of them attended: one question each hundred seconds of those, and no more.
    assert 8 <= len(questions(one)) <= 30


async def test_steps_within_a_minute_of_an_answer_need_no_other(bench: Benches) -> None:
    one = bench(speed=120.0)
    status = await one.start("shakshuka")
    assert one.cook(status.id).state == "completed"
    assert len(questions(one)) == 1


async def test_a_step_that_may_run_unattended_asks_nobody(bench: Benches) -> None:
    one = bench(speed=1.0)
    status = await one.start("koshari")
    one.turn(3_000)
    assert one.appliance.status(status.id).step.node != "n1"
    assert questions(one) == []


async def test_the_control_on_the_device_is_somebody(bench: Benches) -> None:
    one = bench()
    execution = await asked(one)
    one.appliance.press_here()
    assert one.appliance.moving()
    assert one.open_nonce() is None
    assert one.appliance.status(execution).state == "running"


async def test_presence_is_measured_on_the_monotonic_clock_alone(bench: Benches) -> None:
    for jump in (timedelta(hours=1), timedelta(hours=-1)):
        one = bench()
        await asked(one)
        one.clock.offset = jump
        one.turn(30)
        assert one.answer() is None
        assert one.appliance.moving()


async def test_presence_does_not_outlive_the_dish_it_was_asked_for(bench: Benches) -> None:
    one = bench()
    await asked(one)
    assert one.answer() is None
    one.appliance.press_stop()
    one.turn(1)
    await one.start("shakshuka", 2)
    one.turn(0.5)
    assert not one.appliance.moving()
    assert one.open_nonce() is not None


async def test_no_nonce_comes_twice(bench: Benches) -> None:
    one = bench(speed=1.0, presence_interval_s=61.0)
    status = await one.start("shakshuka")
    one.turn_until(status.id, "completed", "needs_human")
    nonces = [json.dumps(question["data"]["x-aboyeur-nonce"]) for question in questions(one)]
    assert len(nonces) > 5
    assert len(set(nonces)) == len(nonces)


def test_nobody_answers_before_being_asked() -> None:
    presence = Presence(interval_s=600)
    presence.ask("n", 100.0)
    assert presence.answer("n", 50.0, 110.0) is None
    assert presence.fresh(160.0)
    assert not presence.fresh(160.1)
