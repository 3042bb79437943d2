"""`aboyeur recalls`, `incident`, `migrate`, and `validate` of what a recipe means."""

import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from cookwala_samples import load_bundle

from config.settings import Catalogues
from events.seams import SystemClock
from hub.cli.main import run
from sim.catalogue import Catalogue, running_catalogue
from tests.household import until
from tests.hub.api.scripted import House, ScriptedDevice, house

SAMPLES = load_bundle()
Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def _handlers_stay_as_they_were() -> Iterator[None]:
    """The broker in this process logs to what is captured here, which is closed after the test."""
    before = list(logging.root.handlers)
    yield
    logging.root.handlers[:] = before


@asynccontextmanager
async def evening(folder: Path) -> AsyncGenerator[tuple[Catalogue, House]]:
    """A catalogue, and a hub that knows it."""
    async with running_catalogue(SystemClock()) as catalogue:
        known = {"catalogues": Catalogues(urls=(catalogue.base,), every_s=3_600.0)}
        async with house(folder, ScriptedDevice("annas-hob"), changes=known) as kitchen:
            yield catalogue, kitchen


async def call(kitchen: House, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The command as the owner types it, beside the running hub."""
    before = ["--data", str(kitchen.household.folder.root), "--url", kitchen.household.url]
    capsys.readouterr()
    code = await to_thread.run_sync(partial(run, [*before, *words]))
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    return code, printed.out, printed.err


async def test_recalls_are_listed_and_polled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    async with evening(tmp_path) as (catalogue, kitchen):
        code, out, _ = await call(kitchen, capsys, "recalls", "list")
        assert code == 0 and "Nothing is recalled." in out and catalogue.base in out
        good = catalogue.recall("rc-1", {"ref": "cw:a.example:example-koshari"}, detail="\x1b[2Jhidden")
        catalogue.feed = [good, {**good, "id": "rc-2"}]
        code, out, _ = await call(kitchen, capsys, "recalls", "poll")
        assert code == 0 and "rc-1" in out and "example-koshari" in out and "bad_signature" in out
        code, out, _ = await call(kitchen, capsys, "recalls", "list", "--json")
        state = json.loads(out)
        assert [one["id"] for one in state["recalls"]] == ["rc-1"]
        catalogue.answers["/v1/recalls"] = [500]
        code, out, _ = await call(kitchen, capsys, "recalls", "poll")
        assert code == 0 and "rc-1" in out and "500" in out
        code, out, _ = await call(kitchen, capsys, "cook", "koshari")
        assert code == 1 and "recipe_recalled" in out
        catalogue.feed = [catalogue.recall("rc-3", {"ref": "example-salata-baladi"}, action="warn")]
        await call(kitchen, capsys, "recalls", "poll")
        code, out, err = await call(kitchen, capsys, "cook", "salata-baladi")
        assert code == 0 and "warns of this recipe" in err


REPORT = ("incident", "report", "cw.incident.overheat", "Oil reached 201 °C; heat was cut.")


async def test_a_report_goes_only_when_somebody_who_saw_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with evening(tmp_path) as (catalogue, kitchen):
        code, out, err = await call(kitchen, capsys, *REPORT, "--outcome", "near_miss")
        assert code == 2 and "nothing was sent" in err and "201 °C" in out and catalogue.base in out
        words = err.split()
        name, digest = words[words.index("--id") + 1], words[words.index("--yes") + 1]
        day = next(line for line in out.splitlines() if '"date"' in line).split('"')[3]
        again = (*REPORT, "--outcome", "near_miss", "--id", name, "--date", day)
        code, _, err = await call(kitchen, capsys, *again, "--yes", f"sha256:{'0' * 64}")
        assert code == 1 and "nothing was sent" in err
        assert catalogue.reports == {}
        code, out, _ = await call(kitchen, capsys, *again, "--yes", digest)
        assert code == 0 and name in out

        async def arrived() -> bool:
            return bool(catalogue.reports)

        await until(arrived)
        (sent,) = catalogue.reports.values()
        assert json.loads(sent)["id"] == name

        async def listed() -> bool:
            return "accepted" in (await call(kitchen, capsys, "incident", "list"))[1]

        await until(listed)
        code, out, err = await call(kitchen, capsys, *REPORT[:3], "Anna burnt it at 18:42.", "--yes", digest)
        assert code == 1 and "exact_time" in out and "name" in out and "other words" in err
        assert len(catalogue.reports) == 1


# --- Without a hub --------------------------------------------------------------------------------


def old_recipe(folder: Path) -> Path:
    recipe = json.loads(json.dumps(SAMPLES["recipes"]["lentil-soup"]))
    recipe.update(cookwala="0.1.0", chefsNote="mine")
    target = recipe["process"]["nodes"][3]["params"]["target"]
    target.update(value=320, unit="degF", tolerance=27)
    path = folder / "soup.json"
    path.write_text(json.dumps(recipe), "utf-8")
    return path


def test_migrate_shows_everything_and_changes_nothing(aboyeur: Call, tmp_path: Path) -> None:
    path = old_recipe(tmp_path)
    before = path.read_bytes()
    ended = aboyeur("migrate", str(path))
    assert ended.code == 0, ended.out
    for words in ("320 °F is", "160 °C", "x-v01-chefs-note", "Nothing was changed", '-      "unit": "degF"'):
        assert words in " ".join(ended.out.split()) or words in ended.out, words
    assert path.read_bytes() == before
    assert list(tmp_path.glob("soup.json*")) == [path]


def test_migrate_writes_only_when_told_and_keeps_what_was(aboyeur: Call, tmp_path: Path) -> None:
    path = old_recipe(tmp_path)
    before = path.read_bytes()
    ended = aboyeur("migrate", str(path), "--write")
    assert ended.code == 0, ended.out + ended.err
    kept = tmp_path / "soup.json.v01"
    assert kept.read_bytes() == before
    assert json.loads(path.read_bytes())["cookwala"] == "0.2.0"
    assert aboyeur("validate", str(path)).code == 0
    again = aboyeur("migrate", str(path), "--write")
    assert again.code == 0 and "nothing to do" in again.out
    path.write_bytes(before)
    ended = aboyeur("migrate", str(path), "--write")
    assert ended.code == 1 and "not overwritten" in ended.err
    assert (path.read_bytes(), kept.read_bytes()) == (before, before)


def test_migrate_says_what_stays_wrong_and_what_it_cannot_read(aboyeur: Call, tmp_path: Path) -> None:
    path = old_recipe(tmp_path)
    recipe = json.loads(path.read_bytes())
    recipe["process"]["nodes"][0]["hazards"] = ["hz_fog"]
    path.write_text(json.dumps(recipe))
    ended = aboyeur("migrate", str(path), "--json")
    assert ended.code == 1
    assert any("hz_fog" in one for one in ended.json()["problems"])
    path.write_text('{"cookwala": "3.0.0"}')
    assert aboyeur("migrate", str(path)).code == 1


def test_validate_tells_every_problem_of_what_a_recipe_means(aboyeur: Call, tmp_path: Path) -> None:
    recipe = json.loads(json.dumps(SAMPLES["recipes"]["koshari"]))
    recipe.pop("hash", None)
    path = tmp_path / "koshari.json"
    path.write_text(json.dumps(recipe))
    assert aboyeur("validate", str(path)).code == 0
    recipe["process"]["nodes"][0]["hazards"] = ["hz_fog"]
    recipe["process"]["nodes"][13]["params"]["target"]["value"] = 230
    path.write_text(json.dumps(recipe))
    ended = aboyeur("validate", str(path), "--json")
    assert ended.code == 1
    problems = ended.json()["files"][0]["problems"]
    assert [(one["path"], one["reason"], one["source"]) for one in problems] == [
        ("$.process.nodes[0].hazards[0]", "unknown_ref", "meaning"),
        ("$.process.nodes[13].params", "target_outside_envelope", "meaning"),
    ]
