"""Local limits: the device enforces its own pack from its own readings, whatever anybody says (Core §6.1)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Benches = Callable[..., Any]


def pack(samples: dict[str, Any], action: str) -> bytes:
    limits = json.loads(json.dumps(samples["safetyLimits"]))
    for limit in limits["limits"]:
        if limit["id"] == "pan.max_surface":
            limit["action"] = action
    return json.dumps(limits).encode()


async def overheated(one: Any) -> str:
    """Shakshuka at its frying pan, with a thermostat that has just broken."""
    status = await one.start("shakshuka")
    one.turn_to_step(status.id, "n5")
    one.appliance.stick_heater()
    execution: str = status.id
    return execution


@pytest.mark.parametrize(
    ("action", "state"),
    [("cut_heat", "needs_human"), ("ask_human", "needs_human"), ("stop_all", "stopping"),
     ("stop_motion", "stopping"), ("refuse_start", "needs_human")],
)  # fmt: skip
async def test_a_stuck_heater_is_cut_at_the_limit(
    bench: Benches, samples: dict[str, Any], action: str, state: str
) -> None:
    one = bench(limits=pack(samples, action))
    execution = await overheated(one)
    status = one.turn_until(execution, "needs_human", "stopping")
    assert (status.state, one.appliance.heat_w(), one.appliance.moving()) == (state, 0, False)
    assert one.appliance.temperature_c() == pytest.approx(280, abs=0.1)
    (alarm,) = [event for event in one.said() if event["type"] == "cookwala.safety.limit_fired"]
    assert (alarm["cookwalapriority"], alarm["cookwalalatency"]) == ("safety", "local_safety")
    assert (alarm["data"]["x-aboyeur-limit"], alarm["subject"]) == ("pan.max_surface", "demo-hob-robot")
    one.turn(1)
    assert one.appliance.temperature_c() is None or one.appliance.temperature_c() < 280


async def test_an_alert_only_reports(bench: Benches, samples: dict[str, Any]) -> None:
    one = bench(limits=pack(samples, "alert"))
    execution = await overheated(one)
    one.turn(2)
    assert one.appliance.status(execution).state == "running"
    assert one.appliance.temperature_c() > 280
    assert len([event for event in one.said() if event["type"] == "cookwala.safety.limit_fired"]) == 1


async def test_an_alarm_is_in_force_until_a_person_resumes_and_the_log_knows_it(
    bench: Benches, samples: dict[str, Any]
) -> None:
    one = bench(limits=pack(samples, "cut_heat"))
    execution = await overheated(one)
    waiting = one.turn_until(execution, "needs_human")
    assert list(one.appliance.station.alarms) == ["pan.max_surface"]
    one.turn(5)
    one.appliance.resume(execution, waiting.seq, "resume-key")
    assert one.appliance.station.alarms == {}
    assert [event["type"] for event in one.said() if event["type"].startswith("cookwala.safety")] == [
        "cookwala.safety.limit_fired",
        "cookwala.safety.cleared",
    ]
    assert one.cook(execution).state == "completed"
    log = one.log_of(execution)
    assert [(event.limit, event.action, event.node) for event in log.safety_events] == [
        ("pan.max_surface", "cut_heat", "n5")
    ]
    fried = next(step for step in log.steps if step.node == "n5")
    assert (fried.envelope_ok, fried.deviation.kind) == (False, "temperature_excursion")
    assert fried.summary[0].max == 280.0


async def test_a_limit_fires_at_the_same_instant_however_fast_or_late_the_device_looks(
    bench: Benches, samples: dict[str, Any]
) -> None:
    peaks = []
    for late_s in (0.0, 3.0):
        one = bench(limits=pack(samples, "cut_heat"))
        execution = await overheated(one)
        for _ in range(50):
            if one.appliance.status(execution).state == "running":
                one.clock.turn(one.appliance.due() + late_s)
                one.appliance.advance()
        one.appliance.press_stop()
        one.turn(1)
        step = next(step for step in one.log_of(execution).steps if step.node == "n5")
        peaks.append(step.summary[0].max)
    assert peaks == [280.0, 280.0]
