"""The dry run beside the public sample client's: where they differ, and that they differ nowhere else (Q3).

Five classes of difference, in `CLASSES`: each has a minimal pair below. A case in which the two differ must
agree once everything of the five is taken out of it; so a sixth class, or a fault of ours, would show.
"""

import copy
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest
from cookwala_samples import dry_run as their_dry_run

from events.documents import from_plain
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.dryrun import DryRun, dry_run
from safety.vocabulary import Vocabulary
from tests.safety.kitchens import Case, case

CASES = 5_000
REASONS = (
    "missing_capability",
    "missing_sensor_no_fallback",
    "envelope_out_of_range",
    "safety_limit",
    "needs_human_present",
)
FOOD = ("cw.sense.core_temp", "cw.sense.product_temp")


def ours(question: Case, vocabulary: Vocabulary, now: datetime) -> DryRun:
    return dry_run(
        from_plain(Recipe, question.recipe),
        from_plain(Capabilities, question.device),
        vocabulary,
        human_present=question.human_present,
        allow_model=question.allow_model,
        limits=None if question.limits is None else from_plain(SafetyLimits, question.limits),
        now=now,
    )


def told(answer: DryRun) -> Any:
    refusal = answer.refusal
    return (
        answer.state,
        (refusal.reason, refusal.node) if refusal else None,
        [[step.node, step.by, step.verified_by] for step in answer.plan],
    )


def theirs(question: Case, samples: Mapping[str, Any]) -> Any:
    """The sample's answer, or the name of the error it ends with."""
    try:
        answer = their_dry_run(
            question.recipe,
            question.device,
            human_present=question.human_present,
            allow_model=question.allow_model,
            limits=question.limits,
            now=samples["now"],
        )
    except (KeyError, TypeError) as error:
        return type(error).__name__
    refusal = answer.get("refusal")
    return (
        answer["state"],
        (refusal["reason"], refusal["node"]) if refusal else None,
        [[step["node"], step["by"], step["verifiedBy"]] for step in answer["plan"]],
    )


# --- The five classes: what each takes out of a case ------------------------------------------------------


def nodes_of(question: Case) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = question.recipe["process"]["nodes"]
    return nodes


def without_assignment(question: Case, samples: Mapping[str, Any]) -> None:
    for node in nodes_of(question):
        node.pop("assignment", None)


def without_unknown_operations(question: Case, samples: Mapping[str, Any]) -> None:
    for node in nodes_of(question):
        if node["op"] not in samples["ops"]:
            node["op"] = "cw.op.mix"
            node.pop("params", None)


def without_narrowing(question: Case, samples: Mapping[str, Any]) -> None:
    for node in nodes_of(question):
        (node.get("until") or {}).pop("onSensorMissing", None)


def without_odd_figures(question: Case, samples: Mapping[str, Any]) -> None:
    for node in nodes_of(question):
        params = node.get("params") or {}
        target = params.get("target")
        if isinstance(target, dict) and (
            target.get("unit", "degC") not in ("degC", "C") or target.get("sensor") in FOOD
        ):
            del params["target"]
        if params.get("heat") not in samples["heatBands"]:
            params.pop("heat", None)
        if params.get("pressureKPa", 0) is None:
            del params["pressureKPa"]


def without_wide_limits(question: Case, samples: Mapping[str, Any]) -> None:
    if question.limits is None:
        return
    bare = [node for node in nodes_of(question) if not samples["ops"].get(node["op"], {}).get("envelope")]
    warm = any(
        {"tempC", "oilTempC", "target", "pressureKPa"} & (node.get("params") or {}).keys() for node in bare
    )
    kept = []
    for limit in question.limits["limits"]:
        scope = limit.get("appliesTo") or {}
        narrow = (scope.get("ops") or scope.get("medium")) and "max" in limit
        if not narrow or limit["kind"] not in ("max_temp", "pressure") or (warm and "medium" in scope):
            continue
        kept.append(limit)
    question.limits["limits"] = kept or [
        {"id": "nothing", "kind": "smoke_or_fire", "action": "alert", "source": "a test"}
    ]
    if kept:
        for node in nodes_of(question):
            (node.get("params") or {}).pop("heat", None)


CLASSES: dict[str, tuple[str, Callable[[Case, Mapping[str, Any]], None]]] = {
    "who may do a step": ("recipe schema, assignment: the list holds for machines too", without_assignment),
    "operations nobody knows": (
        "Core §9, ruling D4: only a device that declares it, and never unattended",
        without_unknown_operations,
    ),
    "what stands in for a sensor": ("Core §3: onSensorMissing narrows the ladder", without_narrowing),
    "figures": (
        "Core §3, §4: the medium's are held to its band, in any unit; what cannot be read is refused",
        without_odd_figures,
    ),
    "limits": (
        "Core §6.1: the stricter limit always wins, and not knowing exempts nothing",
        without_wide_limits,
    ),
}


@pytest.fixture(scope="module")
def questions(samples: dict[str, Any]) -> list[Case]:
    draw = random.Random(20_261_004)
    return [case(draw, samples) for _ in range(CASES)]


def test_5000_mutated_dry_runs_differ_from_the_samples_in_five_classes_and_nowhere_else(
    questions: list[Case], samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    reasons: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    same = 0
    for question in questions:
        mine, other = told(ours(question, vocabulary, now)), theirs(question, samples)
        if isinstance(other, tuple):
            reasons[other[1][0] if other[1] else "accepted"] += 1
        if mine == other:
            same += 1
            continue
        plain = copy.deepcopy(question)
        for _, take_out in CLASSES.values():
            take_out(plain, samples)
        assert told(ours(plain, vocabulary, now)) == theirs(plain, samples), question
        for name, (_, take_out) in CLASSES.items():
            single = copy.deepcopy(question)
            take_out(single, samples)
            if told(ours(single, vocabulary, now)) == theirs(single, samples):
                alone[name] += 1
    for reason in REASONS:
        assert reasons[reason] >= 50, reasons
    assert reasons["accepted"] >= 500, reasons
    assert same >= CASES / 2, same
    assert len(CLASSES) <= 5
    assert min(alone[name] for name in CLASSES) >= 5, alone


# --- A minimal pair of each -------------------------------------------------------------------------------


def small(
    samples: dict[str, Any], node: dict[str, Any], sensors: tuple[str, ...] = (), limit: Any = None
) -> Case:
    recipe = copy.deepcopy(samples["recipes"]["koshari"])
    recipe["process"] = {"nodes": [{"id": "n1", **node}]}
    device = copy.deepcopy(samples["devices"]["demo-hob-robot"])
    device["capabilities"] = {
        "ops": [{"op": node["op"]}],
        "sensors": [{"sensor": one} for one in sensors],
    }
    limits = None
    if limit is not None:
        limits = copy.deepcopy(samples["safetyLimits"])
        limits["limits"] = [{"id": "house", "action": "cut_heat", "source": "a test", **limit}]
    return Case(recipe, device, limits, human_present=True, allow_model=True)


MIX, BAKE, SEAR, FRY = "cw.op.mix", "cw.op.bake", "cw.op.sear", "cw.op.deep_fry"
OIL, PAN, OVEN = ("cw.sense.oil_temp",), ("cw.sense.pan_surface_temp",), ("cw.sense.oven_temp",)
CORE = {"value": 75, "unit": "degC", "sensor": "cw.sense.core_temp"}
OIL_175 = {"op": FRY, "params": {"oilTempC": 175}}
PAIRS: list[tuple[str, dict[str, Any], tuple[str, ...], Any, str, str]] = [
    ("who may do a step", {"op": MIX, "assignment": {"allowed": ["human"]}}, (), None, "human", "device"),
    ("operations nobody knows", {"op": "x-acme.op.zap"}, (), None, "needs_human_present", "device"),
    (
        "what stands in for a sensor",
        {"op": "cw.op.simmer", "until": {"onSensorMissing": "refuse"}},
        (),
        None,
        "missing_sensor_no_fallback",
        "device",
    ),
    ("figures", {"op": BAKE, "params": {"target": CORE}}, OVEN, None, "device", "envelope_out_of_range"),
    ("figures", {"op": SEAR, "params": {"heat": "warm"}}, PAN, None, "envelope_out_of_range", "device"),
    ("limits", OIL_175, OIL, {"kind": "max_temp", "max": 170, "unit": "degC"}, "safety_limit", "device"),
]


@pytest.mark.parametrize(("name", "node", "sensors", "limit", "mine", "other"), PAIRS)
def test_each_class_has_a_minimal_pair(
    name: str,
    node: dict[str, Any],
    sensors: tuple[str, ...],
    limit: Any,
    mine: str,
    other: str,
    samples: dict[str, Any],
    vocabulary: Vocabulary,
    now: datetime,
) -> None:
    def short(answer: Any) -> str:
        refusal, plan = answer[1], answer[2]
        return str(refusal[0] if refusal else plan[0][1])

    question = small(samples, node, sensors, limit)
    question.human_present = name != "operations nobody knows"
    assert (short(told(ours(question, vocabulary, now))), short(theirs(question, samples))) == (mine, other)
    CLASSES[name][1](question, samples)
    assert told(ours(question, vocabulary, now)) == theirs(question, samples)


def test_every_class_has_one() -> None:
    assert {pair[0] for pair in PAIRS} == set(CLASSES)
