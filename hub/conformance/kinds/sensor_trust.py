"""`sensor_trust` and `plausibility`: which sensors count (Core §3; profile sensor_trust)."""

import functools
from collections.abc import Mapping
from typing import Any

from events.documents import Document, DocumentError, from_plain
from events.times import parse_date_time
from hub.vocabularies import own_vocabulary
from mandates.documents import DateTime
from safety.advice.ladder import choose_rung
from safety.advice.sensor_trust import SensorReading, judge_plausibility, trusted
from safety.device_documents import CapabilitySet, Sensor
from safety.vocabulary import Vocabulary


class Device(Document, frozen=True):
    """As much of a device's capabilities as the answer hangs on."""

    capabilities: CapabilitySet


class TrustQuestion(Document, frozen=True):
    """How a device would verify an operation with the sensors that count."""

    capabilities: Device
    op: str
    human_present: bool
    now: DateTime
    allow_model: bool = True


class Reading(Document, frozen=True):
    """What a sensor reads, as it came."""

    sensor: str
    temp_c: Any


class PlausibilityQuestion(Document, frozen=True):
    """Readings of sensors in one medium, and what these say of themselves."""

    readings: list[Reading]
    sensors: list[Sensor]


def trust(given: Any) -> Mapping[str, Any]:
    """`{choice}`: the rung of the ladder, null where the step must be refused.

    Raises:
        DocumentError: not such a question, or an operation without an envelope.
    """
    question = from_plain(TrustQuestion, given)
    operation = _vocabulary().operation(question.op)
    if operation is None or operation.envelope is None:
        raise DocumentError("invalid", f"{question.op[:80]} has no envelope in this vocabulary", "$.op")
    rung = choose_rung(
        operation.envelope,
        trusted(question.capabilities.capabilities.sensors or (), parse_date_time(question.now)),
        human_present=question.human_present,
        allow_model=question.allow_model,
    )
    return {"choice": rung}


def plausibility(given: Any) -> Mapping[str, Any]:
    """`{ok, reason}` of the readings together; `demoted` names the sensors that do not count.

    Raises:
        DocumentError: not such a question.
    """
    question = from_plain(PlausibilityQuestion, given)
    done = judge_plausibility(
        [SensorReading(reading.sensor, reading.temp_c) for reading in question.readings],
        {sensor.sensor: sensor.accuracy for sensor in question.sensors},
    )
    return {"ok": done.ok, "reason": done.reason, "demoted": sorted(done.demoted)}


@functools.cache
def _vocabulary() -> Vocabulary:
    return own_vocabulary()
