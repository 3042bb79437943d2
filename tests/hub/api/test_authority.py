"""Who may ask for what, over real HTTP: rulings T1 and T5 as tables of cases."""

import json
from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest

from hub.keyfiles import make_key, read_key
from mandates.documents import KeyRecord
from mandates.keys import PrivateKey
from mandates.signature import sign_document
from tests.household import OWNER
from tests.hub.api.scripted import House

STOP = "/v1/executions/exe-none/stop"
NEEDS_A_TOKEN = [
    ("POST", "/v1/executions"),
    ("GET", "/v1/executions"),
    ("GET", "/v1/executions/exe-none"),
    ("POST", "/v1/executions/exe-none/resume"),
    ("GET", "/v1/executions/exe-none/log"),
    ("GET", "/v1/needs"),
    ("POST", "/v1/presence"),
    ("GET", "/v1/devices"),
    ("POST", "/v1/devices"),
    ("DELETE", "/v1/devices/hob"),
    ("GET", "/v1/people"),
    ("POST", "/v1/people"),
    ("DELETE", "/v1/people/person:anna"),
    ("GET", "/v1/mandates"),
    ("POST", "/v1/mandates"),
    ("DELETE", "/v1/mandates/sha256:00"),
    ("GET", "/v1/recipes"),
    ("POST", "/v1/recipes"),
    ("GET", "/v1/recipes/sha256:00"),
    ("GET", "/v1/conditions"),
    ("POST", "/v1/conditions/end"),
    ("GET", "/v1/refusals"),
    ("GET", "/v1/quarantine"),
    ("GET", "/v1/failed-logins"),
]
OPEN = [("GET", "/health"), ("GET", "/v1/capabilities"), ("GET", "/v1/safety-limits"), ("POST", STOP)]
FOR_AGENTS = {
    ("POST", "/v1/executions"),
    ("GET", "/v1/executions"),
    ("GET", "/v1/executions/exe-none"),
    ("GET", "/v1/executions/exe-none/log"),
    ("GET", "/v1/needs"),
    ("GET", "/v1/devices"),
    ("GET", "/v1/recipes"),
    ("GET", "/v1/recipes/sha256:00"),
    ("GET", "/v1/conditions"),
}
FOR_OWNERS_ONLY = {
    ("POST", "/v1/devices"),
    ("DELETE", "/v1/devices/hob"),
    ("POST", "/v1/people"),
    ("DELETE", "/v1/people/person:anna"),
    ("GET", "/v1/failed-logins"),
}


async def counted(house: House, ring: str) -> dict[str, int]:
    async with house.client() as http:
        counters: dict[str, int] = (await http.get(f"/v1/{ring}")).json()["counters"]
        return counters


def is_problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    return found


async def newest_refusal(house: House) -> dict[str, str]:
    async with house.client() as http:
        newest: dict[str, str] = (await http.get("/v1/refusals")).json()["newest"][0]
        return newest


async def person(house: House, name: str, role: str = "person", key: KeyRecord | None = None) -> str:
    """Enrol a person; her token."""
    body: dict[str, Any] = {"id": name, "role": role}
    if key is not None:
        body["publicKey"] = msgspec.to_builtins(key)
    async with house.client() as http:
        answer = await http.post("/v1/people", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])


async def device_token(house: House, name: str = "hob") -> str:
    return str(json.loads((house.household.folder.root / f"{name}.pairing.json").read_text())["token"])


async def test_who_is_enrolled_already_is_told_so_rather_than_of_her_key(shared: House) -> None:
    key = PrivateKey.from_seed(b"t" * 32, kid="key-of-tom").record(
        actor="person:tom", valid_from=shared.household.clock.wall()
    )
    await person(shared, "person:tom", key=key)
    body = {"id": "person:tom", "role": "person", "publicKey": msgspec.to_builtins(key)}
    async with shared.client() as http:
        again = is_problem(await http.post("/v1/people", json=body), 409)
        assert again["detail"] == "person:tom is enrolled already"
        assert (await http.delete("/v1/people/person:tom")).status_code == 204
        anew = await http.post("/v1/people", json={"id": "person:tom", "role": "person"})
        assert anew.status_code == 201, anew.text
        assert (await http.delete("/v1/people/person:tom")).status_code == 204


@pytest.mark.parametrize(("verb", "path"), NEEDS_A_TOKEN)
async def test_without_a_token_or_with_an_unknown_one_nothing_but_the_open_door_opens(
    shared: House, verb: str, path: str
) -> None:
    before = await counted(shared, "failed-logins")
    async with shared.client(None) as http:
        none = await http.request(verb, path, content=b"{}")
        unknown = await http.request(verb, path, content=b"{}", headers={"Authorization": "Bearer wrong"})
        basic = await http.request(verb, path, headers={"Authorization": "Basic YTpi"})
    for answer in (none, unknown, basic):
        assert is_problem(answer, 401)["title"] == "unauthorized"
        assert answer.headers["www-authenticate"].startswith("Bearer")
    after = await counted(shared, "failed-logins")
    assert after["no_token"] == before.get("no_token", 0) + 1
    assert after["unknown_token"] == before.get("unknown_token", 0) + 2


@pytest.mark.parametrize(("verb", "path"), OPEN)
async def test_what_is_open_asks_for_no_token_and_minds_no_wrong_one(
    shared: House, verb: str, path: str
) -> None:
    async with shared.client(None) as http:
        for credentials in (b"Bearer wrong", b"Basic YTpi", b"\xff\xfe", b""):
            answer = await http.request(verb, path, headers={b"authorization": credentials})
            assert answer.status_code == (404 if path == STOP else 200)


async def test_every_endpoint_refuses_every_role_it_is_not_for_and_records_it(shared: House) -> None:
    tokens = {
        "device": await device_token(shared),
        "agent": (await shared.household.add_agent("agent:everywhere"))[0],
        "person": await person(shared, "person:everywhere"),
    }
    for verb, path in NEEDS_A_TOKEN:
        for role, token in tokens.items():
            mine = {
                "device": path.startswith("/v1/recipes/"),
                "agent": (verb, path) in FOR_AGENTS,
                "person": (verb, path) not in FOR_OWNERS_ONLY,
            }[role]
            before = await counted(shared, "refusals")
            async with shared.client(token) as http:
                answer = await http.request(verb, path)
            if mine:
                assert answer.status_code not in (401, 403), (role, verb, path, answer.text)
                continue
            assert is_problem(answer, 403)["title"] == "not_authorized", (role, verb, path)
            after = await counted(shared, "refusals")
            assert after["not_authorized"] == before.get("not_authorized", 0) + 1, (role, verb, path)
            assert role in (await newest_refusal(shared))["detail"]


async def test_a_devices_token_fetches_recipes_and_nothing_else(shared: House) -> None:
    async with shared.client(await device_token(shared)) as http:
        recipe = await http.get(f"/v1/recipes/{shared.recipes['koshari']}")
        assert recipe.status_code == 200
        is_problem(await http.get("/v1/recipes"), 403)
        order = shared.order(requestedBy="hob")
        is_problem(await http.post("/v1/executions", json=order), 403)
    assert not any(start.requested_by == "hob" for device in shared.devices for start in device.starts)


async def ask(house: House, token: str, order: dict[str, Any]) -> httpx.Response:
    async with house.client(token) as http:
        return await http.post("/v1/executions", json=order)


async def test_an_agent_under_a_good_mandate_is_served_and_the_same_mandate_serves_many(
    shared: House,
) -> None:
    token, mandate = await shared.household.add_agent("agent:planner")
    for _ in range(3):
        order = shared.order(requestedBy="agent:planner", mandate=mandate)
        answer = await ask(shared, token, order)
        assert answer.status_code == 202, answer.text
        assert answer.json()["state"] == "accepted"
        async with shared.client() as http:
            await http.post(f"/v1/executions/{answer.json()['id']}/stop")


def by(mandate: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**mandate, **changes}


async def test_a_mandate_that_is_missing_forged_or_of_the_wrong_hand_is_refused_as_not_authorized(
    shared: House,
) -> None:
    house, household = shared, shared.household
    now, clock, ids = household.clock.wall(), household.clock, household.ids
    token, good = await household.add_agent("agent:table")
    hour = now + timedelta(hours=1)
    bare = {name: value for name, value in good.items() if name != "signature"}
    owner_key = read_key(household.folder, OWNER)
    stranger = PrivateKey.from_seed(b"s" * 32, kid="did:web:stranger#1")
    make_key(household.folder, "person:ben", clock, ids)
    ben = read_key(household.folder, "person:ben")
    await person(house, "person:ben", key=ben.record(actor="person:ben", valid_from=now))
    make_key(household.folder, "person:gone", clock, ids)
    gone = read_key(household.folder, "person:gone")
    await person(house, "person:gone", key=gone.record(actor="person:gone", valid_from=now))
    async with house.client() as http:
        assert (await http.delete("/v1/people/person:gone")).status_code == 204
    hob = house.devices[0].key
    signature = dict(good["signature"])
    cases: dict[str, tuple[Any, str]] = {
        "missing": (None, "mandate_missing"),
        "unsigned": (bare, "unsigned"),
        "forged: more scopes": (by(good, scopes=["start_cooking", "change_settings"]), "bad_signature"),
        "forged: later expiry": (by(good, expires="2099-01-01T00:00:00Z"), "bad_signature"),
        "forged: another's signature bytes": (
            by(good, signature={**signature, "sig": "A" * 86}),
            "bad_signature",
        ),
        "forged: signed before the key was": (
            by(good, signature={**signature, "signedAt": "2001-01-01T00:00:00Z"}),
            "key_not_valid_at_signing_time",
        ),
        "an unknown key": (sign_document(bare, stranger, signed_at=now), "unknown_key"),
        "an unenrolled did:web principal": (
            sign_document(by(bare, principal="did:web:stranger"), stranger, signed_at=now),
            "unknown_key",
        ),
        "a removed person": (
            sign_document(by(bare, principal="person:gone"), gone, signed_at=now),
            "unknown_key",
        ),
        "the wrong owner: Ben signs for Anna": (sign_document(bare, ben, signed_at=now), "wrong_owner"),
        "the wrong owner: Anna signs for Ben": (
            sign_document(by(bare, principal="person:ben"), owner_key, signed_at=now),
            "wrong_owner",
        ),
        "a device's key": (sign_document(by(bare, principal="hob"), hob, signed_at=now), "device_key"),
        "another mandate than the token's": (
            sign_document(
                by(bare, expires=hour.isoformat().replace("+00:00", "Z"), agentInfo={"vendor": "x"}),
                owner_key,
                signed_at=now,
            ),
            "other_mandate",
        ),
    }
    for name, (mandate, reason) in cases.items():
        order = house.order(requestedBy="agent:table")
        if mandate is not None:
            order["mandate"] = mandate
        answer = await ask(house, token, order)
        assert answer.status_code == 202, (name, answer.text)
        status = answer.json()
        assert (status["state"], status["refusal"]["reason"]) == ("refused", "not_authorized"), name
        assert status["refusal"]["detail"].startswith(f"{reason}:"), (name, status["refusal"])
        newest = await newest_refusal(house)
        assert (newest["reason"], newest["source"]) == ("not_authorized", "agent:table"), name
    assert not any(one.requested_by == "agent:table" for device in house.devices for one in device.starts)


async def test_the_wrong_scope_is_refused_as_mandate_scope(shared: House) -> None:
    token, mandate = await shared.household.add_agent("agent:reader", scopes=("search_recipes",))
    answer = await ask(shared, token, shared.order(requestedBy="agent:reader", mandate=mandate))
    assert answer.status_code == 202
    assert answer.json()["state"] == "refused"
    assert answer.json()["refusal"]["reason"] == "mandate_scope"
    assert (await newest_refusal(shared))["reason"] == "mandate_scope"


async def test_an_expired_mandate_is_refused_as_mandate_scope(shared: House) -> None:
    token, mandate = await shared.household.add_agent("agent:brief", lasts=timedelta(seconds=1))
    order = shared.order(requestedBy="agent:brief", mandate=mandate)
    while shared.household.clock.wall().isoformat() < mandate["expires"].replace("Z", "+00:00"):
        await shared.household.clock.sleep(0.1)
    answer = await ask(shared, token, order)
    assert answer.status_code == 202
    assert answer.json()["refusal"]["reason"] == "mandate_scope"
    assert "expired" in answer.json()["refusal"]["detail"]


@pytest.mark.parametrize(
    ("agent_of_the_token", "requested_by", "agent_of_the_mandate"),
    [
        ("agent:a", "agent:b", "agent:a"),
        ("agent:a", "agent:b", "agent:b"),
        ("agent:a", OWNER, "agent:a"),
        ("agent:a", "agent:a", "agent:b"),
    ],
)
async def test_an_agent_that_is_not_who_the_request_or_the_mandate_says_gets_403_recorded(
    shared: House, agent_of_the_token: str, requested_by: str, agent_of_the_mandate: str
) -> None:
    token, _ = await shared.household.add_agent(agent_of_the_token)
    mandate = shared.household.mandate(agent_of_the_mandate, ("start_cooking",), timedelta(hours=1))
    before = await counted(shared, "refusals")
    answer = await ask(shared, token, shared.order(requestedBy=requested_by, mandate=mandate))
    assert is_problem(answer, 403)["title"] == "not_authorized"
    assert (await counted(shared, "refusals"))["not_authorized"] == before.get("not_authorized", 0) + 1


async def test_a_person_orders_for_herself_only(shared: House) -> None:
    token = await person(shared, "person:cara")
    answer = await ask(shared, token, shared.order(requestedBy=OWNER))
    assert is_problem(answer, 403)["title"] == "not_authorized"


async def test_a_request_id_is_good_for_one_key_and_one_principal(shared: House) -> None:
    first = shared.order()
    async with shared.client() as http:
        accepted = await http.post("/v1/executions", json=first)
        assert accepted.json()["state"] == "accepted"
        again = await http.post("/v1/executions", json={**first, "idempotencyKey": "another-key-1"})
        assert again.status_code == 202
        assert again.json()["state"] == "refused"
        assert again.json()["refusal"]["reason"] == "not_authorized"
        await http.post(f"/v1/executions/{accepted.json()['id']}/stop")
    token, mandate = await shared.household.add_agent("agent:copycat")
    copied = {**first, "requestedBy": "agent:copycat", "mandate": mandate}
    other = await ask(shared, token, copied)
    assert (other.json()["state"], other.json()["refusal"]["reason"]) == ("refused", "not_authorized")
    assert sum(start.id.startswith(accepted.json()["id"]) for d in shared.devices for start in d.starts) <= 1


async def test_the_token_of_a_revoked_mandate_opens_nothing(shared: House) -> None:
    token, mandate = await shared.household.add_agent("agent:revoked")
    async with shared.client() as http:
        listed = (await http.get("/v1/mandates")).json()["mandates"]
        (hashed,) = [one["hash"] for one in listed if one["agent"] == "agent:revoked"]
        assert (await http.delete(f"/v1/mandates/{hashed}")).status_code == 204
        is_problem(await http.delete(f"/v1/mandates/{hashed}"), 404)
        listed = (await http.get("/v1/mandates")).json()["mandates"]
        assert not [one for one in listed if one["agent"] == "agent:revoked"]
    async with shared.client(token) as http:
        for verb, path in NEEDS_A_TOKEN:
            is_problem(await http.request(verb, path), 401)
    is_problem(await ask(shared, token, shared.order(requestedBy="agent:revoked", mandate=mandate)), 401)


async def test_an_agent_may_neither_be_present_nor_resume_and_its_try_is_recorded(shared: House) -> None:
    token, _ = await shared.household.add_agent("agent:eager")
    async with shared.client(token) as http:
        for path, body in (
            ("/v1/presence", {"present": True}),
            ("/v1/executions/exe-none/resume", {}),
            ("/v1/conditions/end", {"device": "hob", "type": "cookwala.safety.smoke"}),
        ):
            is_problem(await http.post(path, json=body, headers={"If-Match": "0"}), 403)
            newest = await newest_refusal(shared)
            assert (newest["reason"], newest["source"]) == ("not_authorized", "agent:eager")
