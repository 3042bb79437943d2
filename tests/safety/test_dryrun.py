"""The dry run against the public samples, the public vectors and its own promises (Core §3; ruling D4)."""

import copy
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.documents import from_plain
from safety.advice.ladder import choose_rung
from safety.advice.sensor_trust import trusted_sensors
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.dryrun import dry_run
from safety.vocabulary import Band, Envelope, Vocabulary

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "cookwala"


def cook(nodes: list[dict[str, Any]], samples: dict[str, Any]) -> Recipe:
    """A public recipe with other steps."""
    plain = copy.deepcopy(samples["recipes"]["koshari"])
    plain["process"] = {"nodes": nodes}
    return from_plain(Recipe, plain)


def device(samples: dict[str, Any], ops: list[str], sensors: list[dict[str, Any]]) -> Capabilities:
    plain = copy.deepcopy(samples["devices"]["demo-hob-robot"])
    plain["capabilities"] = {"ops": [{"op": op} for op in ops], "sensors": sensors}
    return from_plain(Capabilities, plain)


def limits(**limit: Any) -> SafetyLimits:
    whole = {"id": "local", "action": "cut_heat", "source": "a test", **limit}
    plain = {
        "core": "0.2.0",
        "kind": "SafetyLimits",
        "id": "t",
        "version": "0.1.0",
        "disclaimer": "",
        "limits": [whole],
    }
    return from_plain(SafetyLimits, plain)


def test_all_32_public_dry_runs_come_out_as_published(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    rows = samples["expected"]["dryRuns"]
    assert len(rows) == 32
    for pack in (None, from_plain(SafetyLimits, samples["safetyLimits"])):
        for row in rows:
            answer = dry_run(
                from_plain(Recipe, samples["recipes"][row["recipe"]]),
                from_plain(Capabilities, samples["devices"][row["device"]]),
                vocabulary,
                human_present=row["humanPresent"],
                limits=pack,
                now=now,
            )
            ours = (
                answer.state,
                answer.refusal.reason if answer.refusal else None,
                answer.refusal.node if answer.refusal else None,
                [[step.node, step.by, step.verified_by] for step in answer.plan]
                if not answer.refusal
                else [],
            )
            theirs = (row["state"], row["reason"], row["node"], row["plan"] if not row["reason"] else [])
            assert ours == theirs, row
            if row["reason"] and row["plan"]:
                assert [[s.node, s.by, s.verified_by] for s in answer.plan] == row["plan"], row


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE.is_dir(), reason="public conformance vectors are not beside the checkout")
def test_public_dry_run_vectors_pass(samples: dict[str, Any], vocabulary: Vocabulary, now: datetime) -> None:
    vectors = json.loads((REFERENCE / "conformance" / "dryrun.json").read_bytes())
    assert vectors
    for vector in vectors:
        given_ = vector["input"]
        capability_set = given_["capabilities"]["capabilities"]
        pack = given_.get("limits")
        answer = dry_run(
            cook(given_["recipe"]["process"]["nodes"], samples),
            device(samples, [o["op"] for o in capability_set["ops"]], capability_set.get("sensors", [])),
            vocabulary,
            human_present=given_["humanPresent"],
            allow_model=given_["allowModel"],
            limits=limits(**{**pack["limits"][0], "source": "v"}) if pack else None,
            now=now,
        )
        got = {
            "state": answer.state,
            "reason": answer.refusal.reason if answer.refusal else None,
            "by": [step.by for step in answer.plan],
        }
        assert got == vector["expected"], vector["id"]


@pytest.mark.reference
@pytest.mark.skipif(not REFERENCE.is_dir(), reason="public conformance vectors are not beside the checkout")
def test_public_sensor_trust_vectors_pass(samples: dict[str, Any], vocabulary: Vocabulary) -> None:
    from events.times import parse_date_time

    vectors = json.loads((REFERENCE / "conformance" / "profiles" / "sensor_trust.json").read_bytes())
    ladders = [vector for vector in vectors if "op" in vector["input"]]
    assert len(ladders) >= 5
    for vector in ladders:
        given_ = vector["input"]
        capability_set = given_["capabilities"]["capabilities"]
        able = device(samples, [o["op"] for o in capability_set["ops"]], capability_set["sensors"])
        operation = vocabulary.operation(given_["op"])
        assert operation is not None and operation.envelope is not None
        choice = choose_rung(
            operation.envelope,
            trusted_sensors(able, parse_date_time(given_["now"])),
            human_present=given_["humanPresent"],
            allow_model=given_["allowModel"],
        )
        assert choice == vector["expected"]["choice"], vector["id"]


@pytest.mark.parametrize(
    ("sensor", "trusted"),
    [
        ({}, True),
        ({"state": "ok"}, True),
        ({"state": "degraded"}, False),
        ({"state": "unknown"}, False),
        ({"calibration": {"by": "maker"}}, True),
        ({"calibration": {"validUntil": "2026-10-05T00:00:00Z"}}, True),
        ({"calibration": {"validUntil": "2026-10-05T00:59:59+01:00"}}, False),
        ({"calibration": {"validUntil": "until further notice"}}, False),
        ({"calibration": {"validUntil": "2027-01-01T00:00:00"}}, False),
    ],
)
def test_a_sensor_counts_only_while_it_is_healthy_and_calibrated(
    sensor: dict[str, Any], trusted: bool, samples: dict[str, Any], now: datetime
) -> None:
    able = device(samples, [], [{"sensor": "cw.sense.vision", "visionCues": ["cw.sense.golden"], **sensor}])
    expected = {"cw.sense.vision", "cw.sense.golden"} if trusted else set()
    assert trusted_sensors(able, now) == expected


# --- Operations newer than the vocabulary -----------------------------------------------------------------


def test_an_unknown_operation_goes_only_to_a_device_that_declares_it(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op.levitate"}], samples)
    knows = device(samples, ["cw.op.levitate"], [])
    other = device(samples, ["cw.op.mix"], [])
    accepted = dry_run(recipe, knows, vocabulary, human_present=True, now=now)
    assert accepted.state == "accepted" and accepted.plan[0].by == "device"
    for human_present in (True, False):
        refused = dry_run(recipe, other, vocabulary, human_present=human_present, now=now)
        assert refused.refusal is not None and refused.refusal.reason == "missing_capability"


def test_an_unknown_operation_never_runs_unattended(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op.levitate"}], samples)
    answer = dry_run(
        recipe, device(samples, ["cw.op.levitate"], []), vocabulary, human_present=False, now=now
    )
    assert answer.refusal is not None and answer.refusal.reason == "needs_human_present"


# --- Who may --------------------------------------------------------------------------------------------


def test_a_step_the_recipe_keeps_for_people_is_never_given_to_a_machine(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op.mix", "assignment": {"allowed": ["human"]}}], samples)
    able = device(samples, ["cw.op.mix"], [])
    assert dry_run(recipe, able, vocabulary, human_present=True, now=now).plan[0].by == "human"
    alone = dry_run(recipe, able, vocabulary, human_present=False, now=now)
    assert alone.refusal is not None and alone.refusal.reason == "missing_capability"


def test_a_step_the_recipe_keeps_for_machines_is_never_given_to_a_person(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op.mix", "assignment": {"allowed": ["robot"]}}], samples)
    answer = dry_run(recipe, device(samples, ["cw.op.cut"], []), vocabulary, human_present=True, now=now)
    assert answer.refusal is not None and answer.refusal.reason == "missing_capability"


# --- Numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "params", "reason"),
    [
        ("cw.op.deep_fry", {"oilTempC": 191}, "envelope_out_of_range"),
        ("cw.op.deep_fry", {"oilTempC": True}, "envelope_out_of_range"),
        ("cw.op.deep_fry", {"oilTempC": None}, "envelope_out_of_range"),
        ("cw.op.deep_fry", {"oilTempC": 10**400}, "envelope_out_of_range"),
        (
            "cw.op.deep_fry",
            {"target": {"sensor": "cw.sense.core_temp", "value": 260}},
            "envelope_out_of_range",
        ),
        ("cw.op.saute", {"heat": "inferno"}, "envelope_out_of_range"),
        ("cw.op.saute", {"heat": 7}, "envelope_out_of_range"),
        ("cw.op.pressure_cook", {"pressureKPa": 101}, "envelope_out_of_range"),
        ("cw.op.pressure_cook", {"pressureKPa": "80"}, "envelope_out_of_range"),
        ("cw.op.pressure_cook", {"pressureKPa": 100}, None),
        ("cw.op.pressure_cook", {"target": {"value": 101, "unit": "kPa"}}, "envelope_out_of_range"),
        ("cw.op.pressure_cook", {"target": {"value": 101_000, "unit": "Pa"}}, "envelope_out_of_range"),
        ("cw.op.pressure_cook", {"target": {"value": 99_000, "unit": "Pa"}}, None),
        ("cw.op.deep_fry", {"target": {"value": 347, "unit": "degF"}}, "envelope_out_of_range"),
        ("cw.op.deep_fry", {"target": {"value": 175, "unit": ["degC"]}}, "envelope_out_of_range"),
        ("cw.op.deep_fry", {"target": {"value": 500, "unit": "g"}}, None),
        ("cw.op.bake", {"target": {"sensor": "cw.sense.core_temp", "value": 75, "unit": "degC"}}, None),
        ("cw.op.hold", {"target": {"sensor": "cw.sense.core_temp", "value": 40}}, "envelope_out_of_range"),
    ],
)
def test_a_number_outside_the_envelope_is_refused(
    op: str,
    params: dict[str, Any],
    reason: str | None,
    samples: dict[str, Any],
    vocabulary: Vocabulary,
    now: datetime,
) -> None:
    able = device(samples, [op], [{"sensor": "cw.sense.oil_temp"}, {"sensor": "cw.sense.pan_surface_temp"}])
    recipe = cook([{"id": "n1", "op": op, "params": params}], samples)
    answer = dry_run(recipe, able, vocabulary, human_present=True, now=now)
    assert (answer.refusal.reason if answer.refusal else None) == reason


@pytest.mark.parametrize(
    ("limit", "refused"),
    [
        ({"kind": "max_temp", "max": 170, "unit": "degC"}, True),
        ({"kind": "max_temp", "max": 170, "appliesTo": {"medium": "oil"}}, True),
        ({"kind": "max_temp", "max": 170, "appliesTo": {"foodClass": "potatoes"}}, True),
        ({"kind": "max_temp"}, True),
        ({"kind": "max_temp", "max": 500}, False),
        ({"kind": "max_temp", "max": 170, "appliesTo": {"medium": "water"}}, False),
        ({"kind": "max_temp", "max": 170, "appliesTo": {"ops": ["cw.op.fry"], "medium": "oil"}}, False),
        ({"kind": "pressure", "max": 1}, False),
    ],
)
def test_a_stricter_local_limit_wins_and_one_for_something_else_does_not(
    limit: dict[str, Any],
    refused: bool,
    samples: dict[str, Any],
    vocabulary: Vocabulary,
    now: datetime,
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op.deep_fry", "params": {"oilTempC": 175}}], samples)
    able = device(samples, ["cw.op.deep_fry"], [{"sensor": "cw.sense.oil_temp"}])
    answer = dry_run(recipe, able, vocabulary, human_present=True, limits=limits(**limit), now=now)
    assert (answer.refusal.reason if answer.refusal else None) == ("safety_limit" if refused else None)


def test_a_heat_level_hotter_than_a_local_limit_is_refused(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op.sear", "params": {"heat": "high"}}], samples)
    able = device(samples, ["cw.op.sear"], [{"sensor": "cw.sense.pan_surface_temp"}])
    pack = limits(kind="max_temp", max=200, appliesTo={"medium": "pan_surface"})
    answer = dry_run(recipe, able, vocabulary, human_present=True, limits=pack, now=now)
    assert answer.refusal is not None and answer.refusal.reason == "safety_limit"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
WHATEVER = st.fixed_dictionaries(
    {},
    optional={
        "tempC": JSON,
        "oilTempC": JSON,
        "pressureKPa": JSON,
        "heat": JSON | st.sampled_from(["low", "max"]),
        "target": JSON | st.fixed_dictionaries({"value": JSON}, optional={"unit": JSON, "sensor": JSON}),
    },
)


@settings(max_examples=500)
@given(
    params=WHATEVER, op=st.sampled_from(["cw.op.deep_fry", "cw.op.saute", "cw.op.mix", "cw.op.unheard_of"])
)
def test_whatever_a_recipe_writes_into_its_parameters_there_is_an_answer(
    params: dict[str, Any], op: str, samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    able = device(samples, [op], [{"sensor": "cw.sense.oil_temp"}, {"sensor": "cw.sense.pan_surface_temp"}])
    recipe = cook([{"id": "n1", "op": op, "params": params}], samples)
    pack = limits(kind="max_temp", max=170)
    free = dry_run(recipe, able, vocabulary, human_present=True, now=now)
    bound = dry_run(recipe, able, vocabulary, human_present=True, limits=pack, now=now)
    assert bound.state == "refused" or free.state == "accepted", "a limit never loosens"
    for name in ("tempC", "oilTempC"):
        if name in params and bound.state == "accepted":
            assert type(params[name]) in (int, float) and params[name] <= 170


def test_the_words_of_a_refusal_fit_a_status(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = cook([{"id": "n1", "op": "cw.op." + "a" * 5000}], samples)
    refusal = dry_run(recipe, device(samples, [], []), vocabulary, human_present=True, now=now).refusal
    assert refusal is not None and len(refusal.detail) <= 500


# --- The ladder -----------------------------------------------------------------------------------------


def test_a_sensor_is_used_before_any_fallback_in_whatever_order_the_ladder_is_written() -> None:
    envelope = Envelope(
        medium="water",
        unattended=True,
        attention="none",
        ladder=["time", "cw.sense.liquid_temp"],
        temp_c=Band(min=0, max=1),
    )
    assert choose_rung(envelope, frozenset({"cw.sense.liquid_temp"}), human_present=False) != "time"


@given(data=st.data())
def test_on_sensor_missing_only_ever_narrows(vocabulary: Vocabulary, data: st.DataObject) -> None:
    known = [o for o in vocabulary.operations.values() if o.envelope is not None]
    operation = data.draw(st.sampled_from(known))
    envelope = operation.envelope
    assert envelope is not None
    sensors = frozenset(data.draw(st.sets(st.sampled_from(["cw.sense.vision", *envelope.ladder]))))
    human_present = data.draw(st.booleans())
    allow_model = data.draw(st.booleans())
    free = choose_rung(envelope, sensors, human_present=human_present, allow_model=allow_model)
    policy = data.draw(st.sampled_from(["estimate", "time", "human", "refuse"]))
    narrowed = choose_rung(
        envelope, sensors, human_present=human_present, allow_model=allow_model, on_sensor_missing=policy
    )
    if free is None:
        assert narrowed is None or narrowed == "human"
    if narrowed not in (None, "human"):
        assert narrowed == free or free == "model"
    if policy == "refuse":
        assert narrowed is None or narrowed.startswith("cw.sense.")
    if policy == "human":
        assert narrowed not in ("model", "time")
    if envelope.attention == "continuous" and not envelope.unattended:
        assert narrowed != "time" and free != "time"
    if operation.id == "cw.op.deep_fry":
        assert narrowed in (None, "cw.sense.oil_temp")


def test_a_recipe_may_forbid_every_stand_in_for_a_sensor(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    able = device(samples, ["cw.op.simmer"], [])
    node = {"id": "n1", "op": "cw.op.simmer", "until": {"onSensorMissing": "refuse", "maxTime": "PT5M"}}
    answer = dry_run(cook([node], samples), able, vocabulary, human_present=True, now=now)
    assert answer.refusal is not None and answer.refusal.reason == "missing_sensor_no_fallback"
    node["until"] = {"onSensorMissing": "human"}
    assert (
        dry_run(cook([node], samples), able, vocabulary, human_present=True, now=now).plan[0].rung == "human"
    )
