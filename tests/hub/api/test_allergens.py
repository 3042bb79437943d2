"""An allergen block refuses at the hub by recipe and by what devices have in store (Core §6.7; ruling S5)."""

import json
from pathlib import Path
from typing import Any

import pytest

from hub.event_types import event_registry
from hub.inbox import STORAGES_MOST
from hub.projections.projector import TABLES, Projector
from hub.store.rebuild import check
from tests.household import until
from tests.hub.api.scripted import SAMPLES, House, ScriptedDevice, house
from tests.hub.speaking import event, rows, say, taken


async def order(kitchen: House, hashed: str, **more: Any) -> dict[str, Any]:
    async with kitchen.client() as http:
        body = kitchen.household.request("lentil-soup", hashed, **more)
        answer = await http.post("/v1/executions", json=body)
    assert answer.status_code == 202, answer.text
    status: dict[str, Any] = answer.json()
    return status


async def with_recipe(kitchen: House, declared: dict[str, Any] | None = None, **first: Any) -> str:
    copy = json.loads(json.dumps(SAMPLES["recipes"]["lentil-soup"]))
    copy.pop("hash", None)
    copy["safety"]["allergens"].update(declared or {})
    copy["ingredients"][0].update(first)
    async with kitchen.client() as http:
        answer = await http.post("/v1/recipes", json=copy)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["hash"])


OFFER = [{"ingredientId": "cw.ing.olive_oil"}]
CASES: tuple[tuple[str, dict[str, Any], list[str], str | None], ...] = (
    ("declared", {"declared": {"eu14": ["milk"]}}, ["milk"], "eu14"),
    ("may contain", {"declared": {"mayContain": ["sesame"]}}, ["sesame"], "mayContain"),
    ("an ingredient's own", {"allergens": ["celery"]}, ["celery"], "ingredient oil"),
    ("by nature", {"ingredientId": "cw.ing.butter"}, ["milk"], "cw.ing.butter"),
    ("a substitute is offered", {"allergens": ["fish"], "substitutions": OFFER}, ["fish"], "ingredient oil"),
    ("a name nobody knows", {}, ["moonlight"], "unknown_allergen"),
    ("another allergen", {"declared": {"eu14": ["milk"]}}, ["fish"], None),
)


@pytest.mark.parametrize(
    ("change", "blocks", "where"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_the_hub_refuses_what_the_diners_must_not_meet(
    shared: House, change: dict[str, Any], blocks: list[str], where: str | None
) -> None:
    status = await order(shared, await with_recipe(shared, **change), allergenBlocks=blocks)
    if where is None:
        assert status["state"] == "accepted"
    else:
        assert (status["state"], status["refusal"]["reason"]) == ("refused", "allergen_block")
        assert where in status["refusal"]["detail"]


def stock(name: str, items: Any, time: str = "2026-01-01T12:00:00Z", **more: Any) -> dict[str, Any]:
    return event("hob", name, "inventory.changed", {"items": items, **more}, time=time)


TAHINI = [{"name": "tahini", "allergens": ["sesame"], "qty": 2}]


async def test_what_a_device_has_in_store_refuses_until_it_says_otherwise(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        soup = kitchen.recipes["lentil-soup"]

        async def refused() -> bool:
            status = await order(kitchen, soup, allergenBlocks=["sesame"])
            return bool(status["state"] == "refused" and status["refusal"]["reason"] == "allergen_block")

        assert not await refused()
        await say(kitchen, "hob", [stock("s-1", TAHINI, "2026-01-01T12:00:00Z", storage="cupboard")])
        await taken(kitchen.household, "s-1")
        assert await refused()
        # Another storage, and an older word on the same one, take nothing away.
        await say(kitchen, "hob", [stock("s-2", [], "2026-01-01T13:00:00Z", storage="fridge")])
        await say(kitchen, "hob", [stock("s-3", [], "2026-01-01T11:00:00Z", storage="cupboard")])
        await taken(kitchen.household, "s-2", "s-3")
        assert await refused()
        # Without a block nothing is refused.
        assert (await order(kitchen, soup))["state"] == "accepted"
        await say(
            kitchen, "hob", [stock("s-4", [{"name": "rice"}], "2026-01-01T14:00:00Z", storage="cupboard")]
        )
        await taken(kitchen.household, "s-4")
        assert not await refused()
        # The blocks go to the device with the start: it looks at its own store.

        async def forwarded() -> bool:
            return any(start.allergen_blocks == ["sesame"] for start in hob.starts)

        await until(forwarded)
        household = kitchen.household
    projector = Projector(household.settings.kitchen, event_registry())
    assert check(household.folder.database, projector.replay, TABLES).ok
    assert rows(household, "SELECT count(*) FROM inventory") == [(2,)]


async def test_an_ingredient_in_store_counts_by_nature_and_goes_with_its_device(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedDevice("hob"), ScriptedDevice("other")) as kitchen:
        await say(kitchen, "hob", [stock("s-1", [{"ingredientId": "cw.ing.egg_chicken_large"}])])
        await taken(kitchen.household, "s-1")
        soup = kitchen.recipes["lentil-soup"]
        assert (await order(kitchen, soup, allergenBlocks=["eggs"]))["refusal"]["reason"] == "allergen_block"
        async with kitchen.client() as http:
            assert (await http.delete("/v1/devices/hob")).status_code == 204
        assert (await order(kitchen, soup, allergenBlocks=["eggs"]))["state"] == "accepted"


async def test_a_device_cannot_fill_the_hub_with_storages_nor_hide_what_it_said(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        many = [stock(f"s-{number}", TAHINI, storage=f"box-{number}") for number in range(STORAGES_MOST + 5)]
        bad = [stock("b-1", [{"qty": 1}]), stock("b-2", "all"), stock("b-3", [{"name": 5}])]
        last = [stock("s-last", TAHINI, "2026-01-02T12:00:00Z", storage="box-0")]
        await say(kitchen, "hob", [*many, *bad, *last])
        await taken(kitchen.household, "s-last")
        assert rows(kitchen.household, "SELECT count(*) FROM inventory") == [(STORAGES_MOST,)]
        async with kitchen.client() as http:
            counters = (await http.get("/v1/quarantine")).json()["counters"]
        assert counters["quota"] == 5
        assert sum(counters.values()) == 8
