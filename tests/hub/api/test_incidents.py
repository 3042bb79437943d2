"""An incident report leaves the house only as a person was shown it, and until it has arrived (Core §6.9)."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from config.settings import Catalogues
from events.seams import SystemClock
from hub.event_types import event_registry
from hub.projections.projector import TABLES, Projector
from hub.store.rebuild import check
from sim.catalogue import Catalogue, running_catalogue
from tests.household import running_hub, until
from tests.hub.api.scripted import House, ScriptedDevice, house


def report(**more: Any) -> str:
    return json.dumps(
        {
            "core": "0.2.0",
            "kind": "IncidentReport",
            "id": "inc-0a1b2c3d4e",
            "date": "2026-09-28",
            "category": "cw.incident.overheat",
            "severity": "medium",
            "description": "Oil reached 201 °C; heat was cut automatically.",
            **more,
        }
    )


@asynccontextmanager
async def reporting(folder: Path) -> AsyncGenerator[tuple[Catalogue, House]]:
    """A catalogue, and a hub that knows it."""
    async with running_catalogue(SystemClock()) as catalogue:
        known = {"catalogues": Catalogues(urls=(catalogue.base,), every_s=3_600.0)}
        async with house(folder, ScriptedDevice("annas-hob"), changes=known) as kitchen:
            yield catalogue, kitchen


async def preview(kitchen: House, text: str) -> dict[str, Any]:
    async with kitchen.client() as http:
        answer = await http.post("/v1/incidents/preview", content=text.encode())
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def let_go(kitchen: House, text: str, shown: str) -> tuple[int, dict[str, Any]]:
    async with kitchen.client() as http:
        answer = await http.post("/v1/incidents", json={"report": text, "shown": shown})
    return answer.status_code, answer.json()


async def test_what_was_shown_arrives_word_for_word_and_once(tmp_path: Path) -> None:
    async with reporting(tmp_path) as (catalogue, kitchen):
        text = report()
        shown = await preview(kitchen, text)
        assert (shown["traces"], shown["report"], shown["catalogues"]) == ([], text, [catalogue.base])
        assert catalogue.reports == {}
        for _ in range(2):
            assert (await let_go(kitchen, text, shown["digest"]))[0] == 202

        async def arrived() -> bool:
            return bool(catalogue.reports)

        await until(arrived)
        assert list(catalogue.reports.values()) == [text.encode()]
        assert catalogue.asked.count("/v1/incidents") == 1

        async def settled() -> bool:
            async with kitchen.client() as http:
                (row,) = (await http.get("/v1/incidents")).json()["incidents"]
            return bool(row["deliveries"][0]["accepted"])

        await until(settled)


async def test_a_report_of_another_core_goes_nowhere(tmp_path: Path) -> None:
    async with reporting(tmp_path) as (catalogue, kitchen):
        text = report(core="9.9.9").encode()
        async with kitchen.client() as http:
            answer = await http.post("/v1/incidents/preview", content=text)
        assert (answer.status_code, answer.json()["title"]) == (422, "unsupported_version")
        async with httpx.AsyncClient() as stranger:
            assert (await stranger.post(f"{catalogue.base}/v1/incidents", content=text)).status_code == 422
        assert catalogue.reports == {}


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"description": "Anna burnt the soup."}, "name"),
        ({"description": "annas-hob burnt the soup."}, "name"),
        ({"description": "It was 18:42."}, "exact_time"),
        ({"description": "Call +49 170 1234567."}, "address"),
        ({"id": "exe-0123456789"}, "id"),
        ({"x-note": "1"}, "extension"),
    ],
)
async def test_what_could_tell_who_reports_does_not_leave_the_house(
    tmp_path: Path, more: dict[str, Any], kind: str
) -> None:
    async with reporting(tmp_path) as (catalogue, kitchen):
        text = report(**more)
        shown = await preview(kitchen, text)
        assert kind in {one["kind"] for one in shown["traces"]}
        status, problem = await let_go(kitchen, text, shown["digest"])
        assert (status, problem["title"]) == (422, "not_anonymous")
        async with kitchen.client() as http:
            assert (await http.get("/v1/incidents")).json() == {"incidents": []}
        assert catalogue.reports == {}


async def test_only_what_was_shown_may_go(tmp_path: Path) -> None:
    async with reporting(tmp_path) as (_, kitchen):
        shown = await preview(kitchen, report())
        status, problem = await let_go(kitchen, report(severity="high"), shown["digest"])
        assert (status, problem["title"]) == (409, "not_what_was_shown")
        assert (await let_go(kitchen, report(), shown["digest"]))[0] == 202
        other = report(severity="high")
        status, problem = await let_go(kitchen, other, (await preview(kitchen, other))["digest"])
        assert (status, problem["title"]) == (409, "conflict")
        async with kitchen.client() as http:
            for bad in ("{}", report(date="2026-02-30"), report(category="cw.incident.none_such"), "["):
                answer = await http.post("/v1/incidents/preview", content=bad.encode())
                assert answer.status_code in (400, 422), bad


async def test_without_a_catalogue_nothing_is_let_go(shared: House) -> None:
    text = report()
    shown = await preview(shared, text)
    assert shown["catalogues"] == []
    status, problem = await let_go(shared, text, shown["digest"])
    assert (status, problem["title"]) == (409, "no_catalogue")


async def test_a_report_is_kept_until_a_catalogue_has_it_also_over_a_restart(tmp_path: Path) -> None:
    async with running_catalogue(SystemClock()) as catalogue:
        catalogue.answers["/v1/incidents"] = [503] * 50
        known = {"catalogues": Catalogues(urls=(catalogue.base,), every_s=3_600.0)}
        text = report()
        async with house(tmp_path, ScriptedDevice("hob"), changes=known) as kitchen:
            shown = await preview(kitchen, text)
            assert (await let_go(kitchen, text, shown["digest"]))[0] == 202

            async def refused_once() -> bool:
                async with kitchen.client() as http:
                    (row,) = (await http.get("/v1/incidents")).json()["incidents"]
                return bool("503" in (row["deliveries"][0]["trouble"] or ""))

            await until(refused_once)
        assert catalogue.reports == {}
        catalogue.answers["/v1/incidents"] = []
        async with running_hub(kitchen.household):

            async def arrived() -> bool:
                return bool(catalogue.reports)

            await until(arrived)
        (key,) = catalogue.reports
        assert 8 <= len(key) <= 128
        assert catalogue.reports[key] == text.encode()
    projector = Projector(kitchen.household.settings.kitchen, event_registry())
    assert check(kitchen.household.folder.database, projector.replay, TABLES).ok
