"""The vocabularies: complete, replaceable, and never looser than Core (Core §3, §9; ruling D4)."""

import json
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from events.documents import DocumentError, from_plain
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.dryrun import dry_run
from safety.enforcement import LimitWatch
from safety.vocabulary import (
    ALLERGENS_RESOURCE,
    INCIDENTS_RESOURCE,
    VOCABULARY_RESOURCE,
    AllergenNames,
    IncidentTypes,
    Vocabulary,
)

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "cookwala"
public = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the public vocabularies are not beside the checkout"
)
WATER = {"medium": "water", "tempC": {"min": 85, "max": 96}, "attention": "periodic", "unattended": True}
SIMMER = {"id": "cw.op.simmer", "envelope": {**WATER, "ladder": ["cw.sense.liquid_temp", "time"]}}
OLD = {"id": "cw.op.bubble", "deprecated": True, "replacedBy": "cw.op.simmer"}


def own(resource: str) -> bytes:
    return files("safety").joinpath(resource).read_bytes()


def of(*operations: dict[str, Any]) -> Vocabulary:
    plain = {"vocabulary": "0.3.0", "operations": list(operations), "heatLevels": {}}
    return Vocabulary.from_bytes(json.dumps(plain).encode())


@pytest.mark.reference
@public
def test_stirring_lid_and_hazards_are_the_public_ones(vocabulary: Vocabulary) -> None:
    entries = json.loads((REFERENCE / "vocab" / "ops.json").read_bytes())["entries"]
    envelopes = {entry["id"]: entry["envelope"] for entry in entries if "envelope" in entry}
    assert len(envelopes) == 32
    for op, theirs in envelopes.items():
        ours = vocabulary.operations[op].envelope
        assert ours is not None
        assert (ours.agitation, ours.lid) == (theirs.get("agitation"), theirs.get("lid"))
        assert ours.hazards or theirs["hazards"] == []
        pressure = ours.pressure_kpa
        assert ({"min": pressure.min, "max": pressure.max} if pressure else None) == theirs.get("pressureKPa")


@pytest.mark.reference
@public
def test_incident_types_and_allergens_are_the_public_ones() -> None:
    entries = json.loads((REFERENCE / "vocab" / "incidents.json").read_bytes())["entries"]
    assert IncidentTypes.from_bytes(own(INCIDENTS_RESOURCE)).types == [entry["id"] for entry in entries]
    schema = json.loads((REFERENCE / "schemas" / "recipe.schema.json").read_bytes())
    lists = schema["$defs"]["Safety"]["properties"]["allergens"]["properties"]
    names = AllergenNames.from_bytes(own(ALLERGENS_RESOURCE))
    assert names.eu14 == lists["eu14"]["items"]["enum"]
    assert names.us9 == lists["us9"]["items"]["enum"]


def test_names_of_the_two_lists_for_one_allergen_stand_together() -> None:
    names = AllergenNames.from_bytes(own(ALLERGENS_RESOURCE))
    assert names.all_names_of("wheat") == {"wheat", "cereals_gluten"}
    assert names.all_names_of("nuts") == {"nuts", "tree_nuts"}
    assert names.all_names_of("milk") == {"milk"}
    assert names.all_names_of("x-acme-dust") == {"x-acme-dust"}
    assert {name for group in names.alike for name in group} <= {*names.eu14, *names.us9}
    shared = set(names.eu14) & set(names.us9)
    one_list_only = set(names.us9) - shared
    assert one_list_only <= {name for group in names.alike for name in group}


@pytest.mark.parametrize("ladder", [["time"], ["cw.sense.liquid_temp", "time"]])
@pytest.mark.parametrize("attention", ["none", "periodic", "monitor", "continuous"])
def test_a_file_that_leaves_what_needs_a_person_to_time_is_refused(ladder: list[str], attention: str) -> None:
    envelope = {**WATER, "attention": attention, "unattended": False, "ladder": ladder}
    with pytest.raises(DocumentError, match="falls back to time"):
        of({"id": "cw.op.reduce", "envelope": envelope})


@pytest.mark.parametrize("ladder", [["model"], ["cw.sense.oil_temp", "human"], ["cw.sense.vision"], None])
def test_a_file_that_lets_anything_stand_for_the_oil_sensor_is_refused(ladder: list[str] | None) -> None:
    envelope = {"medium": "oil", "attention": "continuous", "unattended": False, "ladder": ladder}
    entry = {"id": "cw.op.deep_fry"} if ladder is None else {"id": "cw.op.deep_fry", "envelope": envelope}
    with pytest.raises(DocumentError, match="oil sensor"):
        of(entry)


@pytest.mark.parametrize(
    "operations",
    [
        [SIMMER, SIMMER],
        [OLD],
        [{**OLD, "replacedBy": "cw.op.bubble"}],
        [OLD, {"id": "cw.op.simmer", "deprecated": True, "replacedBy": "cw.op.bubble"}],
        [SIMMER, {**OLD, "deprecated": False}],
        [SIMMER, {**OLD, "envelope": SIMMER["envelope"]}],
        [{**SIMMER, "envelope": {**WATER, "ladder": []}}],
        [{**SIMMER, "envelope": {**WATER, "ladder": ["time"], "tempC": {"min": 96, "max": 85}}}],
    ],
)
def test_a_file_that_contradicts_itself_is_refused(operations: list[dict[str, Any]]) -> None:
    with pytest.raises(DocumentError):
        of(*operations)


def test_a_deprecated_id_is_read_as_what_replaces_it() -> None:
    oldest = {"id": "cw.op.seethe", "deprecated": True, "replacedBy": "cw.op.bubble"}
    kept = {"id": "cw.op.sous_vide", "deprecated": True}
    vocabulary = of(SIMMER, OLD, oldest, kept)
    simmer = vocabulary.operation("cw.op.simmer")
    assert vocabulary.operation("cw.op.seethe") is vocabulary.operation("cw.op.bubble") is simmer
    assert vocabulary.names_of("cw.op.bubble") == {"cw.op.simmer", "cw.op.bubble", "cw.op.seethe"}
    assert vocabulary.names_of("x-acme.op") == {"x-acme.op"}
    found = vocabulary.operation("cw.op.sous_vide")
    assert found is not None and found.deprecated
    assert vocabulary.operation("cw.op.levitate") is None


@pytest.mark.parametrize("asked", ["cw.op.bubble", "cw.op.simmer"])
@pytest.mark.parametrize("declared", ["cw.op.bubble", "cw.op.simmer"])
@pytest.mark.parametrize("limited", ["cw.op.bubble", "cw.op.simmer"])
def test_recipe_device_and_limits_mean_the_same_by_either_name(
    asked: str, declared: str, limited: str, samples: dict[str, Any], now: datetime
) -> None:
    vocabulary = of(SIMMER, OLD)
    nodes = [{"id": "n1", "op": asked, "params": {"tempC": 92}}]
    recipe = from_plain(Recipe, {**samples["recipes"]["koshari"], "process": {"nodes": nodes}})
    able = {"ops": [{"op": declared}], "sensors": [{"sensor": "cw.sense.liquid_temp"}]}
    device = from_plain(Capabilities, {**samples["devices"]["demo-hob-robot"], "capabilities": able})
    free = dry_run(recipe, device, vocabulary, human_present=False, now=now)
    assert (free.state, free.plan[0].op, free.plan[0].rung) == ("accepted", asked, "cw.sense.liquid_temp")
    assert [one.kind for one in free.warnings] == (
        ["deprecated_operation"] if asked != "cw.op.simmer" else []
    )
    head = {"core": "0.2.0", "kind": "SafetyLimits", "id": "p", "version": "0.1.0", "disclaimer": ""}
    rule = {"id": "a", "kind": "max_temp", "max": 90, "action": "cut_heat", "source": "a test"}
    pack = from_plain(SafetyLimits, {**head, "limits": [{**rule, "appliesTo": {"ops": [limited]}}]})
    bound = dry_run(recipe, device, vocabulary, human_present=False, limits=pack, now=now)
    assert bound.refusal is not None and bound.refusal.reason == "safety_limit"
    watch = LimitWatch(pack, vocabulary)
    assert watch.check(op=asked, medium="water", temp_c=91) is not None


def test_an_operation_newer_than_the_vocabulary_goes_only_to_a_device_that_declares_it(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    nodes = [{"id": "n1", "op": "cw.op.levitate"}]
    recipe = from_plain(Recipe, {**samples["recipes"]["koshari"], "process": {"nodes": nodes}})
    for declared, human, reason in (
        (["cw.op.levitate"], True, None),
        (["cw.op.levitate"], False, "needs_human_present"),
        (["cw.op.simmer"], True, "missing_capability"),
    ):
        able = {"ops": [{"op": op} for op in declared]}
        device = from_plain(Capabilities, {**samples["devices"]["demo-hob-robot"], "capabilities": able})
        answer = dry_run(recipe, device, vocabulary, human_present=human, now=now)
        assert (answer.refusal.reason if answer.refusal else None) == reason
        if reason is None:
            assert [warning.kind for warning in answer.warnings] == ["unknown_operation"]


def test_another_file_replaces_ours_and_says_its_version(vocabulary: Vocabulary) -> None:
    assert vocabulary.version == "0.2.0"
    assert of(SIMMER).version == "0.3.0"
    again = Vocabulary.from_bytes(own(VOCABULARY_RESOURCE))
    assert again.operations.keys() == vocabulary.operations.keys()
