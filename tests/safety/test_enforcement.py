"""A device's limits fire on its own readings (Core §6.1)."""

import math
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.documents import from_plain, read
from safety.device_documents import SafetyLimits
from safety.enforcement import LimitWatch, Moment
from safety.vocabulary import DEFAULT_LIMITS_RESOURCE


def pack(*limits: dict[str, Any]) -> SafetyLimits:
    whole = [{"action": "cut_heat", "source": "a test", **limit} for limit in limits]
    head = {"core": "0.2.0", "kind": "SafetyLimits", "id": "t", "version": "0.1.0", "disclaimer": ""}
    return from_plain(SafetyLimits, {**head, "limits": whole})


@pytest.fixture(scope="module")
def default() -> LimitWatch:
    return LimitWatch(read(SafetyLimits, files("safety").joinpath(DEFAULT_LIMITS_RESOURCE).read_bytes()))


@pytest.mark.parametrize(
    ("readings", "fires"),
    [
        ({"op": "cw.op.deep_fry", "medium": "oil", "temp_c": 200.0}, None),
        ({"op": "cw.op.deep_fry", "medium": "oil", "temp_c": 200.1}, "oil.max"),
        ({"op": "x-acme.fry", "medium": "oil", "temp_c": 201.0}, "oil.max"),
        ({"op": "cw.op.sear", "medium": "pan_surface", "temp_c": 250.0}, None),
        ({"op": "cw.op.sear", "medium": "pan_surface", "temp_c": 281.0}, "pan.max"),
        ({"op": "cw.op.pressure_cook", "medium": "pressure", "pressure_kpa": 111.0}, "vessel.pressure"),
        ({"op": "cw.op.pressure_cook", "medium": "pressure", "pressure_kpa": 110.0}, None),
        ({"op": "cw.op.simmer", "medium": "water", "temp_c": 300.0}, None),
        ({"op": None, "medium": None, "temp_c": 201.0}, "oil.max"),
        ({"op": "cw.op.deep_fry", "medium": "oil"}, None),
    ],
)
def test_a_reading_above_a_limit_fires_it(
    readings: dict[str, Any], fires: str | None, default: LimitWatch
) -> None:
    fired = default.check(**readings)
    assert (fired.limit if fired else None) == fires
    assert fired is None or fired.action == "cut_heat"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reading_that_is_no_number_fires(value: float, default: LimitWatch) -> None:
    assert default.check(op="cw.op.deep_fry", medium="oil", temp_c=value) is not None


def test_a_limit_without_a_figure_allows_nothing() -> None:
    fired = LimitWatch(pack({"id": "blank", "kind": "max_temp"})).check(op=None, medium="oil", temp_c=20.0)
    assert fired is not None and fired.maximum is None


def test_not_knowing_what_runs_or_in_what_exempts_from_nothing() -> None:
    scope = {"ops": ["cw.op.fry"], "medium": "oil", "foodClass": "fish"}
    watch = LimitWatch(pack({"id": "a", "kind": "max_temp", "max": 50, "appliesTo": scope}))
    for op in (None, "cw.op.fry"):
        for medium in (None, "oil"):
            assert watch.check(op=op, medium=medium, temp_c=51) is not None
    assert watch.check(op="cw.op.boil", medium="oil", temp_c=51) is None
    assert watch.check(op="cw.op.fry", medium="water", temp_c=51) is None


def test_of_several_limits_the_most_drastic_is_told() -> None:
    watch = LimitWatch(
        pack(
            {"id": "a", "kind": "max_temp", "max": 50, "action": "alert"},
            {"id": "b", "kind": "max_temp", "max": 120, "action": "stop_all"},
            {"id": "c", "kind": "max_temp", "max": 100, "action": "stop_all"},
        )
    )
    fired = watch.check(op="cw.op.boil", medium="water", temp_c=130)
    assert fired is not None and fired.limit == "c"


@given(
    base=st.lists(st.floats(20, 300), min_size=1, max_size=4),
    more=st.lists(st.floats(0, 400), max_size=4),
    temp_c=st.floats(0, 400),
)
def test_another_limit_never_silences_one_that_fires(
    base: list[float], more: list[float], temp_c: float
) -> None:
    def watch(figures: list[float]) -> LimitWatch:
        return LimitWatch(
            pack(*({"id": f"l{i}", "kind": "max_temp", "max": m} for i, m in enumerate(figures)))
        )

    before = watch(base).check(op="cw.op.sear", medium="pan_surface", temp_c=temp_c)
    after = watch(base + more).check(op="cw.op.sear", medium="pan_surface", temp_c=temp_c)
    assert (before is not None) == (temp_c > min(base))
    assert (after is not None) == (temp_c > min(base + more))


# --- Core temperature and time out of temperature ---------------------------------------------------------

POULTRY = {"id": "bird", "kind": "min_core_temp", "min": 74, "action": "ask_human"}
HOLD = {"id": "hold", "kind": "time_temp", "min": 60, "holdFor": "PT2H", "action": "alert"}


@pytest.mark.parametrize(
    ("core_c", "classes", "fires"),
    [
        (73.9, {"poultry"}, True),
        (74.0, {"poultry"}, False),
        (20.0, {"salad"}, False),
        (20.0, None, True),
        (math.nan, {"poultry"}, True),
        (math.inf, {"poultry"}, True),
    ],
)
def test_food_colder_inside_than_its_class_needs_is_not_served(
    core_c: float, classes: set[str] | None, fires: bool
) -> None:
    watch = LimitWatch(pack({**POULTRY, "appliesTo": {"foodClass": "poultry"}}))
    known = None if classes is None else frozenset(classes)
    fired = watch.check_core(op="cw.op.roast", core_temp_c=core_c, food_classes=known)
    assert (fired is not None) == fires
    assert fired is None or (fired.limit, fired.minimum, fired.action) == ("bird", 74, "ask_human")


def test_of_two_core_limits_the_higher_is_told_and_one_without_a_figure_is_never_met() -> None:
    both = LimitWatch(pack(POULTRY, {**POULTRY, "id": "home", "min": 80}))
    fired = both.check_core(op=None, core_temp_c=70, food_classes=frozenset())
    assert fired is not None and fired.limit == "home"
    bare = LimitWatch(pack({"id": "bare", "kind": "min_core_temp"}))
    assert bare.check_core(op="cw.op.roast", core_temp_c=99, food_classes=frozenset()) is not None


@pytest.mark.parametrize(
    ("course", "fires"),
    [
        ([(0, 65), (9_000, 65)], False),
        ([(0, 59), (7_200, 59)], False),
        ([(0, 59), (7_201, 59)], True),
        ([(0, 59), (4_000, 59), (4_001, 65), (9_000, 65), (9_001, 59), (13_000, 59)], True),
        ([(0, 65), (7_201, 59)], True),
        ([(0, 65), (10, math.nan), (7_300, 65)], True),
        ([(0, 60), (9_000, 60)], False),
        ([(0, 59)], False),
        ([], False),
    ],
)
def test_times_out_of_temperature_add_up(course: list[tuple[float, float]], fires: bool) -> None:
    watch = LimitWatch(pack({**HOLD, "appliesTo": {"ops": ["cw.op.hold"]}}))
    moments = [Moment(at_s, temp_c) for at_s, temp_c in course]
    assert (watch.check_time(op="cw.op.hold", medium="product", course=moments) is not None) == fires
    assert (watch.check_time(op=None, medium=None, course=moments) is not None) == fires
    assert watch.check_time(op="cw.op.boil", medium="water", course=moments) is None


def test_without_a_time_to_hold_the_first_moment_out_fires() -> None:
    watch = LimitWatch(pack({"id": "cold", "kind": "time_temp", "max": 5}))
    assert watch.check_time(op="cw.op.chill", medium="ambient", course=[Moment(0, 5.1)]) is not None
    assert watch.check_time(op="cw.op.chill", medium="ambient", course=[Moment(0, 5.0)]) is None


def test_what_no_reading_can_be_held_against_is_named(default: LimitWatch) -> None:
    assert default.unjudged() == ("presence", "fire", "allergens", "button")
    cooling = {"id": "cool", "kind": "time_temp", "unit": "h"}
    watch = LimitWatch(pack(cooling, HOLD, POULTRY))
    assert watch.unjudged() == ("cool",)
    assert LimitWatch(pack(cooling)).check_time(op=None, medium=None, course=[Moment(0, 40)]) is None


FIGURE = st.integers(0, 300)
ANY_LIMIT = st.fixed_dictionaries(
    {"kind": st.sampled_from(["max_temp", "pressure", "min_core_temp", "time_temp"])},
    optional={
        "max": FIGURE,
        "min": FIGURE,
        "action": st.sampled_from(["stop_all", "cut_heat", "alert"]),
        "holdFor": st.sampled_from(["PT1M", "PT1H"]),
        "appliesTo": st.fixed_dictionaries(
            {},
            optional={
                "ops": st.lists(st.sampled_from(["cw.op.fry", "cw.op.boil"]), max_size=2),
                "medium": st.sampled_from(["oil", "water"]),
                "foodClass": st.just("fish"),
            },
        ),
    },
)


@settings(max_examples=300)
@given(
    base=st.lists(ANY_LIMIT, min_size=1, max_size=3),
    more=st.lists(ANY_LIMIT, max_size=3),
    op=st.sampled_from(["cw.op.fry", "cw.op.boil", "x-acme.op", "ignore all limits"]),
    medium=st.sampled_from(["oil", "water", "nothing at all"]),
    temps=st.lists(st.floats(-50, 400) | st.just(math.nan), min_size=1, max_size=4),
)
def test_nothing_but_the_pack_decides_and_not_knowing_never_loosens(
    base: list[dict[str, Any]], more: list[dict[str, Any]], op: str, medium: str, temps: list[float]
) -> None:
    """Whatever a caller says of operation, medium or food: it fires wherever the pack alone would have it."""

    def fired(limits: list[dict[str, Any]], op: str | None, medium: str | None, known: bool) -> list[bool]:
        watch = LimitWatch(pack(*({"id": f"l{place}", **one} for place, one in enumerate(limits))))
        classes = frozenset({"fish", "rice"}) if known else None
        course = [Moment(60.0 * place, temp) for place, temp in enumerate(temps)]
        return [
            *(
                watch.check(op=op, medium=medium, temp_c=temp, pressure_kpa=temp) is not None
                for temp in temps
            ),
            *(watch.check_core(op=op, core_temp_c=temp, food_classes=classes) is not None for temp in temps),
            watch.check_time(op=op, medium=medium, course=course, food_classes=classes) is not None,
        ]

    told = fired(base, op, medium, known=True)
    assert told == fired(base, op, medium, known=True), "it keeps nothing between two questions"
    for wider in (
        fired(base + more, op, medium, known=True),
        fired(base, None, medium, known=True),
        fired(base, op, None, known=True),
        fired(base, op, medium, known=False),
        fired(base, None, None, known=False),
    ):
        assert all(now_fires or not fires for fires, now_fires in zip(told, wider, strict=True))


def test_a_watch_cannot_be_changed(default: LimitWatch) -> None:
    with pytest.raises(AttributeError):
        default.limits = pack({"id": "a", "kind": "max_temp", "max": 999})  # type: ignore[misc] # what it refuses
    with pytest.raises(AttributeError):
        default.limits.limits[0].max = 999  # type: ignore[misc] # what it refuses


def test_a_hub_that_imports_enforcement_is_found_out(tmp_path: Path) -> None:
    """The contract in pyproject.toml bites: a copy of the house with such an import breaks it."""
    root = Path(__file__).parents[2]
    rooms = ("config", "events", "mandates", "safety", "adapters", "hub", "sim")
    for room in rooms:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("")
    (tmp_path / "safety" / "enforcement.py").write_text("")
    (tmp_path / "pyproject.toml").write_text((root / "pyproject.toml").read_text())
    script = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"

    def lint() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    clean = lint()
    assert clean.returncode == 0, clean.stdout + clean.stderr
    (tmp_path / "hub" / "boss.py").write_text("import safety.enforcement\n")
    broken = lint()
    assert broken.returncode != 0 and "enforcement" in broken.stdout
