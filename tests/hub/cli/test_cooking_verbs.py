"""dryrun, envelope, convert: advice from the command line."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from safety.vocabulary import VOCABULARY_RESOURCE


@pytest.fixture
def papers(tmp_path: Path) -> dict[str, str]:
    """The public samples as files: path by name."""
    samples = json.loads(files("cookwala_samples").joinpath("data/bundle.json").read_bytes())
    documents = {**samples["recipes"], **samples["devices"], "limits": samples["safetyLimits"]}
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    return {name: str(tmp_path / f"{name}.json") for name in documents}


def test_dryrun_accepts_with_a_person_and_refuses_without(
    aboyeur: Callable[..., Any], papers: dict[str, str]
) -> None:
    asked = ("dryrun", papers["koshari"], papers["demo-hob-robot"])
    ended = aboyeur(*asked)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "accepted")
    assert "cw.sense.liquid_temp" in ended.out
    alone = aboyeur(*asked, "--nobody")
    assert alone.code == 1
    assert "refused at step n7: needs_human_present: cw.op.heat may not run unattended" in alone.out
    told = aboyeur(*asked, "--nobody", "--json")
    assert told.code == 1
    refusal = told.json()["refusal"]
    assert (refusal["reason"], refusal["node"]) == ("needs_human_present", "n7")


def test_dryrun_knows_how_high_the_kitchen_stands(
    aboyeur: Callable[..., Any], papers: dict[str, str]
) -> None:
    asked = ("dryrun", papers["koshari"], papers["demo-hob-robot"], "--altitude")
    assert aboyeur(*asked, "650").code == 0
    high = aboyeur(*asked, "2400")
    assert (high.code, "envelope_out_of_range" in high.out) == (1, True)
    assert aboyeur(*asked, "20000").code == 2


def test_dryrun_holds_every_pack_of_limits(
    aboyeur: Callable[..., Any], papers: dict[str, str], tmp_path: Path
) -> None:
    asked = ("dryrun", papers["koshari"], papers["demo-hob-robot"], "--limits", papers["limits"])
    assert aboyeur(*asked).code == 0
    house = json.loads(Path(papers["limits"]).read_text())
    rule = {"id": "w", "kind": "max_temp", "max": 97, "action": "cut_heat", "source": "a test"}
    house["limits"] = [{**rule, "appliesTo": {"medium": "water"}}]
    (tmp_path / "house.json").write_text(json.dumps(house))
    ended = aboyeur(*asked, "--limits", str(tmp_path / "house.json"))
    assert (ended.code, "safety_limit" in ended.out) == (1, True)


def test_dryrun_says_what_a_critical_point_is_verified_by(
    aboyeur: Callable[..., Any], papers: dict[str, str]
) -> None:
    told = aboyeur("dryrun", papers["lentil-soup"], papers["demo-hob-robot-basic"], "--json").json()
    assert [(one["kind"], one["node"]) for one in told["warnings"]] == [
        ("critical_point_without_sensor", "n10")
    ]


def test_dryrun_says_which_file_is_none(aboyeur: Callable[..., Any], papers: dict[str, str]) -> None:
    ended = aboyeur("dryrun", papers["demo-oven"], papers["koshari"])
    assert (ended.code, "is no Recipe" in ended.err) == (1, True)
    assert aboyeur("dryrun", papers["koshari"], "nowhere.json").code == 2


def test_dryrun_takes_no_limits_of_another_core(
    aboyeur: Callable[..., Any], papers: dict[str, str], tmp_path: Path
) -> None:
    pack = {**json.loads(Path(papers["limits"]).read_text()), "core": "0.3.0"}
    (tmp_path / "newer.json").write_text(json.dumps(pack))
    ended = aboyeur(
        "dryrun", papers["koshari"], papers["demo-hob-robot"], "--limits", str(tmp_path / "newer.json")
    )
    assert (ended.code, "only 0.2.x is read" in ended.err) == (1, True)


def test_another_vocabulary_may_be_given(
    aboyeur: Callable[..., Any], papers: dict[str, str], tmp_path: Path
) -> None:
    plain = json.loads(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())
    plain["operations"] = [one for one in plain["operations"] if one["id"] != "cw.op.cut"]
    plain["operations"].append({"id": "cw.op.stew", "deprecated": True, "replacedBy": "cw.op.braise"})
    other = tmp_path / "other.json"
    other.write_text(json.dumps(plain))
    asked = ("dryrun", papers["koshari"], papers["demo-hob-robot-basic"], "--vocabulary")
    ended = aboyeur(*asked, str(other), "--json")
    assert [one["node"] for one in ended.json()["warnings"] if one["kind"] == "unknown_operation"] == ["n11"]
    assert "read for cw.op.stew" in aboyeur("envelope", "stew", "--vocabulary", str(other)).out
    assert aboyeur(*asked, papers["koshari"]).code == 1
    assert aboyeur(*asked, str(tmp_path / "none.json")).code == 2


def test_envelope_shows_what_must_hold(aboyeur: Callable[..., Any]) -> None:
    shown = aboyeur("envelope", "deep_fry")
    assert shown.code == 0
    for line in (
        "cw.op.deep_fry",
        "160 to 190 °C",
        "a person must be there",
        "verified by  cw.sense.oil_temp\n",
    ):
        assert line in shown.out
    told = aboyeur("envelope", "cw.op.boil", "--altitude", "2400", "--json").json()
    assert told["envelope"]["tempC"] == {"min": 90, "max": 94}
    assert aboyeur("envelope", "levitate").code == 1
    assert aboyeur("envelope", "mix").code == 1
    assert aboyeur("envelope", "boil", "--altitude", "1e9").code == 2
    assert aboyeur("envelope", "boil", "--target", "100").code == 2
    assert aboyeur("envelope", "boil", "--tolerance", "1").code == 2


@pytest.mark.parametrize(
    ("content", "options", "code", "words"),
    [
        ([{"t": 0, "tempC": 90}, {"t": 9, "tempC": 95}], [], 0, "ok: envelope kept, target not judged"),
        ([{"t": 0, "tempC": 90}, {"t": 9, "tempC": 99}], [], 1, "left_envelope"),
        ([{"t": 0, "tempC": 94}], ["--target", "94", "--tolerance", "3"], 0, "target kept"),
        (
            {"readings": [{"t": 0, "tempC": 90}], "target": {"value": 99, "tolerance": 1}},
            [],
            1,
            "target_outside",
        ),
        ([{"t": 0, "tempC": "90"}], [], 1, "non_numeric_reading"),
        ([{"tempC": 90}], [], 1, "out_of_order"),
        ({"readings": [], "target": {"value": "x"}}, [], 1, "is no trace"),
        ({"readings": [], "target": 7}, [], 1, "is no trace"),
        ([7], [], 1, "is no trace"),
        (7, [], 1, "is no trace"),
    ],
)
def test_envelope_holds_a_trace_against_it(
    content: Any, options: list[str], code: int, words: str, aboyeur: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(content))
    ended = aboyeur("envelope", "simmer", str(path), *options)
    assert (ended.code, words in ended.out + ended.err) == (code, True), ended


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("2 cup to ml", 0, "480 ml\n"),
        ("2 cup to g --density 0.53", 0, "254.4 g\n"),
        ("100 ml to cup", 0, "0.416667 cup  (exactly 5/12)\n"),
        ("1 pinch to mg", 0, "360 mg  (a pinch or a dash is only about so much)\n"),
        ("-40 degC to degF", 0, "-40 degF\n"),
        ("350 degF to degC", 0, "176.667 degC  (exactly 530/3)\n"),
        ("2 cup to g", 1, "needs_density"),
        ("2 cup to s", 1, "other_kind"),
        ("2 gill to ml", 1, "unknown_unit"),
        ("two cup to ml", 2, "no decimal number"),
        ("1e999 degC to degF", 2, "no decimal number"),
        ("2 cup in ml", 2, ""),
    ],
)
def test_convert_is_exact_and_never_guesses(
    arguments: str, code: int, words: str, aboyeur: Callable[..., Any]
) -> None:
    ended = aboyeur("convert", *arguments.split())
    assert (ended.code, words in ended.out + ended.err) == (code, True), ended


@pytest.mark.parametrize(
    "arguments", ["2 cup to ml --density 0", "2 cup to g --density -1", "2 cup to ml --density x"]
)
def test_a_density_that_is_none_is_wrong_usage_needed_or_not(
    arguments: str, aboyeur: Callable[..., Any]
) -> None:
    ended = aboyeur("convert", *arguments.split())
    assert (ended.code, ended.out) == (2, ""), ended


def test_convert_tells_scripts_the_exact_number(aboyeur: Callable[..., Any]) -> None:
    told = aboyeur("convert", "1", "cup", "to", "g", "--density", "0.53", "--json").json()
    assert told == {"value": 127.2, "unit": "g", "exact": "127.2", "about": False}
