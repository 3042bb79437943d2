"""What only a device may run: its own limits against its own readings (Core §6.1).

A hub never imports this module (DESIGN §1, held by import-linter): no message, recipe, agent or mode reaches
in here, so none can loosen what fires.
"""

import math
from dataclasses import dataclass

from safety.device_documents import DRASTIC_FIRST, LimitAction, SafetyLimit, SafetyLimits


@dataclass(frozen=True, slots=True)
class FiredLimit:
    """A limit that fired: its id, what the pack says to do, what was read (°C or kPa) and what was allowed.

    `value` is NaN when the reading was not a number; `maximum` is `None` when the limit names no figure.
    """

    limit: str
    action: LimitAction
    value: float
    maximum: float | None


@dataclass(frozen=True, slots=True)
class LimitWatch:
    """Holds readings against a pack of limits. It has no state and no way to be told to look away."""

    limits: SafetyLimits

    def check(
        self,
        *,
        op: str | None,
        medium: str | None,
        temp_c: float | None = None,
        pressure_kpa: float | None = None,
    ) -> FiredLimit | None:
        """The limit that fires now, or `None`.

        A reading at the limit is allowed, above it not; one that is not a finite number counts as above.
        Of several limits the most drastic action is returned, then the lowest figure.

        Args:
            op: the operation that runs; `None` when not known, which exempts from nothing.
            medium: what the readings were taken in; `None` as for `op`.
            temp_c: the medium's temperature in °C, `None` when there is no such sensor.
            pressure_kpa: gauge pressure in kPa, `None` when there is no such sensor.
        """
        fired = [
            FiredLimit(limit.id, limit.action, value, limit.max)
            for limit in self.limits.limits
            if limit.governs(op, medium)
            for value in _read_by(limit, temp_c, pressure_kpa)
            if limit.max is None or not math.isfinite(value) or value > limit.max
        ]
        return min(fired, key=_severity, default=None)


def _read_by(limit: SafetyLimit, temp_c: float | None, pressure_kpa: float | None) -> list[float]:
    reading = {"max_temp": temp_c, "pressure": pressure_kpa}.get(limit.kind)
    return [] if reading is None else [reading]


def _severity(fired: FiredLimit) -> tuple[int, float, str]:
    maximum = -math.inf if fired.maximum is None else fired.maximum
    return (DRASTIC_FIRST.index(fired.action), maximum, fired.limit)
