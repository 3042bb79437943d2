"""From 0.1 to 0.2 (Core §12; ruling D9): figures keep their meaning, and the result can be read."""

import json
from typing import Any

import pytest
from cookwala_samples import load_bundle

from events.documents import from_plain
from safety.device_documents import Capabilities
from safety.documents import Recipe
from safety.migration import MigrationError, celsius, celsius_difference, migrate

SAMPLES = load_bundle()


def old(**more: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(SAMPLES["recipes"]["lentil-soup"]))
    return {**copy, "cookwala": "0.1.3", **more}


def note_kinds(plain: dict[str, Any]) -> set[str]:
    return {note.change for note in migrate(plain).notes}


FIGURES: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("boiling", {"value": 212, "unit": "degF"}, {"value": 100.0, "unit": "degC"}),
    ("freezing", {"value": 32, "unit": "°F"}, {"value": 0.0, "unit": "degC"}),
    ("below zero", {"value": -40, "unit": "F"}, {"value": -40.0, "unit": "degC"}),
    ("no round figure", {"value": 100, "unit": "degF"}, {"value": 37.777778, "unit": "degC"}),
    # 10 % of 212 °F are 21.2 °F, and that is a difference: 11.777778 °C, neither 10 °C nor -6 °C.
    (
        "a relative tolerance in °F",
        {"value": 212, "unit": "degF", "tolerance": 0.1},
        {"value": 100.0, "unit": "degC", "toleranceAbs": 11.777778},
    ),
    (
        "a relative tolerance in °C",
        {"value": 90, "unit": "degC", "tolerance": 0.05},
        {"value": 90, "unit": "degC", "toleranceAbs": 4.5},
    ),
    (
        "a relative tolerance below zero",
        {"value": -4, "unit": "degF", "tolerance": 0.5},
        {"value": -20.0, "unit": "degC", "toleranceAbs": 1.111111},
    ),
    (
        "a relative tolerance of nothing",
        {"value": 0, "unit": "degC", "tolerance": 0.5},
        {"value": 0, "unit": "degC", "toleranceAbs": 0.0},
    ),
    (
        "an absolute tolerance in °F",
        {"value": 212, "unit": "degF", "toleranceAbs": 9},
        {"value": 100.0, "unit": "degC", "toleranceAbs": 5.0},
    ),
    (
        "a target's tolerance is absolute",
        {"sensor": "cw.sense.oil_temp", "value": 347, "unit": "degF", "tolerance": 18},
        {"sensor": "cw.sense.oil_temp", "value": 175.0, "unit": "degC", "tolerance": 10.0},
    ),
    (
        "a comparison",
        {"sensor": "cw.sense.oil_temp", "gte": 338, "lte": 356, "unit": "degF"},
        {"sensor": "cw.sense.oil_temp", "gte": 170.0, "lte": 180.0, "unit": "degC"},
    ),
    (
        "between, with a parameter",
        {"sensor": "cw.sense.oil_temp", "between": [338, "{top}"], "unit": "degF"},
        {"sensor": "cw.sense.oil_temp", "between": [170.0, "{top}"], "unit": "degC"},
    ),
    ("a member named for °F", {"oilTempF": 347}, {"oilTempC": 175.0}),
    ("a member named for both", {"oilTempF": 350, "oilTempC": 175}, {"oilTempC": 175}),
    (
        "a ratio scale keeps its tolerance",
        {"value": 5, "unit": "g", "tolerance": 0.2},
        {"value": 5, "unit": "g", "tolerance": 0.2},
    ),
    ("money of two places", {"amount": 12.7, "currency": "EUR"}, {"amount": "12.70", "currency": "EUR"}),
    ("money, whole", {"amount": 12, "currency": "USD"}, {"amount": "12.00", "currency": "USD"}),
    ("money of no places", {"amount": 1200, "currency": "JPY"}, {"amount": "1200", "currency": "JPY"}),
    ("money of three places", {"amount": 1.5, "currency": "KWD"}, {"amount": "1.500", "currency": "KWD"}),
    (
        "money finer than its currency",
        {"amount": 0.005, "currency": "EUR"},
        {"amount": "0.005", "currency": "EUR"},
    ),
    ("money written already", {"amount": "12.70", "currency": "EUR"}, {"amount": "12.70", "currency": "EUR"}),
    ("an amount of something else", {"amount": 3, "currency": "spoons"}, {"amount": 3, "currency": "spoons"}),
)


@pytest.mark.parametrize(
    ("before", "after"), [case[1:] for case in FIGURES], ids=[case[0] for case in FIGURES]
)
def test_a_figure_keeps_its_meaning(before: dict[str, Any], after: dict[str, Any]) -> None:
    made = migrate(old(meta={"inside": [before]})).document
    assert made["meta"]["inside"][0] == after
    from_plain(Recipe, made)


def test_a_tolerance_is_a_difference_and_knows_no_offset() -> None:
    assert celsius(50.0) == 10.0
    assert celsius_difference(18.0) == 10.0
    assert celsius_difference(0.0) == 0.0


def test_the_result_can_be_read_and_bears_neither_hash_nor_signature() -> None:
    before = old(hash=f"sha256:{'0' * 64}", signature={"alg": "EdDSA"}, difficulty=3)
    before["process"]["nodes"][3]["params"]["target"].update(unit="degF", value=320, tolerance=27)
    before["process"]["nodes"][3]["powerLevel"] = 7
    made = migrate(before)
    recipe = from_plain(Recipe, made.document)
    assert recipe.cookwala == "0.2.0"
    assert made.document["process"]["nodes"][3]["params"]["target"] == {
        "sensor": "cw.sense.pan_surface_temp",
        "value": 160.0,
        "unit": "degC",
        "tolerance": 15.0,
    }
    assert not {"hash", "signature"} & made.document.keys()
    assert made.document["x-v01-difficulty"] == 3
    assert made.document["process"]["nodes"][3]["x-v01-power-level"] == 7
    assert {note.change for note in made.notes} == {"version", "dropped", "fahrenheit", "renamed"}
    # Nothing was changed in the document that was given.
    assert before["cookwala"] == "0.1.3" and before["difficulty"] == 3


def test_two_unknown_members_of_one_x_name_are_told() -> None:
    made = migrate(old(powerLevel=1, power_level=2))
    assert len([name for name in made.document if name.startswith("x-v01-")]) == 1
    assert [note.change for note in made.notes if note.change in ("renamed", "removed")] == [
        "renamed",
        "removed",
    ]


def test_migrating_twice_changes_nothing_more() -> None:
    once = migrate(old(extra={"value": 1})).document
    again = migrate(once)
    assert again.document == once
    assert again.notes == ()


def test_capabilities_are_migrated_too() -> None:
    device = json.loads(json.dumps(SAMPLES["devices"]["demo-hob-robot"]))
    made = migrate({**device, "cookwala": "0.1.0", "colour": "red"})
    from_plain(Capabilities, made.document)
    assert made.document["x-v01-colour"] == "red"


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"core": "0.2.0", "kind": "Recall"},
        {"cookwala": "1.0.0"},
        {"cookwala": "0.1"},
        {"cookwala": 1},
        {**SAMPLES["recipes"]["koshari"], "cookwala": "0.1.0", "dish": 5},
        {**SAMPLES["recipes"]["koshari"], "cookwala": "0.1.0", "revision": 0},
    ],
)
def test_what_is_wrong_in_more_than_its_version_is_refused(wrong: Any) -> None:
    with pytest.raises(MigrationError):
        migrate(wrong)
