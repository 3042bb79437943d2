"""The dry run: could this device cook every step of this recipe? Nothing runs (Core §3).

A device asks it of itself before it starts anything. A hub asks it as advice, to choose a device; the
device's own answer is the one that counts.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, get_args

from events.times import parse_date_time
from safety.device_documents import Capabilities, SafetyLimit, SafetyLimits
from safety.documents import Node, OnSensorMissing, Recipe, Unit
from safety.vocabulary import FALLBACK_RUNGS, Envelope, Vocabulary

DryRunReason = Literal[
    "missing_equipment",
    "missing_capability",
    "missing_sensor_no_fallback",
    "envelope_out_of_range",
    "safety_limit",
    "needs_human_present",
]
"""The refusal reasons of Core that a dry run, or a choice built on it, can come to."""
VerifiedBy = Literal["sensor", "model", "time", "human"]

FOOD_SENSORS: Final = frozenset({"cw.sense.core_temp", "cw.sense.product_temp"})
"""Sensors inside the food, which is colder than what heats it."""


@dataclass(frozen=True, slots=True)
class DryRunRefusal:
    """Why a recipe cannot be cooked; `node` is the step, `detail` is for people (at most 500 characters)."""

    reason: DryRunReason
    node: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """Who does a step and how its end is verified.

    Attributes:
        rung: the rung of the ladder: a sensor or vision cue by its id, `model`, `time` or `human`. An
            operation without a ladder ends on `time`; so does one that the vocabulary does not know.
    """

    node: str
    op: str
    by: Literal["device", "human"]
    verified_by: VerifiedBy
    rung: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """The answer: the whole plan, or the plan up to the first step that is refused."""

    state: Literal["accepted", "refused"]
    plan: tuple[PlannedStep, ...]
    refusal: DryRunRefusal | None = None


def dry_run(
    recipe: Recipe,
    capabilities: Capabilities,
    vocabulary: Vocabulary,
    *,
    human_present: bool,
    allow_model: bool = True,
    limits: SafetyLimits | None = None,
    now: datetime,
) -> DryRun:
    """Plan `recipe` on the device of `capabilities`, step by step, and stop at the first refusal.

    Args:
        human_present: whether a responsible person is there (Core §6.6).
        allow_model: whether the device may verify a step by a logged estimate.
        limits: the pack in force; a stricter limit wins over an envelope, a looser one changes nothing.
        now: aware; decides which calibrations still hold.
    """
    room = _Room(
        capabilities, vocabulary, human_present, allow_model, limits, trusted_sensors(capabilities, now)
    )
    plan: list[PlannedStep] = []
    for node in recipe.process.nodes:
        step = _place(node, room)
        if isinstance(step, DryRunRefusal):
            return DryRun("refused", tuple(plan), step)
        plan.append(step)
    return DryRun("accepted", tuple(plan))


def trusted_sensors(capabilities: Capabilities, now: datetime) -> frozenset[str]:
    """Sensors and vision cues that may stand as a rung: healthy by their own word, calibration not run out.

    A calibration date that nobody can read is no calibration.
    """
    trusted: set[str] = set()
    for sensor in capabilities.capabilities.sensors or ():
        if sensor.state not in (None, "ok"):
            continue
        until = sensor.calibration.valid_until if sensor.calibration else None
        if until is not None and not _still_valid(until, now):
            continue
        trusted.add(sensor.sensor)
        trusted.update(sensor.vision_cues or ())
    return frozenset(trusted)


def choose_rung(
    envelope: Envelope,
    sensors: frozenset[str],
    *,
    human_present: bool,
    allow_model: bool = True,
    on_sensor_missing: OnSensorMissing | None = None,
) -> str | None:
    """The first rung of the ladder that can be met, or `None` (Core §3, sensor ladder).

    `on_sensor_missing` narrows what may stand in for a sensor: `refuse` nothing, `estimate` a model, `time`
    a model or time, `human` a person. A person may be asked for instead of a model or of time, but never
    where the ladder lets nothing stand in for the sensor.
    """
    rungs = [rung for rung in envelope.ladder if rung not in FALLBACK_RUNGS]
    fallbacks = [rung for rung in envelope.ladder if rung in FALLBACK_RUNGS]
    if on_sensor_missing == "human":
        fallbacks = ["human"] if fallbacks else []
    elif on_sensor_missing is not None:
        allowed = {"refuse": (), "estimate": ("model",), "time": ("model", "time")}[on_sensor_missing]
        fallbacks = [rung for rung in fallbacks if rung in allowed]
    can_fall_back = {"model": allow_model, "time": True, "human": human_present}
    # Sensors stand above every fallback, whatever order a vocabulary writes them in.
    for rung in rungs:
        if rung in sensors:
            return rung
    return next((rung for rung in fallbacks if can_fall_back[rung]), None)


@dataclass(frozen=True, slots=True)
class _Room:
    """What stays the same from step to step."""

    capabilities: Capabilities
    vocabulary: Vocabulary
    human_present: bool
    allow_model: bool
    limits: SafetyLimits | None
    sensors: frozenset[str]

    def device_may(self, node: Node) -> bool:
        """Whether the device declares the operation, a machine may run it and the recipe lets this one."""
        operation = self.vocabulary.operation(node.op)
        if operation is not None and not operation.executable:
            return False
        declared = any(entry.op == node.op for entry in self.capabilities.capabilities.ops or ())
        return declared and _allows(node, self.capabilities.actor.kind)

    def person_may(self, node: Node) -> bool:
        """Whether a person who is there can do the step by hand.

        An operation newer than the vocabulary goes only to a device that declares it (ruling D4).
        """
        return (
            self.human_present and _allows(node, "human") and self.vocabulary.operation(node.op) is not None
        )


def _allows(node: Node, who: str) -> bool:
    allowed = node.assignment.allowed if node.assignment else None
    return allowed is None or "any" in allowed or who in allowed


def _place(node: Node, room: _Room) -> PlannedStep | DryRunRefusal:
    if not room.device_may(node):
        if room.person_may(node):
            return PlannedStep(node.id, node.op, "human", "human", "human")
        return _refuse(
            node, "missing_capability", f"the device cannot do {node.op}, and nobody else who may is there"
        )
    operation = room.vocabulary.operation(node.op)
    envelope = operation.envelope if operation else None
    broken = _check_numbers(node, envelope, room)
    if broken is not None:
        return broken
    attended_only = operation is None or (envelope is not None and not envelope.unattended)
    if attended_only and not room.human_present:
        why = "may not run unattended" if operation else "is not known here and so may not run unattended"
        return _refuse(node, "needs_human_present", f"{node.op} {why}")
    if envelope is None:
        return PlannedStep(node.id, node.op, "device", "time", "time")
    rung = choose_rung(
        envelope,
        room.sensors,
        human_present=room.human_present,
        allow_model=room.allow_model,
        on_sensor_missing=node.until.on_sensor_missing if node.until else None,
    )
    if rung is None:
        return _refuse(node, "missing_sensor_no_fallback", f"the device has no way left to verify {node.op}")
    return PlannedStep(node.id, node.op, "device", _verified_by(rung), rung)


def _verified_by(rung: str) -> VerifiedBy:
    fallbacks: dict[str, VerifiedBy] = {"model": "model", "time": "time", "human": "human"}
    return fallbacks.get(rung, "sensor")


def _still_valid(until: str, now: datetime) -> bool:
    try:
        return now <= parse_date_time(until)
    except ValueError:
        return False


# --- Numbers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A figure that a step asks for, by the name of its parameter."""

    name: str
    value: float
    in_food: bool = False


def _check_numbers(node: Node, envelope: Envelope | None, room: _Room) -> DryRunRefusal | None:
    """The first number of the step that breaks its envelope or a local limit."""
    params: Mapping[str, Any] = node.params or {}
    temperatures: list[_Asked] = []
    pressures: list[_Asked] = []
    for name, written, unit, sensor in _figures(params):
        value = _number(written)
        if value is None:
            return _refuse(node, "envelope_out_of_range", f"{name} is not a number")
        if unit in _CELSIUS:
            temperatures.append(_Asked(name, value, in_food=sensor in FOOD_SENSORS))
        elif unit in _KPA_OF:
            pressures.append(_Asked(name, value * _KPA_OF[unit]))
        elif unit not in _OTHER_UNITS:
            return _refuse(node, "envelope_out_of_range", f"{name} is in a unit that nobody knows")

    if envelope is not None:
        detail = (
            _temperature_outside(envelope, temperatures)
            or _heat_outside(envelope, params.get("heat"), room.vocabulary)
            or _pressure_outside(envelope, pressures)
        )
        if detail is not None:
            return _refuse(node, "envelope_out_of_range", f"{detail} for {node.op}")

    temperatures += _heat_floor(envelope, params.get("heat"), room.vocabulary)
    for limit in room.limits.limits if room.limits else ():
        if limit.governs(node.op, envelope.medium if envelope else None):
            detail = _over_limit(limit, temperatures, pressures)
            if detail is not None:
                return _refuse(node, "safety_limit", detail)
    return None


_CELSIUS: Final = ("degC", "C")
_KPA_OF: Final = {"kPa": 1.0, "Pa": 0.001}
_OTHER_UNITS: Final = frozenset(get_args(Unit)) - {"degC", "kPa", "Pa"}


def _figures(params: Mapping[str, Any]) -> Iterator[tuple[str, object, str, str | None]]:
    """Name, figure, unit and sensor of all that a step asks of its medium. What is not text is no unit."""
    for name in ("tempC", "oilTempC"):
        if name in params:
            yield name, params[name], "degC", None
    if "pressureKPa" in params:
        yield "pressureKPa", params["pressureKPa"], "kPa", None
    target = params.get("target")
    if isinstance(target, Mapping) and "value" in target:
        unit, sensor = target.get("unit", "degC"), target.get("sensor")
        yield (
            "target",
            target["value"],
            unit if isinstance(unit, str) else "",
            sensor if isinstance(sensor, str) else None,
        )


def _number(value: object) -> float | None:
    """`value` if it is a finite number; text is never coerced."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _temperature_outside(envelope: Envelope, temperatures: list[_Asked]) -> str | None:
    band = envelope.temp_c
    if band is None:
        return None
    for asked in temperatures:
        # Food may be wanted colder than the medium around it; it can never get hotter.
        food_below = asked.in_food and envelope.medium != "product" and asked.value < band.min
        if not band.holds(asked.value) and not food_below:
            return f"{asked.name} {asked.value:g} °C lies outside {band.min:g}–{band.max:g} °C"
    return None


def _heat_outside(envelope: Envelope, heat: object, vocabulary: Vocabulary) -> str | None:
    band = envelope.temp_c
    if heat is None or band is None or envelope.medium != "pan_surface":
        return None
    level = vocabulary.heat_levels.get(heat) if isinstance(heat, str) else None
    if level is None:
        return "an unknown heat level"
    if level.max < band.min or level.min > band.max:
        return f"heat {heat} ({level.min:g}–{level.max:g} °C) cannot hold {band.min:g}–{band.max:g} °C"
    return None


def _pressure_outside(envelope: Envelope, pressures: list[_Asked]) -> str | None:
    band = envelope.pressure_kpa
    if band is None:
        return None
    for asked in pressures:
        if not band.holds(asked.value):
            return f"{asked.name} {asked.value:g} kPa lies outside {band.min:g}–{band.max:g} kPa"
    return None


def _heat_floor(envelope: Envelope | None, heat: object, vocabulary: Vocabulary) -> list[_Asked]:
    """The least a heat level brings a pan to, as a temperature that is asked for."""
    if envelope is None or envelope.medium != "pan_surface" or not isinstance(heat, str):
        return []
    level = vocabulary.heat_levels.get(heat)
    return [_Asked("heat", level.min)] if level else []


def _over_limit(limit: SafetyLimit, temperatures: list[_Asked], pressures: list[_Asked]) -> str | None:
    kinds = {"max_temp": (temperatures, "°C"), "pressure": (pressures, "kPa")}
    figures, unit = kinds.get(limit.kind, ([], ""))
    for asked in figures:
        if limit.max is None:
            return f"local limit {limit.id} names no figure, so {asked.name} cannot be allowed"
        if asked.value > limit.max:
            return (
                f"{asked.name} {asked.value:g} {unit} is above local limit {limit.id} ({limit.max:g} {unit})"
            )
    return None


def _refuse(node: Node, reason: DryRunReason, detail: str) -> DryRunRefusal:
    return DryRunRefusal(reason, node.id, detail[:500])
