"""Which sensors count: healthy, calibrated, not contradicted by another (Core §3; profile sensor_trust).

A sensor that does not count is as good as absent: the ladder goes on without it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Final, Literal

from events.times import parse_date_time
from safety.device_documents import Capabilities, Sensor

UNDECLARED_ACCURACY_C: Final = 2.0
"""How far a sensor that states no accuracy may be off, in °C, before it contradicts another."""

PlausibilityReason = Literal["ok", "implausible", "non_numeric_reading"]


@dataclass(frozen=True, slots=True)
class SensorReading:
    """What a sensor reads of the one medium that several of them are in; `temp_c` as it came, in °C."""

    sensor: str
    temp_c: object


@dataclass(frozen=True, slots=True)
class Plausibility:
    """Whether sensors in one medium agree; `demoted` are those that do not count until they do."""

    ok: bool
    reason: PlausibilityReason
    demoted: frozenset[str]


def trusted_sensors(capabilities: Capabilities, now: datetime) -> frozenset[str]:
    """Sensors and vision cues of a device that may stand as a rung of a ladder."""
    return trusted(capabilities.capabilities.sensors or (), now)


def trusted(sensors: Iterable[Sensor], now: datetime) -> frozenset[str]:
    """Those of `sensors`, with their vision cues, that are healthy by their own word and still calibrated.

    A state other than `ok` counts for nothing, none at all counts as declared. A calibration date that nobody
    can read is no calibration. Where a device has two of a kind, one that holds is enough.
    """
    good: set[str] = set()
    for sensor in sensors:
        if sensor.state in (None, "ok") and _calibrated(sensor, now):
            good.update((sensor.sensor, *(sensor.vision_cues or ())))
    return frozenset(good)


def judge_plausibility(
    readings: Sequence[SensorReading], accuracy_c: Mapping[str, float | None]
) -> Plausibility:
    """Hold the readings of sensors in one medium against each other.

    Two sensors agree when their readings are no further apart than both may be off. Which of two that do not
    is right cannot be known, so neither counts. What is not a finite number is never plausible.

    Args:
        accuracy_c: by sensor, in °C; `UNDECLARED_ACCURACY_C` where it is missing or no accuracy at all.
    """
    numbers = [(reading.sensor, _number(reading.temp_c)) for reading in readings]
    silent = frozenset(sensor for sensor, value in numbers if value is None)
    if silent:
        return Plausibility(False, "non_numeric_reading", silent)
    demoted: set[str] = set()
    for (one, reads), (other, differs) in combinations(numbers, 2):
        apart_c = abs((reads or 0.0) - (differs or 0.0))
        if apart_c > _accuracy(accuracy_c.get(one)) + _accuracy(accuracy_c.get(other)):
            demoted.update((one, other))
    if demoted:
        return Plausibility(False, "implausible", frozenset(demoted))
    return Plausibility(True, "ok", frozenset())


def _calibrated(sensor: Sensor, now: datetime) -> bool:
    until = sensor.calibration.valid_until if sensor.calibration else None
    if until is None:
        return True
    try:
        return now <= parse_date_time(until)
    except ValueError:
        return False


def _accuracy(stated: float | None) -> float:
    return UNDECLARED_ACCURACY_C if stated is None or not 0 <= stated < math.inf else stated


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
