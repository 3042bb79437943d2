"""A trace of a medium held against an operation's envelope and the recipe's target (Core §3).

Until the medium is in the envelope for the first time it is on its way; from then on it must stay. The same
holds for a narrower target (ruling S1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from safety.advice.altitude import band_at
from safety.advice.figures import Asked, number, temperature_fits
from safety.vocabulary import Band, Envelope

TraceReason = Literal[
    "ok",
    "target_outside_envelope",
    "non_numeric_reading",
    "out_of_order",
    "never_reached_envelope",
    "left_envelope",
    "never_reached_target",
    "left_target",
    "no_band",
]


@dataclass(frozen=True, slots=True)
class TraceReading:
    """One reading: seconds since the start, and what was read, as it came: °C, kPa gauge, or both."""

    t_s: object
    temp_c: object = None
    pressure_kpa: object = None


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """What a trace shows.

    Attributes:
        envelope_ok: whether the medium, once in the envelope (and in the target), stayed there; None where
            the operation has no band to be in.
        target_ok: whether the target was reached and kept; None where there is none that could be kept: none
            at all, one without a tolerance, or one inside the food.
        reason: the first thing that is wrong, in the order of `TraceReason`.
    """

    envelope_ok: bool | None
    target_ok: bool | None
    reason: TraceReason


def check_trace(
    envelope: Envelope,
    readings: Sequence[TraceReading],
    *,
    target: Asked | None = None,
    altitude_m: float = 0.0,
) -> TraceVerdict:
    """Hold `readings` against `envelope` in a kitchen at `altitude_m`.

    A reading is inside when every figure it gives is; one that gives no number for any band is not a reading.

    Raises:
        ValueError: no kitchen stands at `altitude_m`.
    """
    band, pressures = band_at(envelope, altitude_m), envelope.pressure_kpa
    if target is not None and not temperature_fits(target, envelope, altitude_m=altitude_m):
        return TraceVerdict(False, False, "target_outside_envelope")
    wanted = _wanted(envelope, target)
    missed = None if wanted is None else False
    if band is None and pressures is None:
        return TraceVerdict(None, None, "no_band")
    figures = [_figures(reading, band, pressures) for reading in readings]
    if None in figures:
        return TraceVerdict(False, missed, "non_numeric_reading")
    if not _in_order([number(reading.t_s) for reading in readings]):
        return TraceVerdict(False, missed, "out_of_order")
    in_band = [figure is not None and figure.inside(band, pressures) for figure in figures]
    on_target = None
    if wanted is not None:
        measured = [figure.temp_c for figure in figures if figure is not None]
        on_target = [wanted.holds(temp_c) for temp_c in measured if temp_c is not None]
    return _judge(in_band, on_target)


def _in_order(times_s: Sequence[float | None]) -> bool:
    last_s = -math.inf
    for at_s in times_s:
        if at_s is None or at_s < last_s:
            return False
        last_s = at_s
    return True


@dataclass(frozen=True, slots=True)
class _Figures:
    temp_c: float | None
    pressure_kpa: float | None

    def inside(self, band: Band | None, pressures: Band | None) -> bool:
        """Whether every figure that there is lies in its band."""
        return _fits(self.temp_c, band) and _fits(self.pressure_kpa, pressures)


def _judge(in_band: Sequence[bool], on_target: Sequence[bool] | None) -> TraceVerdict:
    reached, left = _course(in_band)
    target_ok: bool | None = None
    target_reached = target_left = False
    if on_target is not None:
        target_reached, target_left = _course(on_target)
        target_ok = target_reached and not target_left
    if not reached:
        return TraceVerdict(False, target_ok, "never_reached_envelope")
    if left:
        return TraceVerdict(False, target_ok, "left_envelope")
    if target_left:
        return TraceVerdict(False, False, "left_target")
    if target_ok is False:
        return TraceVerdict(True, False, "never_reached_target")
    return TraceVerdict(True, target_ok, "ok")


def _course(inside: Sequence[bool]) -> tuple[bool, bool]:
    """Whether it was ever inside, and whether it was outside after that."""
    if True not in inside:
        return False, False
    return True, False in inside[inside.index(True) :]


def _wanted(envelope: Envelope, target: Asked | None) -> Band | None:
    if target is None or target.tolerance is None or (target.in_food and envelope.medium != "product"):
        return None
    return Band(min=target.value - target.tolerance, max=target.value + target.tolerance)


def _fits(figure: float | None, band: Band | None) -> bool:
    return figure is None or band is None or band.holds(figure)


def _figures(reading: TraceReading, band: Band | None, pressures: Band | None) -> _Figures | None:
    """The reading's figures; None where one is no number, or none is for a band that there is."""
    temp_c, pressure_kpa = number(reading.temp_c), number(reading.pressure_kpa)
    if (temp_c is None) != (reading.temp_c is None) or (pressure_kpa is None) != (
        reading.pressure_kpa is None
    ):
        return None
    useful = (temp_c is not None and band is not None) or (pressure_kpa is not None and pressures is not None)
    return _Figures(temp_c, pressure_kpa) if useful else None
