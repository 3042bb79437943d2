"""What a recipe means (Core §3, §4): every problem is told, each with its place."""

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from cookwala_samples import load_bundle

from events.documents import from_plain
from safety.documents import Recipe
from safety.recipe_semantics import recipe_problems
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary

SAMPLES = load_bundle()
VOCABULARY = Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())


def problems(change: Callable[[Any], object]) -> set[tuple[str, str]]:
    copy = json.loads(json.dumps(SAMPLES["recipes"]["koshari"]))
    change(copy)
    found = recipe_problems(from_plain(Recipe, copy), copy, VOCABULARY)
    return {(one.path, one.reason) for one in found}


@pytest.mark.parametrize("name", sorted(SAMPLES["recipes"]))
def test_the_sample_recipes_mean_what_they_say(name: str) -> None:
    recipe = SAMPLES["recipes"][name]
    assert recipe_problems(from_plain(Recipe, recipe), recipe, VOCABULARY) == ()


def node(recipe: Any, number: int) -> Any:
    return recipe["process"]["nodes"][number]


def at(number: int, rest: str = "") -> str:
    return f"$.process.nodes[{number}]{rest}"


CASES: tuple[tuple[str, Callable[[Any], object], tuple[str, str]], ...] = (
    (
        "an input nobody makes",
        lambda r: node(r, 2).update(inputs=["fog"]),
        (at(2, ".inputs[0]"), "unknown_ref"),
    ),
    (
        "equipment that is not there",
        lambda r: node(r, 0).update(equipment=["hob", "wok"]),
        (at(0, ".equipment[1]"), "unknown_ref"),
    ),
    (
        "a hazard nobody wrote",
        lambda r: node(r, 0).update(hazards=["hz_fog"]),
        (at(0, ".hazards[0]"), "unknown_ref"),
    ),
    (
        "a control point nobody wrote",
        lambda r: node(r, 0).update(ccp="ccp_fog"),
        (at(0, ".ccp"), "unknown_ref"),
    ),
    ("into nothing", lambda r: node(r, 0).update(into="fog"), (at(0, ".into"), "unknown_ref")),
    (
        "a point of another step",
        lambda r: node(r, 0).update(ccp="ccp_hot_oil"),
        (at(0, ".ccp"), "ccp_elsewhere"),
    ),
    (
        "a point at no step",
        lambda r: r["safety"]["ccps"][0].update(node="n99"),
        ("$.safety.ccps[0].node", "unknown_ref"),
    ),
    (
        "a point without a hazard",
        lambda r: r["safety"]["ccps"][0].update(hazard=" "),
        ("$.safety.ccps[0].hazard", "ccp_without_hazard"),
    ),
    (
        "a point of an unknown hazard",
        lambda r: r["safety"]["ccps"][0].update(hazard="hz_fog"),
        ("$.safety.ccps[0].hazard", "unknown_ref"),
    ),
    ("a step twice", lambda r: node(r, 1).update(id="n1"), (at(1, ".id"), "duplicate_ref")),
    (
        "an output twice",
        lambda r: node(r, 1).update(output="lentils_boiling"),
        (at(1, ".output"), "duplicate_ref"),
    ),
    (
        "an output that is an ingredient",
        lambda r: node(r, 1).update(output="lentils"),
        (at(1, ".output"), "duplicate_ref"),
    ),
    (
        "an ingredient twice",
        lambda r: r["ingredients"].append(r["ingredients"][0]),
        ("$.ingredients[26].ref", "duplicate_ref"),
    ),
    ("a circle by inputs", lambda r: node(r, 0).update(inputs=["koshari"]), (at(0), "cycle")),
    (
        "a step that waits for itself",
        lambda r: node(r, 0).update(inputs=["lentils_boiling"]),
        (at(0), "cycle"),
    ),
    (
        "a circle by edges",
        lambda r: r["process"].update(edges=[{"from": "n1", "to": "n2"}, {"from": "n2", "to": "n1"}]),
        (at(1), "cycle"),
    ),
    (
        "an edge from nowhere",
        lambda r: r["process"].update(edges=[{"from": "n99", "to": "n2"}]),
        ("$.process.edges[0].from", "unknown_ref"),
    ),
    (
        "a group of nobody",
        lambda r: r["process"].update(parallelGroups=[["n1", "n99"]]),
        ("$.process.parallelGroups[0][1]", "unknown_ref"),
    ),
    (
        "a step never to leave that is none",
        lambda r: r["safety"]["abort"].update(neverLeave=["n99"]),
        ("$.safety.abort.neverLeave[0]", "unknown_ref"),
    ),
    (
        "words for no step",
        lambda r: r["text"]["en"]["steps"].update(n99="?"),
        ("$.text.en.steps.n99", "unknown_ref"),
    ),
    (
        "a step for nobody",
        lambda r: node(r, 0).update(assignment={"allowed": []}),
        (at(0, ".assignment.allowed"), "nobody_may"),
    ),
    (
        "a target outside",
        lambda r: node(r, 13)["params"]["target"].update(value=230),
        (at(13, ".params"), "target_outside_envelope"),
    ),
    (
        "a parameter outside",
        lambda r: node(r, 13)["params"].update(oilTempC=230),
        (at(13, ".params"), "target_outside_envelope"),
    ),
    (
        "a heat level that is none",
        lambda r: node(r, 7)["params"].update(heat="infernal"),
        (at(7, ".params"), "target_outside_envelope"),
    ),
    (
        "an alternative outside",
        lambda r: node(r, 0).update(
            alternatives=[{"id": "a", "op": "cw.op.deep_fry", "params": {"tempC": 300}}]
        ),
        (at(0, ".alternatives[0].params"), "target_outside_envelope"),
    ),
    (
        "a figure that is none",
        lambda r: node(r, 13)["params"].update(tempC="hot"),
        (at(13, ".params"), "figure_unreadable"),
    ),
    (
        "minTime above maxTime",
        lambda r: node(r, 0)["until"].update(minTime="PT30M"),
        (at(0, ".until.maxTime"), "times_out_of_order"),
    ),
    (
        "nominalTime above maxTime",
        lambda r: node(r, 0)["until"].update(nominalTime="PT30M"),
        (at(0, ".until.maxTime"), "times_out_of_order"),
    ),
    (
        "held longer than the step",
        lambda r: node(r, 0)["until"]["any"][0].update(holdFor="PT1H"),
        (at(0, ".until.any[0].holdFor"), "times_out_of_order"),
    ),
    (
        "between nothing",
        lambda r: node(r, 0)["until"]["any"].append({"sensor": "cw.sense.liquid_temp", "between": [98, 90]}),
        (at(0, ".until.any[2].between"), "range_empty"),
    ),
    (
        "above and below",
        lambda r: node(r, 0)["until"]["any"][0].update(lte=90),
        (at(0, ".until.any[0]"), "range_empty"),
    ),
    (
        "an extension of nothing",
        lambda r: node(r, 0).update(retry={"max": 1, "extendBy": "PT0S"}),
        (at(0, ".retry.extendBy"), "bad_duration"),
    ),
    (
        "a start that is no duration",
        lambda r: node(r, 0).update(timing={"startAfter": "soon"}),
        (at(0, ".timing.startAfter"), "bad_duration"),
    ),
    (
        "active longer than all",
        lambda r: r["process"].update(activeTime="PT2H", totalTime="PT1H"),
        ("$.process.totalTime", "times_out_of_order"),
    ),
    (
        "a relative tolerance on °C",
        lambda r: r.update(meta={"rest": {"value": 60, "unit": "degC", "tolerance": 0.1}}),
        ("$.meta.rest.tolerance", "tolerance_not_allowed"),
    ),
    (
        "two tolerances",
        lambda r: r.update(meta={"q": {"value": 6, "unit": "g", "tolerance": 0.1, "toleranceAbs": 1}}),
        ("$.meta.q.toleranceAbs", "tolerance_not_allowed"),
    ),
    (
        "an absolute one on a target",
        lambda r: node(r, 0)["params"]["target"].update(toleranceAbs=2),
        (at(0, ".params.target.toleranceAbs"), "tolerance_not_allowed"),
    ),
)


@pytest.mark.parametrize(("change", "problem"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_problem_is_told_with_its_place(change: Callable[[Any], object], problem: tuple[str, str]) -> None:
    assert problem in problems(change)


def test_every_problem_is_told_and_not_only_the_first() -> None:
    def change(recipe: Any) -> None:
        node(recipe, 0).update(hazards=["hz_fog"], equipment=["wok"])
        node(recipe, 13)["params"]["target"].update(value=230)

    assert {reason for _, reason in problems(change)} == {"unknown_ref", "target_outside_envelope"}
    assert len(problems(change)) == 3


def test_only_the_steps_of_a_circle_are_named() -> None:
    found = problems(lambda recipe: node(recipe, 0).update(inputs=["lentils_cooked"]))
    assert found == {(at(0), "cycle"), (at(1), "cycle")}
