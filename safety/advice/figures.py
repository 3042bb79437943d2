"""The figures that a step asks for, held against its envelope (Core §3, targets inside envelopes).

A figure that is no number, or in a unit that nobody knows, is outside: it is never coerced and never skipped.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from safety.advice.altitude import band_at
from safety.documents import Unit
from safety.vocabulary import Band, Envelope, Vocabulary

FOOD_SENSORS: Final = frozenset({"cw.sense.core_temp", "cw.sense.product_temp"})
"""Sensors inside the food, which is colder than what heats it."""

_CELSIUS: Final = ("degC", "C")
_KPA_OF: Final = {"kPa": 1.0, "Pa": 0.001}
_OTHER_UNITS: Final = frozenset(get_args(Unit)) - {"degC", "kPa", "Pa"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A figure that a step asks for.

    Attributes:
        name: the parameter it stands in.
        value: °C or kPa.
        tolerance: how far from it still fits, in the same unit; None where nothing is said.
        in_food: whether it is wanted inside the food and not of the medium around it.
    """

    name: str
    value: float
    tolerance: float | None = None
    in_food: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """What a step asks of its medium: temperatures in °C, pressures in kPa gauge, and a heat level."""

    temperatures: tuple[Asked, ...] = ()
    pressures: tuple[Asked, ...] = ()
    heat: object = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a figure cannot be read."""

    detail: str


def figures_of(params: Mapping[str, Any]) -> Figures | Unreadable:
    """What the parameters of a step ask for."""
    temperatures: list[Asked] = []
    pressures: list[Asked] = []
    for name, written, unit, tolerance, sensor in _written(params):
        value = number(written)
        if value is None:
            return Unreadable(f"{name} is not a number")
        spread = None if tolerance is None else number(tolerance)
        if tolerance is not None and (spread is None or spread < 0):
            return Unreadable(f"the tolerance of {name} is no number from 0 up")
        if unit in _CELSIUS:
            temperatures.append(Asked(name, value, spread, in_food=sensor in FOOD_SENSORS))
        elif unit in _KPA_OF:
            scale = _KPA_OF[unit]
            pressures.append(Asked(name, value * scale, None if spread is None else spread * scale))
        elif unit not in _OTHER_UNITS:
            return Unreadable(f"{name} is in a unit that nobody knows")
    return Figures(tuple(temperatures), tuple(pressures), params.get("heat"))


def outside_envelope(
    figures: Figures, envelope: Envelope, vocabulary: Vocabulary, *, altitude_m: float = 0.0
) -> str | None:
    """In words, the first figure that cannot be held in `envelope`; None when all can.

    Raises:
        ValueError: no kitchen stands at `altitude_m`.
    """
    for asked in figures.temperatures:
        if not temperature_fits(asked, envelope, altitude_m=altitude_m):
            band = band_at(envelope, altitude_m)
            assert band is not None, "without a band every temperature fits"
            return f"{asked.name} {asked.value:g} °C lies outside {_span(band)} °C"
    detail = _heat_outside(figures.heat, envelope, vocabulary)
    if detail is not None:
        return detail
    for asked in figures.pressures:
        if envelope.pressure_kpa is not None and not envelope.pressure_kpa.holds(asked.value):
            return f"{asked.name} {asked.value:g} kPa lies outside {_span(envelope.pressure_kpa)} kPa"
    return None


def temperature_fits(asked: Asked, envelope: Envelope, *, altitude_m: float = 0.0) -> bool:
    """Whether the medium can be in the envelope and at the asked temperature at once.

    Food may be wanted colder than the medium around it; it can never get hotter. A recipe is written for sea
    level: higher up its target still fits where what it tolerates and the shifted band overlap.

    Raises:
        ValueError: no kitchen stands at `altitude_m`.
    """
    band = band_at(envelope, altitude_m)
    if band is None or envelope.temp_c is None or band.holds(asked.value):
        return True
    if asked.in_food and envelope.medium != "product":
        return asked.value < band.min
    if asked.tolerance is None or not envelope.temp_c.holds(asked.value):
        return False
    return asked.value - asked.tolerance <= band.max and asked.value + asked.tolerance >= band.min


def heat_floor(figures: Figures, envelope: Envelope | None, vocabulary: Vocabulary) -> Asked | None:
    """The least a heat level brings a pan to, as a temperature that is asked for."""
    if envelope is None or envelope.medium != "pan_surface" or not isinstance(figures.heat, str):
        return None
    level = vocabulary.heat_levels.get(figures.heat)
    return None if level is None else Asked("heat", level.min)


def number(value: object) -> float | None:
    """`value` if it is a finite number; text is never coerced."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _written(params: Mapping[str, Any]) -> Iterator[tuple[str, object, str, object, str | None]]:
    """Name, figure, unit, tolerance and sensor of all that is asked. What is not text is no unit."""
    for name in ("tempC", "oilTempC"):
        if name in params:
            yield name, params[name], "degC", None, None
    if "pressureKPa" in params:
        yield "pressureKPa", params["pressureKPa"], "kPa", None, None
    target = params.get("target")
    if isinstance(target, Mapping) and "value" in target:
        unit, sensor = target.get("unit", "degC"), target.get("sensor")
        yield (
            "target",
            target["value"],
            unit if isinstance(unit, str) else "",
            target.get("tolerance"),
            sensor if isinstance(sensor, str) else None,
        )


def _heat_outside(heat: object, envelope: Envelope, vocabulary: Vocabulary) -> str | None:
    band = envelope.temp_c
    if heat is None or band is None or envelope.medium != "pan_surface":
        return None
    level = vocabulary.heat_levels.get(heat) if isinstance(heat, str) else None
    if level is None:
        return "an unknown heat level"
    if level.max < band.min or level.min > band.max:
        return f"heat {heat} ({_span(level)} °C) cannot hold {_span(band)} °C"
    return None


def _span(band: Band) -> str:
    return f"{band.min:g}–{band.max:g}"
