"""Whatever is done to a device in whatever order, it stays within Core and heats only while it says so."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.acceptance import Rejected
from tests.sim.conftest import Bench
from tests.sim.test_lifecycle import ALLOWED

DEEDS = st.one_of(
    st.tuples(st.just("start"), st.sampled_from(["shakshuka", "koshari", "salata-baladi", "lentil-soup"])),
    st.tuples(st.just("turn"), st.sampled_from([0.05, 0.3, 2.0, 15.0, 61.0])),
    st.tuples(st.sampled_from(["answer", "here", "resume", "pause", "stop", "button", "stick", "unplug"]),
              st.none()),
    st.tuples(st.just("boot"), st.none()),
)  # fmt: skip


async def do(one: Bench, deed: str, what: Any, number: int) -> None:
    device = one.appliance
    busy = device.busy_with
    if deed == "start":
        await one.start(what, number)
    elif deed == "turn":
        one.turn(what)
    elif deed == "answer":
        one.answer()
    elif deed == "here":
        device.press_here()
    elif deed == "pause":
        device.press_pause()
    elif deed == "button":
        device.press_stop()
    elif deed == "stick":
        device.stick_heater()
    elif deed == "unplug":
        device.pull_plug()
    elif deed == "boot":
        one.boot()
    elif deed == "stop" and busy is not None:
        device.stop(busy)
    elif deed == "resume" and busy is not None:
        status = device.status(busy)
        assert status is not None
        try:
            device.resume(busy, status.seq, f"resume-{number}")
        except Rejected as rejected:
            assert rejected.status == 409


def check(one: Bench) -> None:
    busy = one.appliance.busy_with
    status = one.appliance.status(busy) if busy is not None else None
    if status is None or status.state != "running":
        assert one.appliance.heat_w() == 0
        assert not one.appliance.moving()
    if status is not None:
        assert status.state not in ("refused", "stopped", "completed", "failed")
    last: dict[str, tuple[str, int]] = {}
    for event in one.said():
        if not event["type"].startswith("cookwala.execution."):
            continue
        subject, state, seq = event["subject"], event["data"]["state"], event["cookwalaseq"]
        if subject not in last:
            assert (state in ("accepted", "refused"), seq) == (True, 0)
        else:
            before, before_seq = last[subject]
            assert seq == before_seq + 1
            assert (before, state) in ALLOWED or (before == state == "running")
        last[subject] = (state, seq)
    for subject, (state, seq) in last.items():
        known = one.appliance.status(subject)
        assert known is not None
        assert (known.state, known.seq) == (state, seq)
        final = state in ("refused", "stopped", "completed", "failed")
        assert (one.appliance.log(subject) is not None) == final


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(deeds=st.lists(DEEDS, min_size=3, max_size=25))
def test_only_cores_transitions_are_shown_and_heat_is_on_only_while_running(
    samples: dict[str, Any], deeds: list[tuple[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one = Bench(samples, Path(folder), "demo-hob-robot")

        async def live() -> None:
            await one.start("shakshuka", 1_000)
            for number, (deed, what) in enumerate(deeds):
                await do(one, deed, what, number)
                check(one)
            one.appliance.press_stop()
            one.turn(1)
            check(one)
            assert one.appliance.busy_with is None

        try:
            asyncio.run(live())
        finally:
            assert one.memory is not None
            one.memory.close()
