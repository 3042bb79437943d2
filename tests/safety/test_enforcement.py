"""A device's limits fire on its own readings (Core §6.1)."""

import math
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.documents import from_plain, read
from safety.device_documents import SafetyLimits
from safety.enforcement import LimitWatch
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
