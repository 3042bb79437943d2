"""Units: exact, both ways, and no guess between volume and mass (Core §4)."""

import json
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.documents import DocumentError
from safety.documents import Unit
from safety.units import (
    UNITS_RESOURCE,
    Conversion,
    ConversionRefusal,
    Units,
    celsius_to_fahrenheit,
    exact,
    fahrenheit_difference_to_celsius,
    fahrenheit_to_celsius,
)

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "cookwala"
UNITS = Units.from_bytes(files("safety").joinpath(UNITS_RESOURCE).read_bytes())
AMOUNT = st.decimals(min_value=0, max_value=100_000, places=4).map(lambda value: Fraction(str(value)))
DENSITY = st.decimals(min_value="0.01", max_value=20, places=3).map(lambda value: Fraction(str(value)))


@pytest.mark.parametrize(
    ("value", "unit", "to", "density", "expected"),
    [
        ("1", "tsp", "ml", None, "5"),
        ("1", "tbsp", "ml", None, "15"),
        ("1", "cup", "ml", None, "240"),
        ("1", "pinch", "g", None, "0.36"),
        ("1", "dash", "ml", None, "0.6"),
        ("1", "l", "ml", None, "1000"),
        ("1", "kg", "g", None, "1000"),
        ("1", "mg", "g", None, "0.001"),
        ("1", "cup", "tbsp", None, "16"),
        ("1", "cup", "tsp", None, "48"),
        ("2.5", "l", "cup", None, "125/12"),
        ("0.1", "kg", "mg", None, "100000"),
        ("1", "cup", "g", "0.53", "127.2"),
        ("1", "kg", "l", "0.8", "1.25"),
        ("1", "pinch", "dash", "1.2", "0.5"),
        ("1.5", "kW", "W", None, "1500"),
        ("12", "cm", "mm", None, "120"),
        ("80000", "Pa", "kPa", None, "80"),
        ("-18", "degC", "degC", None, "-18"),
        ("3", "pcs", "pcs", None, "3"),
    ],
)
def test_a_conversion_is_exact(value: str, unit: str, to: str, density: str | None, expected: str) -> None:
    thickness = None if density is None else exact(density)
    done = UNITS.convert(exact(value), unit, to, density_g_per_ml=thickness)
    about = bool({unit, to} & {"pinch", "dash"})
    assert done == Conversion(Fraction(expected), to, about)


@pytest.mark.parametrize(
    ("unit", "to", "density", "reason"),
    [
        ("cup", "g", None, "needs_density"),
        ("mg", "dash", None, "needs_density"),
        ("cup", "g", "0", "bad_density"),
        ("cup", "g", "-1", "bad_density"),
        ("cup", "pcs", "1", "other_kind"),
        ("s", "g", None, "other_kind"),
        ("degC", "W", None, "other_kind"),
        ("degF", "degC", None, "unknown_unit"),
        ("g", "ounce", None, "unknown_unit"),
        ("", "g", None, "unknown_unit"),
    ],
)
def test_where_there_is_no_answer_there_is_a_reason_and_no_guess(
    unit: str, to: str, density: str | None, reason: str
) -> None:
    thickness = None if density is None else exact(density)
    done = UNITS.convert(Fraction(1), unit, to, density_g_per_ml=thickness)
    assert isinstance(done, ConversionRefusal) and done.reason == reason


@given(amount=AMOUNT, density=DENSITY, data=st.data())
def test_the_way_back_gives_the_very_number(amount: Fraction, density: Fraction, data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from(sorted(UNITS.names())))
    kinds = {"mass", "volume"} if UNITS.kind(unit) in ("mass", "volume") else {UNITS.kind(unit)}
    to = data.draw(st.sampled_from([name for name in sorted(UNITS.names()) if UNITS.kind(name) in kinds]))
    there = UNITS.convert(amount, unit, to, density_g_per_ml=density)
    assert isinstance(there, Conversion)
    back = UNITS.convert(there.value, to, unit, density_g_per_ml=density)
    assert isinstance(back, Conversion) and back.value == amount


def test_every_unit_of_a_document_is_known_and_no_other() -> None:
    assert UNITS.names() == set(get_args(Unit))


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the public units are not beside the checkout")
def test_the_factors_are_the_public_ones() -> None:
    entries = json.loads((REFERENCE / "vocab" / "units.json").read_bytes())["entries"]
    seen = 0
    for entry in entries:
        if "convert" in entry:
            done = UNITS.convert(Fraction(1), entry["id"].removeprefix("cw.unit."), entry["convert"]["to"])
            assert isinstance(done, Conversion) and done.value == exact(entry["convert"]["factor"])
            seen += 1
    assert seen == 8


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (0.1, "1/10"),
        ("0.1", "1/10"),
        (1e21, "1" + "0" * 21),
        (5, "5"),
        ("-.5", "-1/2"),
        ("2.", "2"),
        (1e-7, "1/10000000"),
    ],
)
def test_a_number_is_the_decimal_that_was_written(written: float | str, value: str) -> None:
    assert exact(written) == Fraction(value)


@pytest.mark.parametrize(
    "written",
    [
        float("nan"),
        float("inf"),
        "",
        "one",
        "1/3",
        "1,5",
        True,
        "1e9999",
        "1e301",
        "9" * 40,
        "0x10",
        "1_0",
        "٣٤",
    ],
)
def test_what_is_no_decimal_number_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="no decimal number"):
        exact(written)


@pytest.mark.parametrize(
    ("celsius", "fahrenheit"), [(0, 32), (100, 212), (-40, -40), (74, "165.2"), (37, "98.6")]
)
def test_a_display_may_show_fahrenheit(celsius: int, fahrenheit: int | str) -> None:
    assert celsius_to_fahrenheit(Fraction(celsius)) == Fraction(fahrenheit)
    assert fahrenheit_to_celsius(Fraction(fahrenheit)) == celsius


def test_a_difference_of_temperatures_has_no_zero_to_shift() -> None:
    assert fahrenheit_difference_to_celsius(Fraction(9)) == 5


@pytest.mark.parametrize(
    "kinds",
    [
        {"mass": {"g": {"factor": "0"}}},
        {"mass": {"g": {"factor": "-1"}}},
        {"mass": {"g": {"factor": 1}}},
        {"mass": {"g": {"factor": "1"}}, "volume": {"g": {"factor": "1"}}},
        {"weight": {"g": {"factor": "1"}}},
    ],
)
def test_a_file_of_units_that_makes_no_sense_is_refused(kinds: dict[str, Any]) -> None:
    with pytest.raises(DocumentError):
        Units.from_bytes(json.dumps({"units": "0.3.0", "kinds": kinds}).encode())
