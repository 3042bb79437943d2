"""When a step's `until` comes true: a tree of checks plus a window of time (Core §3).

Every check changes at most once while nobody decides anything new, so its instant is searched for, not
waited for. All instants are physical seconds.
"""

import math
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from msgspec import UNSET

from events.times import parse_duration_s
from safety.documents import Condition, Node

HANDWORK_S: Final = 60.0
"""How long a step takes that names neither a time nor a sign of its end."""
HORIZON_S: Final = 6 * 3_600.0
"""No check is looked for further ahead than this."""
_CLOSE: Final = 1e-6


class Senses(Protocol):
    """What a step can know of itself."""

    def timer_s(self, at_s: float) -> float:
        """Seconds spent in the envelope until `at_s`."""
        ...

    def when_timer_s(self, seconds: float) -> float:
        """When the timer shows `seconds`; infinity while it stands still."""
        ...

    def quantity(self, name: str, at_s: float) -> float | bool | None:
        """What a sensor reads or a model estimates at `at_s`; None where there is no model."""
        ...


class Until:
    """The end condition of one step, for a device with these `sensors` (vision cues included)."""

    def __init__(self, node: Node, sensors: frozenset[str]) -> None:
        self._params = node.params or {}
        self._sensors = sensors
        self._condition = node.until
        until = node.until
        self.minimum_s = duration_s(until.min_time if until else None) or 0.0
        self.maximum_s = duration_s(until.max_time if until else None)
        """The recipe's maxTime; None where the step may take as long as it takes."""
        self._nominal_s = duration_s(until.nominal_time if until else None)

    def done_s(self, senses: Senses, from_s: float) -> float:
        """The first instant from `from_s` at which the step is done; infinity when it never is."""
        until = self._condition
        if until is None:
            return max(from_s, senses.when_timer_s(HANDWORK_S))
        floor_s = max(from_s, senses.when_timer_s(self.minimum_s))
        checks = list(_checks(until))
        if not checks:
            wanted = self._nominal_s or self.minimum_s or min(HANDWORK_S, self.maximum_s or HANDWORK_S)
            return max(floor_s, senses.when_timer_s(wanted))
        if math.isinf(floor_s):
            return floor_s
        instants = {floor_s}
        for check in checks:
            instants.update(self._turns(check, senses, floor_s))
        instants.update(senses.when_timer_s(wait) for wait in _waits(until))
        for instant in sorted(instant for instant in instants if floor_s <= instant < math.inf):
            if self._holds(until, senses, instant):
                return instant
        return math.inf

    def _holds(self, condition: Condition, senses: Senses, at_s: float) -> bool:
        if condition.compares:
            return self._check_holds(condition, senses, at_s)
        if senses.timer_s(at_s) + _CLOSE < (duration_s(condition.min_time) or 0.0):
            return False
        every = [part for part in condition.all or [] if not self._left_out(part)]
        either = [part for part in condition.any or [] if not self._left_out(part)]
        if not all(self._holds(part, senses, at_s) for part in every):
            return False
        if either and not any(self._holds(part, senses, at_s) for part in either):
            return False
        return condition.not_ is None or not self._holds(condition.not_, senses, at_s)

    def _left_out(self, condition: Condition) -> bool:
        """An optional check counts only for a device that has its sensor."""
        return bool(condition.optional) and condition.compares and not self._has(condition)

    def _has(self, check: Condition) -> bool:
        return (check.sensor or check.vision) in self._sensors

    def _turns(self, check: Condition, senses: Senses, from_s: float) -> list[float]:
        """When `check` starts to hold, and when it stops, looking from `from_s` on."""
        starts = first_s(lambda at_s: self._check_holds(check, senses, at_s), from_s)
        if math.isinf(starts):
            return []
        stops = first_s(lambda at_s: not self._check_holds(check, senses, at_s), starts)
        return [starts, stops]

    def _check_holds(self, check: Condition, senses: Senses, at_s: float) -> bool:
        held_s = duration_s(check.hold_for) or 0.0
        if held_s:
            if senses.timer_s(at_s) + _CLOSE < held_s:
                return False
            if not self._compares(check, senses, max(senses.when_timer_s(0.0), at_s - held_s)):
                return False
        return self._compares(check, senses, at_s)

    def _compares(self, check: Condition, senses: Senses, at_s: float) -> bool:
        value = senses.quantity(check.sensor or check.vision or "", at_s)
        if value is None and check.vision is not None and self._has(check):
            # What a camera looks for shows a little after the least time the recipe gives.
            least_s = self.minimum_s or HANDWORK_S
            most_s = math.inf if self.maximum_s is None else self.maximum_s
            return senses.timer_s(at_s) + _CLOSE >= min(least_s * 1.1, (least_s + most_s) / 2)
        if value is None:
            # Neither sensor nor model: the step's least time is all there is to go by.
            return senses.timer_s(at_s) + _CLOSE >= self.minimum_s
        if isinstance(value, bool):
            return value
        near = _CLOSE
        low, high = self._number(check.gte), self._number(check.lte)
        if check.between is not None:
            low, high = self._number(check.between[0]), self._number(check.between[1])
        if check.eq is not UNSET:
            low = high = self._number(check.eq)
            near = 0.5
        if low is None and high is None:
            return False
        return (low is None or value >= low - near) and (high is None or value <= high + near)

    def _number(self, value: object) -> float | None:
        """A figure of a check, or the step's parameter that `{name}` stands for."""
        if isinstance(value, str):
            value = self._params.get(value.strip("{}"))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)


def duration_s(text: str | None) -> float | None:
    """An ISO 8601 duration in seconds; None stays None."""
    return None if text is None else parse_duration_s(text)


def first_s(holds: Callable[[float], bool], from_s: float, horizon_s: float = HORIZON_S) -> float:
    """The first instant from `from_s` at which `holds`, to a tenth of a millisecond; infinity when never.

    It is looked for in widening strides, then between the two strides where it turned.
    """
    if holds(from_s):
        return from_s
    strides = 120
    low, high = from_s, math.inf
    for number in range(1, strides + 1):
        instant = from_s + horizon_s * (number / strides) ** 2
        if holds(instant):
            high = instant
            break
        low = instant
    if math.isinf(high):
        return math.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _parts(condition: Condition) -> list[Condition]:
    negated = [condition.not_] if condition.not_ is not None else []
    return [*(condition.all or []), *(condition.any or []), *negated]


def _checks(condition: Condition) -> Iterator[Condition]:
    if condition.compares:
        yield condition
        return
    for part in _parts(condition):
        yield from _checks(part)


def _waits(condition: Condition) -> Iterator[float]:
    yield duration_s(condition.min_time) or 0.0
    for part in _parts(condition):
        yield from _waits(part)
