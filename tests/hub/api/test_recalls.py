"""What a catalogue withdraws is refused, stopped where it runs, and never comes back (Core §6.8; T6)."""

import json
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from config.settings import Catalogues
from events.seams import SystemClock
from hub.event_types import event_registry
from hub.projections.projector import TABLES, Projector
from hub.store.rebuild import check
from sim.catalogue import Catalogue, running_catalogue
from tests.household import running_hub, until
from tests.hub.api.scripted import House, ScriptedDevice, Scripts, house

SOUP = "cw:cookwala.ai:example-lentil-soup"


def configured(catalogue: Catalogue, every_s: float = 3_600.0) -> dict[str, Any]:
    return {"catalogues": Catalogues(urls=(catalogue.base,), every_s=every_s)}


@asynccontextmanager
async def recalling(
    folder: Path, device: ScriptedDevice, every_s: float = 3_600.0
) -> AsyncGenerator[tuple[Catalogue, House]]:
    """A catalogue, and a hub that asks it."""
    async with (
        running_catalogue(SystemClock()) as catalogue,
        house(folder, device, changes=configured(catalogue, every_s)) as kitchen,
    ):
        yield catalogue, kitchen


async def poll(kitchen: House) -> dict[str, Any]:
    async with kitchen.client() as http:
        answer = await http.post("/v1/recalls/poll")
    assert answer.status_code == 200, answer.text
    state: dict[str, Any] = answer.json()
    return state


async def order(kitchen: House, recipe: str = "lentil-soup", /, **more: Any) -> dict[str, Any]:
    async with kitchen.client() as http:
        answer = await http.post("/v1/executions", json=kitchen.order(recipe, **more))
    assert answer.status_code == 202, answer.text
    status: dict[str, Any] = answer.json()
    return status


def reason(status: dict[str, Any]) -> str | None:
    refusal = status.get("refusal")
    return None if refusal is None else str(refusal["reason"])


async def test_a_recalled_recipe_is_refused_by_any_name_and_others_are_not(tmp_path: Path) -> None:
    async with recalling(tmp_path, ScriptedDevice("hob")) as (catalogue, kitchen):
        assert reason(await order(kitchen)) is None
        catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP, "allRevisions": True})]
        state = await poll(kitchen)
        assert [row["recipes"] for row in state["recalls"]] == [["example-lentil-soup"]]
        for name in (SOUP, "example-lentil-soup", "https://x.example/r#example-lentil-soup"):
            refused = await order(kitchen, recipe=name)
            assert (refused["state"], reason(refused)) == ("refused", "recipe_recalled")
        assert reason(await order(kitchen, "salata-baladi")) is None


async def test_one_revision_is_recalled_by_its_hash(tmp_path: Path) -> None:
    async with recalling(tmp_path, ScriptedDevice("hob")) as (catalogue, kitchen):
        other = f"sha256:{'0' * 64}"
        catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP, "hash": other})]
        await poll(kitchen)
        assert reason(await order(kitchen)) is None
        catalogue.feed = [
            catalogue.recall("rc-2", {"ref": "cw:a.example:any", "hash": kitchen.recipes["lentil-soup"]})
        ]
        await poll(kitchen)
        assert reason(await order(kitchen)) == "recipe_recalled"


async def test_a_recall_comes_before_the_mandate_and_the_allergens(tmp_path: Path) -> None:
    async with recalling(tmp_path, ScriptedDevice("hob")) as (catalogue, kitchen):
        token, _ = await kitchen.household.add_agent("agent:planner")
        catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP})]
        await poll(kitchen)
        async with kitchen.client(token) as http:
            body = kitchen.order(requestedBy="agent:planner", allergenBlocks=["moonlight"])
            answer = await http.post("/v1/executions", json=body)
        assert reason(answer.json()) == "recipe_recalled"


async def test_a_warning_only_warns(tmp_path: Path) -> None:
    async with recalling(tmp_path, ScriptedDevice("hob")) as (catalogue, kitchen):
        catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP}, action="warn")]
        state = await poll(kitchen)
        assert state["recalls"][0]["action"] == "warn"
        assert reason(await order(kitchen)) is None


@pytest.mark.parametrize(
    ("action", "ends"), [("block_and_stop_running", True), ("block", False), ("warn", False)]
)
async def test_what_runs_is_stopped_within_one_poll_if_the_recall_says_so(
    tmp_path: Path, action: str, ends: bool
) -> None:
    hob = ScriptedDevice("hob")
    # Nobody polls by hand: the hub's own rhythm finds it.
    async with recalling(tmp_path, hob, every_s=1.0) as (catalogue, kitchen):
        started = await order(kitchen)

        async def heats() -> bool:
            return bool(hob.heating)

        await until(heats)
        catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP}, action=action)]

        async def learned() -> bool:
            async with kitchen.client() as http:
                return bool((await http.get("/v1/recalls/state")).json()["recalls"])

        await until(learned)
        if not ends:
            await anyio.sleep(0.5)
            assert hob.heating
            return

        async def cold() -> bool:
            return not hob.heating

        await until(cold, within_s=5)

        async def stopped() -> Any:
            async with kitchen.client() as http:
                status = (await http.get(f"/v1/executions/{started['id']}")).json()
            return status if status["state"] == "stopped" else None

        await until(stopped)
        entries = logged(kitchen, "stop.asked")
        assert [entry["by"] for entry in entries] == [f"catalogue:{catalogue.base.partition('://')[2]}"]


BAD_FEEDS = ("empty", "shortened", "older", "forged", "unreadable", "gone")


async def test_no_feed_un_recalls_and_the_last_good_one_holds_offline_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async with running_catalogue(SystemClock()) as catalogue:
        hob = ScriptedDevice("hob")
        async with house(tmp_path, hob, changes=configured(catalogue)) as kitchen:
            older = catalogue.recall("rc-0", {"ref": "cw:cookwala.ai:example-koshari"})
            good = catalogue.recall("rc-1", {"ref": SOUP})
            narrower = catalogue.recall("rc-1", {"ref": "cw:cookwala.ai:other"}, action="warn")
            catalogue.feed = [older, good]
            await poll(kitchen)
            for kind in BAD_FEEDS:
                catalogue.feed = {
                    "empty": [],
                    "shortened": [older],
                    "older": [older, narrower],
                    "forged": [{**good, "action": "warn"}],
                    "unreadable": "nothing",
                    "gone": [good],
                }[kind]  # type: ignore[assignment] # also what is no feed
                if kind == "gone":
                    catalogue.answers["/v1/recalls"] = [503]
                state = await poll(kitchen)
                assert (state["catalogues"][0]["trouble"] is not None) == (kind in ("unreadable", "gone"))
                assert reason(await order(kitchen)) == "recipe_recalled", kind
            household, recipes = kitchen.household, kitchen.recipes
    # The catalogue has gone; the hub starts anew.
    async with running_hub(household, seams=Scripts(hob).seams()):
        after = House(household, (hob,), recipes)
        assert reason(await order(after)) == "recipe_recalled"
        assert reason(await order(after, "koshari")) == "recipe_recalled"
        async with after.client(None) as http:
            served = (await http.get("/v1/recalls")).json()
            keys = (await http.get("/v1/recalls/keys")).json()["keys"]
        assert good in served and len(served) == 3
        assert [key["kid"] for key in keys] == [catalogue.key.kid]
    projector = Projector(household.settings.kitchen, event_registry())
    assert check(household.folder.database, projector.replay, TABLES).ok


async def test_a_forged_recall_is_kept_in_quarantine_once_and_refuses_nothing(tmp_path: Path) -> None:
    async with recalling(tmp_path, ScriptedDevice("hob")) as (catalogue, kitchen):
        catalogue.feed = [{**catalogue.recall("rc-1", {"ref": "cw:a.example:x"}), "targets": [{"ref": SOUP}]}]
        for _ in range(3):
            state = await poll(kitchen)
        assert [one["reason"] for one in state["catalogues"][0]["passedOver"]] == ["bad_signature"]
        assert reason(await order(kitchen)) is None
        async with kitchen.client() as http:
            counters = (await http.get("/v1/quarantine")).json()["counters"]
        assert counters["recall_bad_signature"] == 1


async def test_the_key_may_not_be_had_any_more_and_the_known_one_serves(tmp_path: Path) -> None:
    async with recalling(tmp_path, ScriptedDevice("hob")) as (catalogue, kitchen):
        await poll(kitchen)
        catalogue.answers["/.well-known/cookwala.json"] = [500] * 5
        catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP})]
        await poll(kitchen)
        assert reason(await order(kitchen)) == "recipe_recalled"


async def test_a_silent_catalogue_is_asked_again_and_ever_more_rarely(tmp_path: Path) -> None:
    async with running_catalogue(SystemClock()) as catalogue:
        catalogue.answers["/v1/recalls"] = [500]
        async with house(
            tmp_path, ScriptedDevice("hob"), changes=configured(catalogue, every_s=1.0)
        ) as kitchen:
            catalogue.feed = [catalogue.recall("rc-1", {"ref": SOUP})]

            async def refused() -> bool:
                return reason(await order(kitchen)) == "recipe_recalled"

            await until(refused, every_s=0.3)


async def test_recalls_are_open_and_asking_for_them_is_for_people(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        token, _ = await kitchen.household.add_agent("agent:planner")
        async with kitchen.client(None) as http:
            assert (await http.get("/v1/recalls")).json() == []
            assert (await http.get("/v1/recalls/keys")).json() == {"keys": []}
            for path in ("/v1/recalls/poll", "/v1/incidents", "/v1/incidents/preview"):
                assert (await http.post(path)).status_code == 401
        async with kitchen.client(token) as http:
            assert (await http.get("/v1/recalls/state")).status_code == 200
            for path in ("/v1/recalls/poll", "/v1/incidents", "/v1/incidents/preview"):
                assert (await http.post(path)).status_code == 403
            for path in ("/v1/incidents", "/v1/untrusted-texts"):
                assert (await http.get(path)).status_code == 403


def logged(kitchen: House, kind: str) -> list[dict[str, Any]]:
    connection = sqlite3.connect(kitchen.household.folder.database)
    try:
        rows = connection.execute(
            "SELECT body FROM log JOIN payload USING (log_id, seq) WHERE kind = ? ORDER BY seq", (kind,)
        ).fetchall()
    finally:
        connection.close()
    return [json.loads(row[0]) for row in rows]
