"""What may be asked of a kitchen, and what it can: rulings D1, D3, D8, X6 and the hub's own refusals."""

import copy
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mandates.keys import PrivateKey
from tests.hub.api.scripted import SAMPLES, House, ScriptedDevice, house
from tests.hub.api.test_authority import is_problem
from tests.hub.api.test_stop import shows, stop


async def refusal(kitchen: House, order: dict[str, Any]) -> dict[str, Any]:
    async with kitchen.client() as http:
        answer = await http.post("/v1/executions", json=order)
    assert answer.status_code == 202, answer.text
    status: dict[str, Any] = answer.json()
    assert (status["kind"], status["state"], status["seq"]) == ("ExecutionStatus", "refused", 0)
    assert status["request"] == order["id"]
    found: dict[str, Any] = status["refusal"]
    return found


@pytest.mark.parametrize("version", ["0.3.0", "0.1.9", "1.0.0", "0.20.0", "2.0.2", "0.2", "next"])
async def test_another_minor_of_core_is_refused_by_its_name(shared: House, version: str) -> None:
    assert (await refusal(shared, shared.order(core=version)))["reason"] == "unsupported_version"


async def test_another_minor_may_have_members_that_this_one_lacks(shared: House) -> None:
    order = shared.order(core="0.3.0", spices=["cumin"])
    assert (await refusal(shared, order))["reason"] == "unsupported_version"


@pytest.mark.parametrize("version", ["0.2.0", "0.2.9", "0.2.10"])
async def test_every_patch_of_ours_is_spoken(shared: House, version: str) -> None:
    async with shared.client() as http:
        answer = await http.post("/v1/executions", json=shared.order(core=version))
    assert answer.json()["state"] == "accepted", answer.text
    await stop(shared, answer.json()["id"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"recipeHash": "sha256:" + "0" * 64}, "recipe_hash_mismatch"),
        ({"recipe": "cw:cookwala.ai:example-koshari"}, "recipe_hash_mismatch"),
        ({"recipe": "https://example.org/book#example-koshari"}, "recipe_hash_mismatch"),
        ({"allergenBlocks": ["moonlight"]}, "allergen_block"),
    ],
)
async def test_the_hub_refuses_what_it_cannot_stand_for(
    shared: House, changes: dict[str, Any], reason: str
) -> None:
    before = [len(device.starts) for device in shared.devices]
    assert (await refusal(shared, shared.order(**changes)))["reason"] == reason
    async with shared.client() as http:
        newest = (await http.get("/v1/refusals")).json()["newest"][0]
    assert newest["reason"] == reason
    assert [len(device.starts) for device in shared.devices] == before


@pytest.mark.parametrize(
    "recipe",
    ["example-lentil-soup", "cw:cookwala.ai:example-lentil-soup", "https://x.org/r#example-lentil-soup"],
)
async def test_a_recipe_may_be_named_in_any_form_and_no_block_is_no_block(shared: House, recipe: str) -> None:
    async with shared.client() as http:
        answer = await http.post("/v1/executions", json=shared.order(recipe=recipe, allergenBlocks=[]))
    assert answer.json()["state"] == "accepted", answer.text
    await stop(shared, answer.json()["id"])


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"turbo": True}, "$: Object contains unknown field `turbo`"),
        ({"mandate": {"principal": "a", "agent": "b", "scopes": ["start_cooking"], "turbo": 1}}, "$.mandate"),
        ({"servings": "four"}, "$.servings"),
        ({"servings": 0}, "$.servings"),
        ({"id": "a b"}, "$.id"),
        ({"id": "exe-1\n"}, "$.id"),
        ({"recipeHash": "sha256:zz"}, "$.recipeHash"),
        ({"idempotencyKey": "short"}, "$.idempotencyKey"),
        ({"requestedBy": ""}, "$.requestedBy"),
        ({"serveBy": "soon"}, "$.serveBy"),
        ({"serveBy": "2026-01-01T00:00:00"}, "$.serveBy"),
        ({"core": "0.2.x"}, "$.core"),
        ({"core": 2}, "$.core"),
        ({"kind": "StopRequest"}, "$.kind"),
    ],
)
async def test_what_the_format_does_not_allow_is_400_with_its_path(
    shared: House, changes: dict[str, Any], path: str
) -> None:
    async with shared.client() as http:
        found = is_problem(await http.post("/v1/executions", json=shared.order(**changes)), 400)
    assert path in found["detail"], found
    assert found["title"] in ("unknown_field", "invalid")


@pytest.mark.parametrize(
    "missing", ["core", "kind", "id", "recipe", "recipeHash", "requestedBy", "idempotencyKey"]
)
async def test_what_the_format_requires_must_be_there(shared: House, missing: str) -> None:
    order = shared.order()
    del order[missing]
    async with shared.client() as http:
        is_problem(await http.post("/v1/executions", json=order), 400)


async def test_a_kitchen_that_cannot_says_so_by_reason_and_step(tmp_path: Path) -> None:
    basic = ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, basic) as kitchen:
        found = await refusal(kitchen, kitchen.order("koshari"))
        assert (found["reason"], found["node"]) == ("missing_sensor_no_fallback", "n14")
        assert basic.starts == []


async def test_a_kitchen_without_devices_refuses_and_shows_no_limits(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen, kitchen.client(None) as http:
        assert (await refusal(kitchen, kitchen.order()))["reason"] == "missing_equipment"
        is_problem(await http.get("/v1/safety-limits"), 404)
        assert (await http.get("/v1/capabilities")).json()["capabilities"] == {"ops": [], "sensors": []}


async def test_a_free_device_is_chosen_before_a_busy_one(tmp_path: Path) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, hob, basic) as kitchen, kitchen.client() as http:
        used = []
        for _ in range(2):
            answer = await http.post("/v1/executions", json=kitchen.order())
            used.append((await shows(kitchen, answer.json()["id"], "running"))["x-aboyeur-device"])
        assert sorted(used) == ["basic-hob", "hob"]


async def test_capabilities_are_the_union_each_with_its_devices(shared: House) -> None:
    async with shared.client(None) as http:
        found = (await http.get("/v1/capabilities")).json()
    declared: dict[str, set[str]] = {}
    sensors: dict[str, set[str]] = {}
    for device in shared.devices:
        for op in device.document["capabilities"]["ops"]:
            declared.setdefault(op["op"], set()).add(device.name)
        for sensor in device.document["capabilities"]["sensors"]:
            sensors.setdefault(sensor["sensor"], set()).add(device.name)
    capabilities = found["capabilities"]
    assert {one["op"]: set(one["x-aboyeur-devices"]) for one in capabilities["ops"]} == declared
    assert {one["sensor"]: set(one["x-aboyeur-devices"]) for one in capabilities["sensors"]} == sensors
    assert any(len(owners) == 1 for owners in declared.values()), "or a union shows nothing"


def limits(**changes: dict[str, Any]) -> dict[str, Any]:
    pack = copy.deepcopy(SAMPLES["safetyLimits"])
    for limit in pack["limits"]:
        limit.update(changes.get(limit["id"].replace(".", "_"), {}))
    return pack


async def test_safety_limits_are_the_strictest_of_each_id_whichever_came_first(tmp_path: Path) -> None:
    strict_oil, strict_core = ScriptedDevice("hob"), ScriptedDevice("other", "demo-hob-robot-basic")
    strict_oil.limits = limits(oil_max_temp={"max": 180}, core_poultry={"min": 70}, stop_local={"max": 0.4})
    strict_core.limits = limits(oil_max_temp={"max": 195}, core_poultry={"min": 80})
    own = {
        "id": "own.limit",
        "kind": "max_temp",
        "action": "cut_heat",
        "max": 90,
        "unit": "degC",
        "source": "x",
    }
    strict_core.limits["limits"].append(own)
    async with house(tmp_path, strict_oil, strict_core) as kitchen, kitchen.client(None) as http:
        document = (await http.get("/v1/safety-limits")).json()
        found = {limit["id"]: limit for limit in document["limits"]}
        assert found["oil.max_temp"]["max"] == 180
        assert found["core.poultry"]["min"] == 80
        assert found["stop.local"]["max"] == 0.4
        assert found["own.limit"]["max"] == 90
        everything = {one["id"] for one in (*strict_oil.limits["limits"], own)}
        assert set(found) == everything
        for verb in ("POST", "PUT", "PATCH", "DELETE"):
            answer = await http.request(verb, "/v1/safety-limits", json=document)
            is_problem(answer, 405)
            assert "GET" in answer.headers["allow"]
        assert (await http.get("/v1/safety-limits")).json() == document


async def test_a_device_with_limits_of_another_core_is_not_registered(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        assert (await http.delete("/v1/devices/hob")).status_code == 204
        hob.limits = {**limits(), "core": "0.3.0", "moods": []}
        answer = await http.post("/v1/devices", json={"name": "hob", "url": hob.url})
        assert is_problem(answer, 422)["title"] == "unsupported_version"


async def test_a_devices_keys_are_pinned_when_it_is_registered(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        (listed,) = (await http.get("/v1/devices")).json()["devices"]
        assert listed["keys"] == [hob.key.kid]
        other = PrivateKey.from_seed(b"o" * 32, kid="other-key")
        record = other.record(actor="hob", valid_from=datetime(2026, 1, 1, tzinfo=UTC))
        hob.document["x-aboyeur-keys"] = [msgspec.to_builtins(record)]
        (listed,) = (await http.get("/v1/devices")).json()["devices"]
        assert listed["keys"] == [hob.key.kid]
        is_problem(await http.post("/v1/devices", json={"name": "hob", "url": hob.url}), 409)
        assert (await http.delete("/v1/devices/hob")).status_code == 204
        assert (await http.post("/v1/devices", json={"name": "hob", "url": hob.url})).status_code == 201
        (listed,) = (await http.get("/v1/devices")).json()["devices"]
        assert listed["keys"] == ["other-key"]


async def test_a_device_cannot_bring_a_key_under_a_kid_that_is_taken(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    thief = ScriptedDevice("thief")
    async with house(tmp_path, hob, thief) as kitchen, kitchen.client() as http:
        await http.delete("/v1/devices/thief")
        thief.document["x-aboyeur-keys"] = hob.document["x-aboyeur-keys"]
        is_problem(await http.post("/v1/devices", json={"name": "thief", "url": thief.url}), 409)
        assert [one["name"] for one in (await http.get("/v1/devices")).json()["devices"]] == ["hob"]


async def test_what_was_refused_by_the_hub_is_an_entry_of_the_log_too(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen:
        order = kitchen.order()
        await refusal(kitchen, order)
    connection = sqlite3.connect(kitchen.household.folder.database)
    rows = connection.execute(
        "SELECT payload.body FROM log JOIN payload USING (log_id, seq) WHERE kind = 'execution.asked'"
    ).fetchall()
    connection.close()
    (entry,) = [json.loads(body) for (body,) in rows]
    assert (entry["request_id"], entry["refusal"]["reason"]) == (order["id"], "missing_equipment")
