"""From format 0.1 to 0.2 (Core §12; ruling D9): what a document becomes, and what was done to it.

Temperatures go from °F to °C, their relative tolerances to absolute ones, money to decimal strings, unknown
members under `x-` names; hash and signature fall away, because they were of the old text. Pure: nothing is
written here, and a person looks at the result first.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal, TypeGuard

from iso4217 import Currency

from events.documents import DocumentError, from_plain
from safety.device_documents import Capabilities
from safety.documents import Recipe

NEW_VERSION: Final = "0.2.0"
MOVED: Final = "x-v01-"
"""In front of the name of a member that 0.2 does not know."""
_RENAMED_MOST: Final = 1_000
_DIGITS: Final = 6
"""Decimals that a converted figure keeps; more would claim what no thermometer shows."""

Change = Literal["fahrenheit", "tolerance", "money", "renamed", "removed", "dropped", "version"]


class MigrationError(ValueError):
    """A document that cannot be migrated; the text says why."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was changed: where it stood (in the old document), what kind, and in words."""

    path: str
    change: Change
    detail: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """The new document as plain JSON values, and what was done."""

    document: dict[str, Any]
    notes: tuple[Note, ...]


def migrate(plain: Any) -> Migrated:
    """`plain` (a recipe or capabilities of format 0.1) in format 0.2; one that is 0.2 already has no notes.

    Raises:
        MigrationError: no document of format 0.1 or 0.2, or one that is wrong in more than its version.
    """
    if not isinstance(plain, dict) or not isinstance(plain.get("cookwala"), str):
        raise MigrationError("no recipe and no capabilities: they name their format in the member cookwala")
    kind: type[Recipe] | type[Capabilities] = Capabilities if "capabilities" in plain else Recipe
    version = plain["cookwala"]
    if re.fullmatch(r"0\.2\.[0-9]+", version):
        return Migrated(dict(plain), ())
    if not re.fullmatch(r"0\.1\.[0-9]+", version):
        raise MigrationError(f"format {version[:20]} is not 0.1: there is nothing known to migrate from")
    notes: list[Note] = [Note("$.cookwala", "version", f"{version} becomes {NEW_VERSION}")]
    document = _converted(plain, "$", notes)
    document["cookwala"] = NEW_VERSION
    for name in ("hash", "signature"):
        if document.pop(name, None) is not None:
            notes.append(Note(f"$.{name}", "dropped", "it was of the old text; hash and sign the new one"))
    _rename_unknown(document, kind, notes)
    return Migrated(document, tuple(notes))


# --- Temperatures ---------------------------------------------------------------------------------------

_FAHRENHEIT: Final = frozenset({"degF", "°F", "F", "fahrenheit", "degf"})
_NAMED_F: Final = re.compile(r"([A-Za-z0-9_]*(?:[tT]emp|[cC]ore|Max|Min))F")
"""Members whose name says that they hold °F: `tempF`, `oilTempF`, `minCoreF`."""
_COMPARED: Final = ("gte", "lte", "eq")


def celsius(fahrenheit: float) -> float:
    """A temperature."""
    return _number(Decimal(repr(float(fahrenheit))), absolute=True)


def celsius_difference(fahrenheit: float) -> float:
    """A difference of temperatures: no offset."""
    return _number(Decimal(repr(float(fahrenheit))), absolute=False)


def _number(value: Decimal, *, absolute: bool) -> float:
    shifted = (value - 32 if absolute else value) * 5 / 9
    return float(round(shifted, _DIGITS))


def _converted(value: Any, path: str, notes: list[Note]) -> Any:
    if isinstance(value, list):
        return [_converted(inner, f"{path}[{number}]", notes) for number, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    made = {name: _converted(inner, f"{path}.{name}", notes) for name, inner in value.items()}
    _relative_tolerance(made, path, notes)
    _to_celsius(made, path, notes)
    _members_in_fahrenheit(made, path, notes)
    _money(made, path, notes)
    return made


def _relative_tolerance(made: dict[str, Any], path: str, notes: list[Note]) -> None:
    """A temperature's relative tolerance, while the value is still on the scale it was meant on (D9)."""
    unit = made.get("unit")
    if unit not in _FAHRENHEIT and unit != "degC":
        return
    tolerance, value = made.get("tolerance"), made.get("value")
    if "sensor" in made or not _is_number(tolerance) or not _is_number(value):
        return  # the tolerance of a target is absolute in both formats
    del made["tolerance"]
    exact = abs(Decimal(repr(float(value)))) * Decimal(repr(float(tolerance)))
    made["toleranceAbs"] = float(round(exact, _DIGITS))
    detail = f"{tolerance:g} of {value:g} {_shown(unit)} is {made['toleranceAbs']:g} {_shown(unit)}"
    notes.append(Note(f"{path}.tolerance", "tolerance", detail))


def _to_celsius(made: dict[str, Any], path: str, notes: list[Note]) -> None:
    if made.get("unit") not in _FAHRENHEIT:
        return
    made["unit"] = "degC"
    said: list[str] = []
    for name in ("value", *_COMPARED):
        if _is_number(made.get(name)):
            said.append(f"{name} {made[name]:g} °F is {celsius(made[name]):g} °C")
            made[name] = celsius(made[name])
    between = made.get("between")
    if isinstance(between, list):
        made["between"] = [celsius(one) if _is_number(one) else one for one in between]
        said.append("between")
    for name in ("tolerance", "toleranceAbs"):
        if _is_number(made.get(name)):
            said.append(f"{name} {made[name]:g} °F is {celsius_difference(made[name]):g} °C")
            made[name] = celsius_difference(made[name])
    notes.append(Note(path, "fahrenheit", ", ".join(said) or "the unit alone"))


def _members_in_fahrenheit(made: dict[str, Any], path: str, notes: list[Note]) -> None:
    for name in list(made):
        match = _NAMED_F.fullmatch(name)
        if match is None or not _is_number(made[name]):
            continue
        new = f"{match[1]}C"
        if new in made:
            notes.append(Note(f"{path}.{name}", "removed", f"{new} says the same in °C"))
        else:
            made[new] = celsius(made[name])
            notes.append(Note(f"{path}.{name}", "fahrenheit", f"{made[name]:g} °F is {new} {made[new]:g} °C"))
        del made[name]


def _shown(unit: Any) -> str:
    return "°C" if unit == "degC" else "°F"


# --- Money ----------------------------------------------------------------------------------------------


def _money(made: dict[str, Any], path: str, notes: list[Note]) -> None:
    amount, code = made.get("amount"), made.get("currency")
    if not _is_number(amount) or not isinstance(code, str):
        return
    try:
        places = Currency(code).exponent
        written = Decimal(repr(amount) if isinstance(amount, float) else str(amount))
    except (ValueError, InvalidOperation):
        return
    # Written out as far as the currency goes; a finer amount is never rounded away.
    if places is not None and -_exponent(written) < places:
        written = written.quantize(Decimal(1).scaleb(-places))
    made["amount"] = f"{written:f}"
    notes.append(Note(f"{path}.amount", "money", f'{amount} becomes "{made["amount"]}" {code}'))


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- Members that 0.2 does not know -----------------------------------------------------------------------


def _rename_unknown(
    document: dict[str, Any], kind: type[Recipe] | type[Capabilities], notes: list[Note]
) -> None:
    """Give every member that the strict reader does not know an `x-` name.

    The reader itself says which they are, one after the other, so that nothing here can disagree with it.
    """
    for _ in range(_RENAMED_MOST):
        try:
            from_plain(kind, document)
            return
        except DocumentError as error:
            unknown = re.search(r"unknown field `([^`]*)`", error.detail)
            if error.reason != "unknown_field" or unknown is None:
                raise MigrationError(
                    f"beyond its version something is wrong, at {error.path}: {error.detail}"
                ) from None
            holder, name = _at(document, error.path), unknown[1]
            if holder is None or name not in holder:
                raise MigrationError(f"a member that 0.2 does not know at {error.path}: {name}") from None
            _set_aside(holder, name, f"{error.path}.{name}", notes)
    raise MigrationError(f"more than {_RENAMED_MOST} members that 0.2 does not know")


def _set_aside(holder: dict[str, Any], name: str, path: str, notes: list[Note]) -> None:
    value = holder.pop(name)
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-")
    new = f"{MOVED}{plain}"
    if not plain or new in holder:
        notes.append(Note(path, "removed", "0.2 does not know it, and its x- name is taken or empty"))
        return
    holder[new] = value
    notes.append(Note(path, "renamed", f"0.2 does not know it; kept as {new}"))


_STEP: Final = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")


def _at(document: Any, path: str) -> dict[str, Any] | None:
    """The object at `path`, as the reader writes paths; None where there is none."""
    found = document
    for name, number in _STEP.findall(path.removeprefix("$")):
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and number.isdigit() and int(number) < len(found):
            found = found[int(number)]
        else:
            return None
    return found if isinstance(found, dict) else None
