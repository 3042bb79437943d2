"""`envelope`: a trace held against an operation's envelope, or the rung of its ladder (Core §3)."""

import functools
from collections.abc import Mapping
from typing import Any

from msgspec import field

from events.documents import Document, DocumentError, from_plain
from hub.vocabularies import own_vocabulary
from safety.advice.envelope_check import TraceReading, check_trace
from safety.advice.figures import FOOD_SENSORS, Asked
from safety.advice.ladder import choose_rung
from safety.documents import OnSensorMissing
from safety.vocabulary import Envelope, Vocabulary


class Reading(Document, frozen=True):
    """One reading, as it came."""

    t: Any
    temp_c: Any = None
    pressure_kpa: Any = field(default=None, name="pressureKPa")


class Target(Document, frozen=True):
    """What the recipe wants, in °C."""

    value: float
    tolerance: float | None = None
    sensor: str | None = None


class Trace(Document, frozen=True):
    """What a medium did during an operation."""

    op: str
    readings: list[Reading]
    target: Target | None = None
    altitude_m: float = 0.0


class Ladder(Document, frozen=True):
    """What a device has to verify an operation with."""

    op: str
    sensors: list[str]
    human_present: bool
    allow_model: bool = True
    on_sensor_missing: OnSensorMissing | None = None


def answer(given: Any) -> Mapping[str, Any]:
    """`{envelopeOk, targetOk, reason}` of a trace, `{choice}` of a ladder.

    Raises:
        DocumentError: neither of the two questions, or an operation without an envelope.
        ValueError: an altitude where no kitchen stands.
    """
    if isinstance(given, dict) and "readings" in given:
        # (a target that says null is one that is not there)
        trace = from_plain(Trace, {name: value for name, value in given.items() if value is not None})
        target = None
        if trace.target is not None:
            in_food = trace.target.sensor in FOOD_SENSORS
            target = Asked("target", trace.target.value, trace.target.tolerance, in_food)
        verdict = check_trace(
            _envelope(trace.op),
            [TraceReading(reading.t, reading.temp_c, reading.pressure_kpa) for reading in trace.readings],
            target=target,
            altitude_m=trace.altitude_m,
        )
        return {
            "envelopeOk": verdict.envelope_ok,
            "targetOk": verdict.target_ok,
            "reason": verdict.reason,
        }
    ladder = from_plain(Ladder, given)
    rung = choose_rung(
        _envelope(ladder.op),
        frozenset(ladder.sensors),
        human_present=ladder.human_present,
        allow_model=ladder.allow_model,
        on_sensor_missing=ladder.on_sensor_missing,
    )
    return {"choice": rung}


def _envelope(op: str) -> Envelope:
    operation = _vocabulary().operation(op)
    if operation is None or operation.envelope is None:
        raise DocumentError("invalid", f"{op[:80]} has no envelope in this vocabulary", "$.op")
    return operation.envelope


@functools.cache
def _vocabulary() -> Vocabulary:
    return own_vocabulary()
