"""People, devices, mandates, recipes: who comes, who goes, what is kept of their secrets (DESIGN §8)."""

import json
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from adapters.protocol import DeviceUnreachable
from mandates.keys import PrivateKey
from tests.household import OWNER, found_household, running_hub
from tests.hub.api.scripted import SAMPLES, ScriptedDevice, Scripts, house
from tests.hub.api.test_authority import is_problem, person
from tests.hub.api.test_stop import cooking, stop


async def test_a_device_with_work_stays_and_one_without_goes_with_its_token(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        token = json.loads((kitchen.household.folder.root / "hob.pairing.json").read_bytes())["token"]
        execution = await cooking(kitchen)
        conflict = is_problem(await http.delete("/v1/devices/hob"), 409)
        assert execution in conflict["detail"]
        assert len((await http.get("/v1/devices")).json()["devices"]) == 1
        await stop(kitchen, execution)
        assert (await http.delete("/v1/devices/hob")).status_code == 204
        assert (await http.get("/v1/devices")).json() == {"devices": []}
        is_problem(await http.delete("/v1/devices/hob"), 404)
        async with kitchen.client(token) as device:
            is_problem(await device.get(f"/v1/recipes/{kitchen.recipes['koshari']}"), 401)


async def test_an_order_cannot_slip_in_while_its_device_is_removed(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        answers: dict[str, Any] = {}

        async def order() -> None:
            answers["order"] = await http.post("/v1/executions", json=kitchen.order())

        async def remove() -> None:
            answers["remove"] = await http.delete("/v1/devices/hob")

        for _ in range(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(order)
                tasks.start_soon(remove)
            state = answers["order"].json()["state"]
            if answers["remove"].status_code == 204:
                assert state == "refused", "work was taken on for a device that is gone"
                await http.post("/v1/devices", json={"name": "hob", "url": hob.url})
            else:
                assert answers["remove"].status_code == 409
                await stop(kitchen, answers["order"].json()["id"])


async def test_a_pairing_is_shown_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        pairing = json.loads((kitchen.household.folder.root / "hob.pairing.json").read_bytes())
        assert set(pairing) == {"kitchen", "device", "token", "hubToken", "hubUrl", "broker"}
        agent_token, _ = await kitchen.household.add_agent("agent:planner")
        bens = await person(kitchen, "person:ben")
        for path in ("/v1/devices", "/v1/people", "/v1/mandates", "/v1/recipes", "/v1/refusals"):
            text = (await http.get(path)).text
            for secret in (pairing["token"], pairing["hubToken"], agent_token, bens):
                assert secret not in text
        is_problem(await http.post("/v1/devices", json={"name": "hob", "url": hob.url}), 409)
        secrets = {
            "the owner's token": kitchen.household.token,
            "a person's token": bens,
            "an agent's token": agent_token,
            "a device's token": pairing["token"],
            "the hub's token for a device": pairing["hubToken"],
        }
        kept = b"".join(path.read_bytes() for path in kitchen.household.folder.root.glob("*.db*"))
        kept += b"".join(path.read_bytes() for path in kitchen.household.folder.root.glob("*.sqlite*"))
        assert b"agent:planner" in kept, "or the database was not read at all"
        for whose, secret in secrets.items():
            assert secret.encode() not in kept, whose


async def test_nobody_else_can_read_the_hubs_files(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        await kitchen.household.add_agent("agent:planner")
        root = kitchen.household.folder.root
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        assert stat.S_IMODE(kitchen.household.folder.secrets.stat().st_mode) == 0o700
        secrets = list(kitchen.household.folder.secrets.iterdir())
        assert len(secrets) >= 4
        for path in (*secrets, kitchen.household.folder.database):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


async def test_the_last_owner_stays_and_a_person_goes_with_her_token(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen, kitchen.client() as http:
        is_problem(await http.delete(f"/v1/people/{OWNER}"), 409)
        bens = await person(kitchen, "person:ben", "owner")
        caras = await person(kitchen, "person:cara")
        is_problem(await http.post("/v1/people", json={"id": "person:ben"}), 409)
        async with kitchen.client(caras) as hers:
            assert (await hers.get("/v1/people")).status_code == 200
            is_problem(await hers.delete("/v1/people/person:ben"), 403)
        async with kitchen.client(bens) as his:
            assert (await his.delete(f"/v1/people/{OWNER}")).status_code == 204
            is_problem(await http.get("/v1/people"), 401)
            is_problem(await his.delete("/v1/people/person:ben"), 409)
            assert (await his.delete("/v1/people/person:cara")).status_code == 204
            is_problem(await his.delete("/v1/people/person:cara"), 404)
            async with kitchen.client(caras) as hers:
                is_problem(await hers.get("/v1/people"), 401)
            found = (await his.get("/v1/people")).json()["people"]
            assert found == [{"id": "person:ben", "role": "owner", "keys": []}]


async def test_with_a_person_go_the_mandates_she_signed_and_no_others(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen:
        annas, _ = await kitchen.household.add_agent("agent:planner")
        bens_token = await person(kitchen, "person:ben", "owner")
        async with kitchen.client(bens_token) as his, kitchen.client(annas) as agent:
            assert (await agent.get("/v1/needs")).status_code == 200
            await person(kitchen, "person:cara")
            assert (await his.delete("/v1/people/person:cara")).status_code == 204
            assert (await agent.get("/v1/needs")).status_code == 200
            assert (await his.delete(f"/v1/people/{OWNER}")).status_code == 204
            is_problem(await agent.get("/v1/needs"), 401)
            assert (await his.get("/v1/mandates")).json() == {"mandates": []}


async def test_two_owners_who_remove_each_other_at_once_leave_one(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen:
        bens = await person(kitchen, "person:ben", "owner")
        async with kitchen.client() as anna, kitchen.client(bens) as ben:
            codes: list[int] = []

            async def remove(who: Any, whom: str) -> None:
                codes.append((await who.delete(f"/v1/people/{whom}")).status_code)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(remove, anna, "person:ben")
                tasks.start_soon(remove, ben, OWNER)
            assert codes.count(204) == 1, codes


@pytest.mark.parametrize(
    ("request_body", "status"),
    [
        ({"id": ""}, 422),
        ({"id": "   "}, 422),
        ({"id": "x" * 201}, 422),
        ({"id": "person:eve", "role": "agent"}, 400),
        ({"id": "person:eve", "role": "device"}, 400),
        ({"id": "person:eve", "admin": True}, 400),
        ({"role": "person"}, 400),
        ({"id": "hob"}, 409),
        ({"id": "agent:known"}, 422),
        ({"id": "agent:nobody-yet"}, 422),
    ],
)
async def test_a_person_needs_a_name_of_her_own(
    tmp_path: Path, request_body: dict[str, Any], status: int
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        await kitchen.household.add_agent("agent:known")
        is_problem(await http.post("/v1/people", json=request_body), status)
        assert [one["id"] for one in (await http.get("/v1/people")).json()["people"]] == [OWNER]


async def test_a_persons_key_is_hers_and_its_kid_is_taken_once(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen, kitchen.client() as http:
        now = kitchen.household.clock.wall()
        key = PrivateKey.from_seed(b"k" * 32, kid="key-1")
        mine = msgspec.to_builtins(key.record(actor="person:ben", valid_from=now))
        other = msgspec.to_builtins(key.record(actor="person:cara", valid_from=now))
        is_problem(await http.post("/v1/people", json={"id": "person:ben", "publicKey": other}), 422)
        assert (
            await http.post("/v1/people", json={"id": "person:ben", "publicKey": mine})
        ).status_code == 201
        is_problem(await http.post("/v1/people", json={"id": "person:cara", "publicKey": other}), 409)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "Hob!", "url": "http://hob.invalid:9"}, 422),
        ({"name": "hub", "url": "http://hob.invalid:9"}, 422),
        ({"name": "x" * 65, "url": "http://hob.invalid:9"}, 422),
        ({"name": "hob2", "url": "ftp://hob.invalid"}, 422),
        ({"name": "hob2", "url": "http://user:pw@hob.invalid:9"}, 422),
        ({"name": "hob2", "url": "not a url"}, 422),
        ({"name": "hob2", "url": "http://[::1"}, 422),
        ({"name": "hob2", "url": "http://127.0.0.1:1"}, 502),
        ({"name": "hob2"}, 400),
        ({"name": "hob2", "url": "http://hob.invalid:9", "token": "mine"}, 400),
        ({"name": "silent", "url": "http://silent.invalid:9"}, 502),
        ({"name": "babbler", "url": "http://babbler.invalid:9"}, 422),
    ],
)
async def test_a_device_that_cannot_be_read_is_not_registered(
    tmp_path: Path, body: dict[str, Any], status: int
) -> None:
    silent, babbler = ScriptedDevice("silent"), ScriptedDevice("babbler")

    async def nobody() -> bytes:
        raise DeviceUnreachable("no route", "no")

    async def babble() -> bytes:
        return b'{"cookwala": "0.1.0", "what": []}'

    silent.on["capabilities"], babbler.on["capabilities"] = nobody, babble
    household = found_household(tmp_path / "hub")
    async with running_hub(household, seams=Scripts(silent, babbler).seams()), household.client() as http:
        is_problem(await http.post("/v1/devices", json=body), status)
        assert (await http.get("/v1/devices")).json() == {"devices": []}


async def test_of_two_who_enrol_under_one_name_at_once_one_is_told_of_the_other(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    household = found_household(tmp_path / "hub")
    async with running_hub(household, seams=Scripts(hob).seams()), household.client() as http:
        codes: list[int] = []

        async def add(path: str, body: dict[str, str]) -> None:
            codes.append((await http.post(path, json=body)).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(add, "/v1/people", {"id": "hob"})
                tasks.start_soon(add, "/v1/devices", {"name": "hob", "url": hob.url})
        assert sorted(codes) == [201, 409, 409, 409]


async def test_a_device_cannot_be_called_as_a_person_is(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    household = found_household(tmp_path / "hub")
    async with running_hub(household, seams=Scripts(hob).seams()), household.client() as http:
        assert (await http.post("/v1/people", json={"id": "hob"})).status_code == 201
        is_problem(await http.post("/v1/devices", json={"name": "hob", "url": hob.url}), 409)


async def test_a_mandate_is_registered_by_its_principal_alone_and_only_a_good_one(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        household = kitchen.household
        good = household.mandate("agent:planner", ("start_cooking",), timedelta(hours=1))
        bens = await person(kitchen, "person:ben")
        async with kitchen.client(bens) as his:
            is_problem(await his.post("/v1/mandates", json=good), 403)
        forged = {**good, "scopes": ["start_cooking", "share_data"]}
        unsigned = {name: value for name, value in good.items() if name != "signature"}
        past = household.mandate("agent:planner", ("start_cooking",), timedelta(hours=-1))
        for bad in (forged, unsigned):
            assert is_problem(await http.post("/v1/mandates", json=bad), 422)["title"] == "not_authorized"
        assert is_problem(await http.post("/v1/mandates", json=past), 422)["title"] == "mandate_scope"
        for agent in (OWNER, "hob"):
            bad = household.mandate(agent, ("start_cooking",), timedelta(hours=1))
            is_problem(await http.post("/v1/mandates", json=bad), 422)
        assert (await http.get("/v1/mandates")).json() == {"mandates": []}
        first = (await http.post("/v1/mandates", json=good)).json()
        again = (await http.post("/v1/mandates", json=good)).json()
        assert again["mandate"] == first["mandate"]
        async with kitchen.client(first["token"]) as old, kitchen.client(again["token"]) as new:
            is_problem(await old.get("/v1/needs"), 401)
            assert (await new.get("/v1/needs")).status_code == 200
        (listed,) = (await http.get("/v1/mandates")).json()["mandates"]
        assert (listed["principal"], listed["agent"]) == (OWNER, "agent:planner")


async def test_a_recipe_is_kept_byte_for_byte_under_its_hash(tmp_path: Path) -> None:
    async with house(tmp_path) as kitchen, kitchen.client() as http:
        recipe = dict(SAMPLES["recipes"]["koshari"])
        for spaced in (json.dumps(recipe, indent=4).encode(), json.dumps(recipe).encode()):
            answer = await http.post("/v1/recipes", content=spaced)
            assert answer.status_code == 201
            assert answer.json() == {"hash": kitchen.recipes["koshari"], "id": recipe["id"]}
        plain = {name: value for name, value in recipe.items() if name not in ("hash", "signature")}
        changed = json.dumps({**plain, "x-note": "ä"}, indent=4, ensure_ascii=False).encode()
        hashed = (await http.post("/v1/recipes", content=changed)).json()["hash"]
        assert hashed != kitchen.recipes["koshari"]
        assert (await http.get(f"/v1/recipes/{hashed}")).content == changed
        lies = {**recipe, "hash": "sha256:" + "0" * 64}
        assert is_problem(await http.post("/v1/recipes", json=lies), 422)["title"] == "recipe_hash_mismatch"
        is_problem(await http.post("/v1/recipes", json={**recipe, "turbo": 1}), 400)
        for wrong, reason in (
            (b'"x-size":9007199254740993', "bad_number"),
            (b'"x-size":1e400', "bad_number"),
            (b'"x-size":1,"x-size":2', "duplicate_key"),
        ):
            answer = await http.post("/v1/recipes", content=spaced.rstrip()[:-1] + b"," + wrong + b"}")
            assert is_problem(answer, 400)["title"] == reason
        is_problem(await http.get("/v1/recipes/sha256:" + "0" * 64), 404)
        listed = (await http.get("/v1/recipes")).json()["recipes"]
        assert {one["hash"] for one in listed} == {*kitchen.recipes.values(), hashed}
