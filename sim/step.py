"""One step of a dish as a device performs it: heat to the envelope, count the time in it, end (Core §3).

All instants are physical seconds; nothing here knows of requests, people or the network.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, cast

from adapters.documents import LogSummary, Reading
from safety.advice.altitude import band_at
from safety.documents import Node
from safety.enforcement import FiredLimit, LimitWatch
from safety.vocabulary import Band, Envelope, Vocabulary
from sim.physics import MATERIALS, ROOM_C, Body, Medium, poured
from sim.until import Until, duration_s, first_s

WARM_UP_S: Final = 3_600.0
"""A medium that has not reached its envelope by then never will."""
LOSS_PER_S: Final = 0.015 / 60
"""Share of a simmering sauce that evaporates in a second."""
CORE_LAG_S: Final = 150.0
"""In this time the core of what is cooked comes within 1/e of its medium."""

TEMPERATURES: Final = MappingProxyType[str, Medium](
    {
        "cw.sense.liquid_temp": "water",
        "cw.sense.oil_temp": "oil",
        "cw.sense.pan_surface_temp": "pan_surface",
        "cw.sense.oven_temp": "air",
        "cw.sense.chamber_temp": "steam",
        "cw.sense.core_temp": "product",
        "cw.sense.product_temp": "product",
        "cw.sense.ambient_temp": "ambient",
        "cw.sense.fridge_temp": "ambient",
        "cw.sense.freezer_temp": "ambient",
        "cw.sense.grill_temp": "radiant",
    }
)


@dataclass(frozen=True, slots=True)
class Ending:
    """What comes next in a step left alone, and when: done, taking too long, or never getting warm."""

    kind: Literal["done", "timeout", "cold"]
    at_s: float


class StepRun:
    """A step in progress.

    Attributes:
        envelope_ok: whether the medium, once in its envelope, was measured (or estimated) only inside it.
        extensions: how often the recipe's `extend` was used.
    """

    def __init__(
        self,
        node: Node,
        vocabulary: Vocabulary,
        *,
        sensors: frozenset[str],
        parts: list[Body],
        at_s: float,
        altitude_m: float = 0.0,
    ) -> None:
        operation = vocabulary.operation(node.op)
        self.node = node
        self.envelope: Envelope | None = operation.envelope if operation else None
        self.envelope_ok = True
        self.extensions = 0
        self.medium = _medium(node, self.envelope)
        self.body: Body | None = None
        self._band = band_at(self.envelope, altitude_m) if self.medium is not None and self.envelope else None
        self._aim_c: float | None = None
        if self.medium is not None and self._band is not None:
            self.body = poured(self.medium, parts, at_s, altitude_m)
            self._aim_c = _aim(node, self._band, self.envelope, vocabulary)
        elif parts:
            # Handwork on something hot: it stands and cools.
            self.body = parts[0].aimed(None, at_s)
        self._sensors = sensors
        self._until = Until(node, sensors)
        self._maximum_s = self._until.maximum_s
        self._counted_s = 0.0
        self._counting_from_s: float | None = None
        self._coldest_c = math.inf
        self._hottest_c = -math.inf
        self._was_inside = False
        self._decided_s = at_s
        self._ending: Ending | None = None

    @property
    def heats(self) -> bool:
        """Whether the step brings a medium to a temperature."""
        return self._aim_c is not None

    @property
    def active(self) -> bool:
        """Whether it is going on: motion and heat may be on."""
        return self._counting_from_s is not None

    def begin(self, at_s: float) -> None:
        """Start, or go on after `halt`. Time counts from when the medium is in its envelope."""
        if self.active:
            return
        self._decide(at_s)
        self._counting_from_s = at_s
        if self.body is None or self._band is None or self._aim_c is None:
            return
        temp_c = self.body.temp_c(at_s)
        if self._was_inside and not _inside(self._band, temp_c):
            self.envelope_ok = False
        self.body = self.body.aimed(self._aim_c, at_s)
        if not self._band.holds(temp_c):
            edge_c = self._band.min if temp_c < self._band.min else self._band.max
            self._counting_from_s = self.body.reaches_s(edge_c)

    def halt(self, at_s: float) -> None:
        """Heat and motion off at once. What was counted stays counted."""
        self.measure(at_s)
        self._decide(at_s)
        self._counted_s = self.timer_s(at_s)
        self._counting_from_s = None
        if self.body is not None:
            self.body = self.body.aimed(None, at_s)

    def stick_heater(self, at_s: float) -> None:
        """A fault: the heater stays fully on, whatever its controller wants."""
        self.measure(at_s)
        self._decide(at_s)
        if self.body is not None:
            self.body = self.body.aimed(math.inf, at_s)

    def lose_heater(self, at_s: float) -> None:
        """A fault: the heater gives nothing, whatever its controller wants."""
        self.measure(at_s)
        counted_s, active = self.timer_s(at_s), self.active
        self._decide(at_s)
        if self.body is not None:
            self.body = self.body.aimed(None, at_s)
        if active and self.heats:
            self._counted_s, self._counting_from_s = counted_s, math.inf

    def allow_more(self, at_s: float) -> None:
        """Move the limit as the recipe's `extend` says, by half of its maxTime where it gives no figure."""
        if self._maximum_s is not None:
            retry = self.node.retry
            more_s = duration_s(retry.extend_by if retry else None)
            self._maximum_s += self._maximum_s / 2 if more_s is None else more_s
        self.extensions += 1
        self._decide(at_s)

    def _decide(self, at_s: float) -> None:
        """From here on the future is another one."""
        self._decided_s = at_s
        self._ending = None

    def ending(self) -> Ending:
        """What ends the step if nobody decides anything new."""
        if self._ending is None:
            self._ending = self._foresee()
        return self._ending

    def _foresee(self) -> Ending:
        start_s = self._counting_from_s
        if start_s is None:
            return Ending("cold", math.inf)
        if start_s > self._decided_s + WARM_UP_S:
            return Ending("cold", self._decided_s + WARM_UP_S)
        done_s = self._until.done_s(self, max(self._decided_s, start_s))
        limit_s = math.inf if self._maximum_s is None else self.when_timer_s(self._maximum_s)
        if done_s <= limit_s:
            return Ending("done", done_s)
        return Ending("timeout", max(self._decided_s, limit_s))

    def fires(self, watch: LimitWatch) -> tuple[float, FiredLimit] | None:
        """The first local limit that the medium will break if nobody decides anything new, and when."""
        body = self.body
        if body is None or body.aim_c is None:
            return None

        def check(at_s: float) -> FiredLimit | None:
            return self._check(watch, body.temp_c(at_s))

        # Between two decisions a temperature only rises or only falls: where it ends is the worst of it.
        if check(self._decided_s) is None and self._check(watch, body.settles_c()) is None:
            return None
        at_s = first_s(lambda instant: check(instant) is not None, self._decided_s)
        fired = None if math.isinf(at_s) else check(at_s)
        return None if fired is None else (at_s, fired)

    def _check(self, watch: LimitWatch, temp_c: float) -> FiredLimit | None:
        # Where the envelope speaks of the pan but the oil in it is measured, no limit of oil is exempt.
        same = self.envelope is not None and self.medium == self.envelope.medium
        pressure_kpa = (temp_c - 100.0) / 21.0 * 100.0 if self.medium == "pressure" else None
        op = self.node.op if same else None
        return watch.check(op=op, medium=self.medium, temp_c=temp_c, pressure_kpa=pressure_kpa)

    def progress(self, at_s: float) -> float:
        """How far along, 0 to 1, by the time that is left until its end."""
        passed_s = self.timer_s(at_s)
        left_s = max(0.0, self.ending().at_s - at_s)
        if math.isinf(left_s):
            return 0.0
        return 1.0 if passed_s + left_s <= 0 else round(passed_s / (passed_s + left_s), 3)

    def temperature_c(self, at_s: float) -> float | None:
        """The medium's true temperature."""
        return None if self.body is None else self.body.temp_c(at_s)

    def pressure_kpa(self, at_s: float) -> float | None:
        """Gauge pressure in a closed pot, by the temperature of its steam."""
        if self.medium != "pressure" or self.body is None:
            return None
        return max(0.0, (self.body.temp_c(at_s) - 100.0) / 21.0 * 100.0)

    def readings(self, at_s: float) -> list[Reading]:
        """The medium's temperature as the device measures it, or estimates it where it has no sensor."""
        if self.body is None or self.medium is None:
            return []
        value = round(self.body.temp_c(at_s), 1)
        return [Reading(sensor=self.sensor, value=value, unit="degC", estimated=self._estimated)]

    def summary(self, at_s: float) -> list[LogSummary]:
        """Lowest, highest and last temperature of the medium since it reached its envelope."""
        self.measure(at_s)
        if self.body is None or not self._was_inside:
            return []
        return [
            LogSummary(
                sensor=self.sensor,
                unit="degC",
                min=round(self._coldest_c, 1),
                max=round(self._hottest_c, 1),
                end=round(self.body.temp_c(at_s), 1),
                estimated=self._estimated,
            )
        ]

    def measure(self, at_s: float) -> None:
        """Hold what the medium did since the last decision against its envelope.

        Between two decisions a temperature only rises or only falls, so both ends are its extremes.
        """
        start_s, body, band = self._counting_from_s, self.body, self._band
        if start_s is None or body is None or band is None or at_s < start_s:
            return
        self._was_inside = True
        for instant in (max(start_s, body.since_s), at_s):
            temp_c = body.temp_c(instant)
            self._coldest_c = min(self._coldest_c, temp_c)
            self._hottest_c = max(self._hottest_c, temp_c)
            self.envelope_ok = self.envelope_ok and _inside(band, temp_c)

    @property
    def sensor(self) -> str:
        """The sensor that reads the step's medium: the one the recipe names, else the medium's own."""
        target = (self.node.params or {}).get("target")
        named = target.get("sensor") if isinstance(target, dict) else None
        if isinstance(named, str) and TEMPERATURES.get(named) == self.medium:
            return named
        wanted = "water" if self.medium == "pressure" else self.medium
        return next(name for name, medium in TEMPERATURES.items() if medium == wanted)

    @property
    def _estimated(self) -> bool | None:
        return None if self.sensor in self._sensors else True

    # --- what `until` asks -----------------------------------------------------------------------------

    def timer_s(self, at_s: float) -> float:
        """Seconds spent in the envelope until `at_s`."""
        start_s = self._counting_from_s
        return self._counted_s + (0.0 if start_s is None else max(0.0, at_s - start_s))

    def when_timer_s(self, seconds: float) -> float:
        """When the timer shows `seconds`; infinity while it stands still."""
        start_s = self._counting_from_s
        return math.inf if start_s is None else start_s + max(0.0, seconds - self._counted_s)

    def quantity(self, name: str, at_s: float) -> float | bool | None:
        """What a sensor reads or the model estimates; None where there is no model."""
        if name == "cw.sense.mass_loss_ratio":
            return self.timer_s(at_s) * LOSS_PER_S
        if name == "cw.sense.pressure":
            return self.pressure_kpa(at_s)
        if self.body is None:
            return None
        temp_c = self.body.temp_c(at_s)
        if name == "cw.sense.core_temp" and self.medium != "product":
            return ROOM_C + (temp_c - ROOM_C) * (1 - math.exp(-self.timer_s(at_s) / CORE_LAG_S))
        if name in TEMPERATURES:
            return temp_c
        if name == "cw.sense.boil_detect":
            return temp_c >= min(self.body.ceiling_c, 100.0) - 2.0
        if name == "cw.sense.oil_shimmer":
            return temp_c >= 150.0
        return None


def _inside(band: Band, temp_c: float) -> bool:
    return band.min - 1e-3 <= temp_c <= band.max + 1e-3


def _medium(node: Node, envelope: Envelope | None) -> Medium | None:
    if envelope is None or envelope.temp_c is None or envelope.medium not in MATERIALS:
        return None
    medium = cast(Medium, envelope.medium)
    target = (node.params or {}).get("target")
    sensor = target.get("sensor") if isinstance(target, dict) else None
    if medium == "pan_surface" and sensor == "cw.sense.oil_temp":
        # The envelope speaks of the pan; the oil in it is what the heat is for.
        return "oil"
    return medium


def _aim(node: Node, band: Band, envelope: Envelope | None, vocabulary: Vocabulary) -> float:
    """The temperature to hold: the recipe's, else the middle of what heat level and envelope allow."""
    params = node.params or {}
    target = params.get("target")
    wanted: list[object] = [params.get("tempC"), params.get("oilTempC")]
    if isinstance(target, dict) and target.get("unit", "degC") == "degC":
        wanted.insert(0, target.get("value"))
    for value in wanted:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return min(max(float(value), band.min), band.max)
    low, high = band.min, band.max
    level = vocabulary.heat_levels.get(str(params.get("heat")))
    on_pan = envelope is not None and envelope.medium == "pan_surface"
    if level is not None and on_pan and level.min <= high and level.max >= low:
        low, high = max(low, level.min), min(high, level.max)
    return (low + high) / 2
