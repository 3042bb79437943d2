"""Advice: ladders whatever the sensors, heights, traces, packs of limits, and what a dry run never does."""

import copy
import itertools
import math
import random
from datetime import datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.documents import from_plain
from safety.advice.altitude import band_at
from safety.advice.envelope_check import TraceReading, check_trace
from safety.advice.figures import Figures, figures_of, temperature_fits
from safety.advice.ladder import choose_rung
from safety.advice.limits import covers, merge
from safety.advice.sensor_trust import SensorReading, judge_plausibility
from safety.device_documents import Capabilities, SafetyLimit, SafetyLimits
from safety.documents import OnSensorMissing, Recipe
from safety.dryrun import DryRun, dry_run
from safety.vocabulary import Envelope, Vocabulary
from tests.safety.kitchens import Case, case

HEIGHTS_M = (-400.0, 0.0, 0.0, 520.0, 650.0, 1_500.0, 2_400.0, 4_000.0)


def known(vocabulary: Vocabulary) -> list[tuple[str, Envelope]]:
    return [(op.id, op.envelope) for op in vocabulary.operations.values() if op.envelope is not None]


# --- The ladder, exhaustively (ruling S2) -----------------------------------------------------------------


def test_no_step_that_needs_watching_ends_on_time_and_deep_frying_only_on_its_oil_sensor(
    vocabulary: Vocabulary,
) -> None:
    policies: list[OnSensorMissing | None] = [None, *get_args(OnSensorMissing)]
    asked = 0
    for op, envelope in known(vocabulary):
        rungs = [rung for rung in envelope.ladder if rung.startswith("cw.")]
        foreign = ["cw.sense.vision", "time", "human", "model"]
        for size in range(len(rungs) + 1):
            for chosen in itertools.combinations(rungs, size):
                for extra in ([], foreign):
                    for policy, human, model in itertools.product(policies, (False, True), (False, True)):
                        sensors = frozenset([*chosen, *extra])
                        rung = choose_rung(
                            envelope,
                            sensors,
                            human_present=human,
                            allow_model=model,
                            on_sensor_missing=policy,
                        )
                        asked += 1
                        where = (op, sorted(sensors), policy, human, model)
                        if not envelope.unattended:
                            assert rung != "time", where
                        if op == "cw.op.deep_fry":
                            assert rung == ("cw.sense.oil_temp" if "cw.sense.oil_temp" in chosen else None)
                        if chosen:
                            assert rung == chosen[0], where
                        if rung == "human":
                            assert human, where
                        if rung == "model":
                            assert model, where
                        if policy == "refuse" and not sensors & set(rungs):
                            assert rung is None, where
    assert asked > 3_000
    watched = {op for op, envelope in known(vocabulary) if not envelope.unattended}
    named = ("saute", "sear", "fry", "deep_fry", "reduce", "caramelize")
    assert watched >= {f"cw.op.{name}" for name in named}


# --- Height -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "altitude_m", "band"),
    [
        ("cw.op.boil", 0, (98, 102)),
        ("cw.op.boil", 2_400, (90, 94)),
        ("cw.op.steam", 300, (94, 101)),
        ("cw.op.simmer", -300, (86, 97)),
        ("cw.op.deep_fry", 2_400, (160, 190)),
        ("cw.op.pressure_cook", 2_400, (110, 121)),
        ("cw.op.bake", 2_400, (120, 250)),
        ("cw.op.hold", 2_400, (60, 85)),
        ("cw.op.cut", 2_400, None),
    ],
)
def test_bands_of_water_and_steam_sink_a_degree_for_300_m(
    op: str, altitude_m: float, band: tuple[float, float] | None, vocabulary: Vocabulary
) -> None:
    envelope = dict(known(vocabulary))[op]
    found = band_at(envelope, altitude_m)
    assert (None if found is None else (found.min, found.max)) == band


@pytest.mark.parametrize("altitude_m", [math.nan, math.inf, -501, 9_001])
def test_no_kitchen_stands_there(altitude_m: float, vocabulary: Vocabulary) -> None:
    with pytest.raises(ValueError, match="altitude"):
        band_at(dict(known(vocabulary))["cw.op.bake"], altitude_m)


# --- A dry run and the envelope check of its own plan -----------------------------------------------------


@pytest.fixture(scope="module")
def questions(samples: dict[str, Any]) -> list[Case]:
    draw = random.Random(4)
    return [case(draw, samples) for _ in range(2_000)]


def run(question: Case, vocabulary: Vocabulary, now: datetime, **more: Any) -> DryRun:
    settings: dict[str, Any] = {
        "human_present": question.human_present,
        "allow_model": question.allow_model,
        "limits": None if question.limits is None else from_plain(SafetyLimits, question.limits),
        "now": now,
        **more,
    }
    recipe, device = from_plain(Recipe, question.recipe), from_plain(Capabilities, question.device)
    return dry_run(recipe, device, vocabulary, **settings)


def test_a_dry_run_never_accepts_what_the_envelope_check_of_its_own_plan_would_refuse(
    questions: list[Case], vocabulary: Vocabulary, now: datetime
) -> None:
    draw = random.Random(5)
    checked = refused = 0
    for question in questions:
        altitude_m = draw.choice(HEIGHTS_M)
        answer = run(question, vocabulary, now, altitude_m=altitude_m)
        nodes = {node["id"]: node for node in question.recipe["process"]["nodes"]}
        if answer.refusal is not None and answer.refusal.reason == "envelope_out_of_range":
            refused += 1
        for step in answer.plan:
            operation = vocabulary.operation(step.op)
            if step.by != "device" or operation is None or operation.envelope is None:
                continue
            figures = figures_of(nodes[step.node].get("params") or {})
            assert isinstance(figures, Figures)
            band = band_at(operation.envelope, altitude_m)
            for asked in figures.temperatures:
                if band is None:
                    continue
                nearest = min(max(asked.value, band.min), band.max)
                verdict = check_trace(
                    operation.envelope,
                    [TraceReading(0, 20.0 if band.min > 20 else nearest), TraceReading(60, nearest)],
                    target=asked,
                    altitude_m=altitude_m,
                )
                assert verdict.envelope_ok, (question, asked, verdict)
                assert verdict.target_ok is not False
                checked += 1
    assert checked > 300
    assert refused > 100


def test_a_target_that_the_envelope_check_refuses_is_refused_by_the_dry_run(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    for op, envelope in known(vocabulary):
        band = envelope.temp_c
        if band is None:
            continue
        for value, altitude_m in itertools.product(
            (band.min - 9, band.min, band.max, band.max + 0.1, band.max + 9), (0.0, 1_000.0, 3_000.0)
        ):
            params = {
                "target": {"sensor": "cw.sense.liquid_temp", "value": value, "unit": "degC", "tolerance": 1}
            }
            question = copy.deepcopy(simple(samples, op, params))
            figures = figures_of(params)
            assert isinstance(figures, Figures)
            (asked,) = figures.temperatures
            verdict = check_trace(envelope, [], target=asked, altitude_m=altitude_m)
            answer = run(question, vocabulary, now, altitude_m=altitude_m)
            out = answer.refusal is not None and answer.refusal.reason == "envelope_out_of_range"
            assert (
                out
                == (verdict.reason == "target_outside_envelope")
                == (not temperature_fits(asked, envelope, altitude_m=altitude_m))
            ), (op, value, altitude_m)


def simple(samples: dict[str, Any], op: str, params: dict[str, Any], **node: Any) -> Case:
    recipe = copy.deepcopy(samples["recipes"]["koshari"])
    recipe["process"] = {"nodes": [{"id": "n1", "op": op, "params": params, **node}]}
    device = copy.deepcopy(samples["devices"]["demo-hob-robot"])
    device["capabilities"]["ops"] = [{"op": op}]
    return Case(recipe, device, None, human_present=True, allow_model=True)


# --- Limits -----------------------------------------------------------------------------------------------

SCOPES = st.fixed_dictionaries(
    {},
    optional={
        "ops": st.lists(st.sampled_from(["cw.op.deep_fry", "cw.op.simmer", "cw.op.mix"]), max_size=2),
        "medium": st.sampled_from(["oil", "water", "pan_surface"]),
        "foodClass": st.just("poultry"),
    },
)
LIMIT = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a", "b", "c"]),
        "kind": st.sampled_from(["max_temp", "pressure", "min_core_temp", "unattended", "time_temp", "stop"]),
        "action": st.sampled_from(["stop_all", "cut_heat", "refuse_start", "alert"]),
        "source": st.just("a test"),
    },
    optional={
        "max": st.integers(0, 260),
        "min": st.integers(0, 100),
        "appliesTo": SCOPES,
        "holdFor": st.sampled_from(["PT1H", "PT2H"]),
    },
)
PACK = st.lists(LIMIT, min_size=1, max_size=4).map(
    lambda limits: {
        "core": "0.2.0",
        "kind": "SafetyLimits",
        "id": "p",
        "version": "0.1.0",
        "disclaimer": "",
        "limits": limits,
    }
)
STEPS = [
    ("cw.op.deep_fry", {"oilTempC": 175}),
    ("cw.op.simmer", {"tempC": 92}),
    ("cw.op.sear", {"heat": "high"}),
    ("cw.op.pressure_cook", {"pressureKPa": 80}),
    ("cw.op.mix", {"tempC": 40}),
    ("cw.op.hold", {"target": {"sensor": "cw.sense.core_temp", "value": 68}}),
]


@given(one=PACK, other=PACK, step=st.sampled_from(STEPS), human=st.booleans())
def test_a_limit_more_never_turns_a_refusal_into_an_acceptance_and_merged_packs_hold_together(
    one: dict[str, Any],
    other: dict[str, Any],
    step: tuple[str, dict[str, Any]],
    human: bool,
    samples: dict[str, Any],
    vocabulary: Vocabulary,
    now: datetime,
) -> None:
    question = simple(samples, *step)
    question.human_present = human
    first, second = from_plain(SafetyLimits, one), from_plain(SafetyLimits, other)
    both = from_plain(SafetyLimits, {**one, "limits": one["limits"] + other["limits"]})
    merged = merge([first, second], pack_id="m", version="0.1.0", disclaimer="")
    again = merge([second, first], pack_id="m", version="0.1.0", disclaimer="")
    assert merged is not None and again is not None
    states = [
        run(question, vocabulary, now, limits=pack).state
        for pack in (None, first, second, both, merged, again)
    ]
    free, alone, beside, together, as_one, turned = (state == "accepted" for state in states)
    assert together <= (alone and beside) and (alone and beside) <= free
    assert as_one == turned == together == (alone and beside)
    assert len({limit.id for limit in merged.limits}) == len(merged.limits)
    assert all(any(covers(kept, limit) for kept in merged.limits) for limit in both.limits)


def limit(**more: Any) -> SafetyLimit:
    return from_plain(
        SafetyLimit, {"id": "a", "kind": "max_temp", "action": "cut_heat", "source": "t", **more}
    )


@pytest.mark.parametrize(
    ("strict", "loose", "does"),
    [
        ({"max": 100}, {"max": 120}, True),
        ({"max": 120}, {"max": 100}, False),
        ({}, {"max": 100}, True),
        ({"max": 100}, {}, False),
        ({"max": 100}, {"max": 100, "appliesTo": {"medium": "oil"}}, True),
        ({"max": 100, "appliesTo": {"medium": "oil"}}, {"max": 100}, False),
        ({"max": 1, "appliesTo": {"ops": ["cw.op.fry"]}}, {"max": 9, "appliesTo": {"medium": "oil"}}, False),
        ({"max": 1, "action": "alert"}, {"max": 9}, False),
        ({"kind": "min_core_temp", "min": 74}, {"kind": "min_core_temp", "min": 71}, True),
        (
            {"kind": "time_temp", "min": 60, "holdFor": "PT1H"},
            {"kind": "time_temp", "min": 60, "holdFor": "PT2H"},
            True,
        ),
        ({"kind": "time_temp", "min": 60}, {"kind": "time_temp", "unit": "h"}, False),
        ({"kind": "unattended"}, {"kind": "unattended", "appliesTo": {"ops": ["cw.op.simmer"]}}, False),
    ],
)
def test_a_limit_stands_for_another_only_where_it_is_at_least_as_strict_in_everything(
    strict: dict[str, Any], loose: dict[str, Any], does: bool
) -> None:
    assert covers(limit(**strict), limit(**loose)) is does


def test_packs_are_merged_by_what_they_govern_and_no_id_hides_another() -> None:
    def pack(*limits: SafetyLimit) -> SafetyLimits:
        return SafetyLimits(
            core="0.2.0", kind="SafetyLimits", id="p", version="0.1.0", disclaimer="", limits=list(limits)
        )

    oil, air = {"medium": "oil"}, {"medium": "air"}
    maker = pack(limit(id="hot", max=200, appliesTo=oil), limit(id="wide", max=260, appliesTo=air))
    house = pack(
        limit(id="x", max=190, appliesTo=oil), limit(id="wide", max=300, appliesTo={"medium": "steam"})
    )
    merged = merge([maker, house], pack_id="m", version="0.1.0", disclaimer="")
    assert merged is not None
    assert [(one.id, one.max) for one in merged.limits] == [("wide", 260), ("x", 190), ("wide.2", 300)]
    assert merge([], pack_id="m", version="0.1.0", disclaimer="") is None


def test_a_maker_may_ask_for_a_person_where_the_envelope_does_not(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    question = simple(samples, "cw.op.simmer", {})
    question.human_present = False
    assert run(question, vocabulary, now).state == "accepted"
    for scope, reason in (
        ({"ops": ["cw.op.simmer"]}, "needs_human_present"),
        ({"medium": "water"}, "needs_human_present"),
        ({"medium": "oil"}, None),
        (None, None),
    ):
        rule = limit(kind="unattended", action="refuse_start", **({"appliesTo": scope} if scope else {}))
        pack = SafetyLimits(
            core="0.2.0", kind="SafetyLimits", id="p", version="0.1.0", disclaimer="", limits=[rule]
        )
        refusal = run(question, vocabulary, now, limits=pack).refusal
        assert (refusal.reason if refusal else None) == reason, scope


# --- What is said of a step, and sensors that contradict each other ---------------------------------------


def test_a_critical_point_without_its_sensor_is_a_warning_and_what_the_recipe_writes_is_not(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    for until, kinds, state in (
        ({}, ["critical_point_without_sensor"], "accepted"),
        ({"onSensorMissing": "estimate"}, [], "accepted"),
        ({"onSensorMissing": "refuse"}, [], "refused"),
    ):
        question = simple(samples, "cw.op.hold", {}, ccp="ccp_hold", until=until)
        question.device["capabilities"]["sensors"] = []
        answer = run(question, vocabulary, now)
        assert ([warning.kind for warning in answer.warnings], answer.state) == (kinds, state)


def test_sensors_that_contradict_each_other_stand_for_no_rung(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    question = simple(samples, "cw.op.deep_fry", {"oilTempC": 175})
    question.device["capabilities"]["sensors"] = [{"sensor": "cw.sense.oil_temp"}]
    readings = [SensorReading("cw.sense.oil_temp", 175), SensorReading("x-acme.oil_2", 187)]
    judged = judge_plausibility(readings, {})
    assert not judged.ok
    assert run(question, vocabulary, now).state == "accepted"
    refusal = run(question, vocabulary, now, demoted=judged.demoted).refusal
    assert refusal is not None and refusal.reason == "missing_sensor_no_fallback"


@given(
    temps=st.lists(st.floats(0, 250) | st.none() | st.text(max_size=3), max_size=4),
    accuracy=st.floats(0, 5) | st.just(math.nan) | st.just(-1.0) | st.none(),
)
def test_what_is_plausible_has_no_two_readings_further_apart_than_both_may_be_off(
    temps: list[Any], accuracy: float | None
) -> None:
    names = [f"x-a.s{place}" for place in range(len(temps))]
    readings = [SensorReading(name, temp) for name, temp in zip(names, temps, strict=True)]
    judged = judge_plausibility(readings, dict.fromkeys(names, accuracy))
    numbers = [temp for temp in temps if isinstance(temp, float)]
    spread = max(numbers, default=0.0) - min(numbers, default=0.0)
    each = 2.0 if accuracy is None or not accuracy >= 0 else accuracy
    assert judged.ok == (len(numbers) == len(temps) and spread <= 2 * each)
    assert judged.ok == (not judged.demoted)
