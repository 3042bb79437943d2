"""What only a device may run: its own limits against its own readings (Core §6.1).

A hub never imports this module (DESIGN §1, held by import-linter): no message, recipe, agent or mode reaches
in here, so none can loosen what fires.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from safety.device_documents import DRASTIC_FIRST, LimitAction, SafetyLimit, SafetyLimits
from safety.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class FiredLimit:
    """A limit that fired: its id, what the pack says to do, what was read (°C or kPa) and what was allowed.

    `value` is NaN when the reading was not a number; `maximum` and `minimum` are `None` where the limit names
    no such figure.
    """

    limit: str
    action: LimitAction
    value: float
    maximum: float | None
    minimum: float | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A temperature in °C at an instant in seconds, on the device's monotonic clock."""

    at_s: float
    temp_c: float


@dataclass(frozen=True, slots=True)
class LimitWatch:
    """Holds readings against a pack of limits. It has no state and no way to be told to look away.

    Attributes:
        limits: the pack in force.
        vocabulary: what tells that two ids name one operation; without it each id stands for itself only.
    """

    limits: SafetyLimits
    vocabulary: Vocabulary | None = None

    def check(
        self,
        *,
        op: str | None,
        medium: str | None,
        temp_c: float | None = None,
        pressure_kpa: float | None = None,
    ) -> FiredLimit | None:
        """The limit on a temperature or a pressure that fires now, or `None`.

        A reading at the limit is allowed, above it not; one that is not a finite number counts as above.
        Of several limits the most drastic action is returned, then the lowest figure.

        Args:
            op: the operation that runs; `None` when not known, which exempts from nothing.
            medium: what the readings were taken in; `None` as for `op`.
            temp_c: the medium's temperature in °C, `None` when there is no such sensor.
            pressure_kpa: gauge pressure in kPa, `None` when there is no such sensor.
        """
        read = {"max_temp": temp_c, "pressure": pressure_kpa}
        fired = [
            FiredLimit(limit.id, limit.action, value, limit.max)
            for limit in self._governing(op, medium)
            if (value := read.get(limit.kind)) is not None
            and (limit.max is None or not math.isfinite(value) or value > limit.max)
        ]
        return min(fired, key=_severity, default=None)

    def check_core(
        self, *, op: str | None, core_temp_c: float, food_classes: frozenset[str] | None
    ) -> FiredLimit | None:
        """The limit on the least core temperature that food about to be taken out or served falls short of.

        A reading at the limit is enough; one that is not a finite number, or a limit without a figure, never
        is. Of several limits the most drastic action is returned, then the highest figure.

        Args:
            op: the operation that ends; `None` when not known, which exempts from nothing.
            core_temp_c: measured inside the food, in °C.
            food_classes: what the food is of; `None` when nobody knows, which exempts from nothing.
        """
        fired = [
            FiredLimit(limit.id, limit.action, core_temp_c, None, limit.min)
            for limit in self._governing(op, None)
            if limit.kind == "min_core_temp"
            and _is_for(limit, food_classes)
            and (limit.min is None or not math.isfinite(core_temp_c) or core_temp_c < limit.min)
        ]
        return min(fired, key=_severity, default=None)

    def check_time(
        self,
        *,
        op: str | None,
        medium: str | None,
        course: Sequence[Moment],
        food_classes: frozenset[str] | None = None,
    ) -> FiredLimit | None:
        """The limit on time out of a temperature that food has exceeded in `course`, or `None`.

        Times out of the band are added up: going back into it does not undo what grew meanwhile. Between two
        moments the food counts as out unless it was in at both; a temperature that is not a finite number is
        out; a clock that went back counts nothing. A limit without any figure names nothing that a device can
        measure (`unjudged` lists it).

        Args:
            op: as for `check`.
            medium: as for `check`.
            course: moments in their order.
            food_classes: as for `check_core`.
        """
        fired = []
        for limit in self._governing(op, medium):
            if limit.kind != "time_temp" or not _has_figures(limit) or not _is_for(limit, food_classes):
                continue
            out = [moment for moment in course if not _within(limit, moment.temp_c)]
            if out and (limit.hold_for is None or _out_s(limit, course) > limit.hold_s):
                fired.append(FiredLimit(limit.id, limit.action, out[-1].temp_c, limit.max, limit.min))
        return min(fired, key=_severity, default=None)

    def unjudged(self) -> tuple[str, ...]:
        """Ids of the limits that no reading can be held against here: they are somebody else's to keep."""
        judged = {"max_temp", "pressure", "min_core_temp"}
        return tuple(
            limit.id
            for limit in self.limits.limits
            if limit.kind not in judged and not (limit.kind == "time_temp" and _has_figures(limit))
        )

    def _governing(self, op: str | None, medium: str | None) -> Iterator[SafetyLimit]:
        names: frozenset[str | None] = frozenset({op})
        if op is not None and self.vocabulary is not None:
            names |= self.vocabulary.names_of(op)
        for limit in self.limits.limits:
            if any(limit.governs(name, medium) for name in names):
                yield limit


def _is_for(limit: SafetyLimit, food_classes: frozenset[str] | None) -> bool:
    wanted = limit.applies_to.food_class if limit.applies_to is not None else None
    return wanted is None or food_classes is None or wanted in food_classes


def _has_figures(limit: SafetyLimit) -> bool:
    return limit.min is not None or limit.max is not None


def _within(limit: SafetyLimit, temp_c: float) -> bool:
    return (
        math.isfinite(temp_c)
        and (limit.min is None or temp_c >= limit.min)
        and (limit.max is None or temp_c <= limit.max)
    )


def _out_s(limit: SafetyLimit, course: Sequence[Moment]) -> float:
    out_s = 0.0
    for before, after in pairwise(course):
        passed_s = after.at_s - before.at_s
        if passed_s > 0 and not (_within(limit, before.temp_c) and _within(limit, after.temp_c)):
            out_s += passed_s
    return out_s


def _severity(fired: FiredLimit) -> tuple[int, float, str]:
    figure = fired.maximum
    if figure is None:
        figure = -math.inf if fired.minimum is None else -fired.minimum
    return (DRASTIC_FIRST.index(fired.action), figure, fired.limit)
