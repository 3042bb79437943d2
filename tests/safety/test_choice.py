"""The choice of a device by advice (DESIGN §4)."""

import copy
import itertools
from datetime import datetime
from typing import Any

import pytest

from events.documents import from_plain
from safety.choice import Appliance, Choice, choose
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.vocabulary import Vocabulary


@pytest.fixture
def ask(samples: dict[str, Any], vocabulary: Vocabulary, now: datetime) -> Any:
    def ask(recipe: str, busy: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> Choice:
        appliances = [
            Appliance(name, from_plain(Capabilities, plain), name in busy)
            for name, plain in samples["devices"].items()
            if name not in without
        ]
        return choose(from_plain(Recipe, samples["recipes"][recipe]), appliances, vocabulary, now=now)

    return ask


@pytest.mark.parametrize(
    ("recipe", "busy", "chosen"),
    [
        ("koshari", (), "demo-hob-robot"),
        ("lentil-soup", ("demo-hob-robot",), "demo-hob-robot-basic"),
        ("shakshuka", ("demo-hob-robot", "demo-hob-robot-basic"), "robot-arm"),
        ("salata-baladi", (), "demo-hob-robot"),
    ],
)
def test_the_demo_kitchen_chooses_as_expected(
    recipe: str, busy: tuple[str, ...], chosen: str, ask: Any
) -> None:
    assert ask(recipe, busy).candidates[0].name == chosen


def test_a_busy_device_is_asked_last_but_never_dropped(ask: Any) -> None:
    everybody = ("demo-hob-robot", "demo-hob-robot-basic", "robot-arm", "demo-oven")
    names = [candidate.name for candidate in ask("shakshuka", ("demo-hob-robot",)).candidates]
    assert names == ["demo-hob-robot-basic", "robot-arm", "demo-oven", "demo-hob-robot"]
    all_busy = ask("shakshuka", everybody)
    assert all_busy.refusal is None and all_busy.candidates[0].name == "demo-hob-robot"


def test_a_step_that_may_not_run_unattended_drops_no_device(ask: Any) -> None:
    """Every device of the samples refuses shakshuka with nobody there; advice still ranks all four."""
    assert len(ask("shakshuka").candidates) == 4


def test_less_work_for_people_goes_before_less_left_to_time_then_the_name(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    plain = copy.deepcopy(samples["recipes"]["koshari"])
    plain["process"] = {"nodes": [{"id": "a", "op": "cw.op.simmer"}, {"id": "b", "op": "cw.op.cut"}]}
    recipe = from_plain(Recipe, plain)

    def appliance(name: str, ops: list[str], sensors: list[str]) -> Appliance:
        device = copy.deepcopy(samples["devices"]["demo-hob-robot"])
        device["capabilities"] = {
            "ops": [{"op": op} for op in ops],
            "sensors": [{"sensor": sensor} for sensor in sensors],
        }
        return Appliance(name, from_plain(Capabilities, device), busy=False)

    vision, liquid = "cw.sense.vision", "cw.sense.liquid_temp"
    both = ["cw.op.simmer", "cw.op.cut"]
    kitchen = [
        appliance("a-needs-a-person", ["cw.op.simmer"], [liquid]),
        appliance("b-by-the-clock", both, [vision]),
        appliance("d-sees", both, [vision, liquid]),
        appliance("c-sees", both, [vision, liquid]),
    ]
    for order in itertools.permutations(kitchen):
        choice = choose(recipe, order, vocabulary, allow_model=False, now=now)
        assert [c.name for c in choice.candidates] == [
            "c-sees",
            "d-sees",
            "b-by-the-clock",
            "a-needs-a-person",
        ]


def test_without_a_candidate_the_refusal_is_of_the_device_that_came_furthest(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    recipe = from_plain(Recipe, samples["recipes"]["koshari"])
    basic = from_plain(Capabilities, samples["devices"]["demo-hob-robot-basic"])
    cold = from_plain(
        SafetyLimits,
        {
            "core": "0.2.0",
            "kind": "SafetyLimits",
            "id": "cold",
            "version": "0.1.0",
            "disclaimer": "",
            "limits": [
                {"id": "cold", "kind": "max_temp", "action": "cut_heat", "source": "a test", "max": 30}
            ],
        },
    )
    kitchen = [Appliance("a-cold", basic, False, cold), Appliance("z-basic", basic, False)]
    for order in itertools.permutations(kitchen):
        refusal = choose(recipe, order, vocabulary, now=now).refusal
        assert refusal is not None
        assert (refusal.reason, refusal.node) == ("missing_sensor_no_fallback", "n14")
    alone = choose(recipe, kitchen[:1], vocabulary, now=now).refusal
    assert alone is not None and alone.reason == "safety_limit"


def test_a_kitchen_without_devices_says_so(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    choice = choose(from_plain(Recipe, samples["recipes"]["koshari"]), [], vocabulary, now=now)
    assert choice.refusal is not None and choice.refusal.reason == "missing_equipment"


def test_the_kitchens_altitude_shifts_what_advice_allows(
    samples: dict[str, Any], vocabulary: Vocabulary, now: datetime
) -> None:
    device = Appliance("hob", from_plain(Capabilities, samples["devices"]["demo-hob-robot"]), busy=False)
    plain = copy.deepcopy(samples["recipes"]["koshari"])
    recipe = from_plain(Recipe, plain)
    at_sea = choose(recipe, [device], vocabulary, now=now)
    high_up = choose(recipe, [device], vocabulary, now=now, altitude_m=3_000)
    assert at_sea.refusal is None
    assert high_up.refusal is not None
    assert high_up.refusal.reason == "envelope_out_of_range"  # water does not come to 98 °C there
