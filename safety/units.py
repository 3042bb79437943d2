"""Units: exact conversions, and the temperature of a display (Core §4).

All arithmetic is in fractions, so that a conversion is exact and its way back gives the same number. Between
volume and mass lies a density; without one there is no answer, and never a guess. On the wire a temperature
is °C and nothing else: what a display shows is computed by functions of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Final, Literal

from msgspec import Meta

from events.documents import Document, DocumentError, read
from events.texts import Name
from safety.documents import Version

UNITS_RESOURCE: Final = "data/units-0.2.json"

UnitKind = Literal[
    "mass", "volume", "count", "temperature", "power", "length", "speed", "pressure", "share", "time"
]
ConversionReason = Literal["unknown_unit", "needs_density", "other_kind", "bad_density", "out_of_range"]

_DECIMAL = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_MOST: Final = Fraction(10) ** 300
"""Nothing in a kitchen is more, and nothing that JSON readers agree on either."""


class UnitEntry(Document, frozen=True):
    """A unit by the base unit of its kind (the one of factor 1)."""

    factor: Annotated[str, Meta(pattern=r"^[0-9]{1,12}(\.[0-9]{1,12})?$(?!\n)")]
    about: bool = False
    """Whether a cook means only about so much: a pinch, a dash."""

    def __post_init__(self) -> None:
        if Fraction(self.factor) <= 0:
            raise ValueError("a unit's factor is above 0")


class UnitsFile(Document, frozen=True):
    """The data file of units."""

    units: Version
    kinds: dict[UnitKind, dict[Name, UnitEntry]]


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a quantity is in another unit; `about` when one of the units only says about how much."""

    value: Fraction
    unit: str
    about: bool


@dataclass(frozen=True, slots=True)
class ConversionRefusal:
    """Why there is no answer."""

    reason: ConversionReason
    detail: str


@dataclass(frozen=True, slots=True)
class _Known:
    kind: UnitKind
    factor: Fraction
    about: bool


@dataclass(frozen=True, slots=True)
class Units:
    """Units by name."""

    version: str
    _known: Mapping[str, _Known]

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Units":
        """Read a file of units.

        Raises:
            DocumentError: not such a file, or a unit of two kinds.
        """
        file = read(UnitsFile, raw)
        known: dict[str, _Known] = {}
        for kind, entries in file.kinds.items():
            for name, entry in entries.items():
                if name in known:
                    raise DocumentError("invalid", f"the unit {name[:40]} is of two kinds", "$.kinds")
                known[name] = _Known(kind, Fraction(entry.factor), entry.about)
        return cls(file.units, MappingProxyType(known))

    def names(self) -> frozenset[str]:
        """Every unit that can be converted from and to."""
        return frozenset(self._known)

    def kind(self, unit: str) -> UnitKind | None:
        """What `unit` measures; `None` when nobody knows it."""
        known = self._known.get(unit)
        return None if known is None else known.kind

    def convert(
        self, value: Fraction, unit: str, to: str, *, density_g_per_ml: Fraction | None = None
    ) -> Conversion | ConversionRefusal:
        """`value` `unit` in `to`, exactly.

        Args:
            density_g_per_ml: needed between volume and mass, and used nowhere else.
        """
        source, target = self._known.get(unit), self._known.get(to)
        if source is None or target is None:
            unknown = unit if source is None else to
            return ConversionRefusal("unknown_unit", f"{unknown[:40]!r} is no unit known here")
        base = value * source.factor
        if source.kind != target.kind:
            if {source.kind, target.kind} != {"mass", "volume"}:
                return ConversionRefusal("other_kind", f"{unit} is {source.kind}, {to} is {target.kind}")
            if density_g_per_ml is None:
                return ConversionRefusal("needs_density", f"{unit} to {to} needs a density in g/ml")
            if density_g_per_ml <= 0:
                return ConversionRefusal("bad_density", "a density is above 0 g/ml")
            base = base * density_g_per_ml if source.kind == "volume" else base / density_g_per_ml
        result = base / target.factor
        if abs(result) > _MOST:
            return ConversionRefusal("out_of_range", "more than a number in a document can say")
        return Conversion(result, to, source.about or target.about)


def exact(number: float | str) -> Fraction:
    """A number of a document as the decimal that was written: 0.1 is one tenth.

    Raises:
        ValueError: no finite decimal number, or one of absurd length.
    """
    text = repr(number) if isinstance(number, float) else str(number)
    if isinstance(number, bool) or not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no decimal number")
    found = Fraction(Decimal(text))
    if abs(found) > _MOST:
        raise ValueError(f"{text[:40]!r} is no decimal number that a document can hold")
    return found


def celsius_to_fahrenheit(celsius: Fraction) -> Fraction:
    """°C as a display may show it."""
    return celsius * 9 / 5 + 32


def fahrenheit_to_celsius(fahrenheit: Fraction) -> Fraction:
    """A °F that somebody typed or an old document holds, as °C."""
    return (fahrenheit - 32) * 5 / 9


def fahrenheit_difference_to_celsius(difference: Fraction) -> Fraction:
    """A difference of °F (a tolerance) as a difference of °C (ruling D9)."""
    return difference * 5 / 9
