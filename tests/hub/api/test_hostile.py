"""What comes from outside may be anything: every answer is named, none is a 500 (rulings Q2, Q7)."""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest

from hub.keyfiles import read_key
from mandates.signature import sign_document
from tests.household import OWNER
from tests.hub.api.scripted import SAMPLES, House
from tests.hub.api.test_authority import is_problem

STRANGE: list[Any] = [
    None, True, 0, -1, 1e308, 2**53, 2**70, 0.5, "", " ", "x" * 5000, "\u0000", "\u202e", "é" * 300, "a\nb",
    [], {}, [[]], {"x-a": 1}, "2026-01-01T00:00:00Z", "sha256:" + "0" * 64, "0.2.7",
]  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [at] if at else []
    if isinstance(value, dict):
        for name, inner in value.items():
            found += places(inner, (*at, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            found += places(inner, (*at, number))
    return found


def mutate(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """One small change of a document: most leave it readable."""
    changed = copy.deepcopy(document)
    at = chance.choice(places(changed))
    holder: Any = changed
    for step in at[:-1]:
        holder = holder[step]
    kind = chance.choice(
        ["none", "x-", "x-", "x-", "order", "order", "space", "strange", "drop", "unknown", "twin"]
    )
    if kind == "strange":
        holder[at[-1]] = chance.choice(STRANGE)
    elif kind == "drop":
        del holder[at[-1]]
    elif kind == "twin" and isinstance(holder, list):
        holder.append(holder[at[-1]])
    elif kind in ("x-", "unknown"):
        target = holder if isinstance(holder, dict) else changed
        name = f"x-acme-{chance.randrange(9)}" if kind == "x-" else f"member{chance.randrange(9)}"
        target[name] = chance.choice(STRANGE)
    elif kind == "order":
        changed = dict(sorted(changed.items(), key=lambda item: chance.random()))
    return changed


def spoil(raw: bytes, chance: random.Random) -> bytes:
    """A change of the text: most make it unreadable."""
    at = chance.randrange(len(raw) + 1)
    return chance.choice(
        [
            lambda: raw[:at],
            lambda: raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :],
            lambda: (
                raw[:at] + chance.choice([b'"', b"{", b"]", b"\\ud800", b"\xff", b",", b"\x00"]) + raw[at:]
            ),
            lambda: b"\xef\xbb\xbf" + raw,
            lambda: raw + raw,
            lambda: raw.replace(b"{", b'{"id":"twice-1","id":"twice-2",', 1),
            lambda: raw.replace(b":", b":" + b"[" * 200 + b"1" + b"]" * 200 + b',"x-b":', 1),
            lambda: raw.replace(b'"servings": 4', b'"servings": 1e999'),
            lambda: raw.replace(b'"servings": 4', b'"servings": 1e999'),
        ]
    )()


def checked(answer: httpx.Response) -> httpx.Response:
    assert answer.status_code < 500, (answer.status_code, answer.text, answer.request.content[:2000])
    if answer.status_code >= 400:
        is_problem(answer, answer.status_code)
    return answer


async def fuzz(
    house: House,
    path: str,
    make: Callable[[random.Random], dict[str, Any]],
    *,
    finish: Callable[[dict[str, Any], random.Random], dict[str, Any]] = lambda document, chance: document,
    rounds: int = 400,
) -> tuple[Counter[int], Counter[str]]:
    chance = random.Random(path)
    codes: Counter[int] = Counter()
    titles: Counter[str] = Counter()
    async with house.client() as http:
        for _ in range(rounds):
            document = finish(mutate(make(chance), chance), chance)
            raw = json.dumps(document, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
            if chance.random() < 0.2:
                raw = spoil(raw, chance)
            answer = checked(await http.post(path, content=raw))
            codes[answer.status_code] += 1
            if answer.status_code >= 400:
                titles[answer.json()["title"]] += 1
            elif answer.json().get("refusal"):
                titles[answer.json()["refusal"]["reason"]] += 1
    readable = rounds - codes[400] - codes[413]
    assert readable >= rounds / 2, codes
    return codes, titles


async def test_mutated_orders_are_accepted_refused_or_unreadable_and_nothing_else(shared: House) -> None:
    def order(chance: random.Random) -> dict[str, Any]:
        wrong = chance.choice([{"core": "0.3.0"}, {"recipeHash": "sha256:" + "0" * 64}, *[{}] * 18])
        return shared.order(servings=4, **wrong)

    codes, titles = await fuzz(shared, "/v1/executions", order, rounds=500)
    assert set(codes) <= {202, 400, 403, 422}, codes
    accepted = codes[202] - sum(titles[one] for one in titles if one in REASONS)
    assert accepted >= 50, (codes, titles)
    seen = set(titles)
    named = {"not_json", "bad_unicode", "duplicate_key", "too_deep", "unknown_field", "invalid", "bad_number"}
    assert named <= seen, named - seen
    assert {"recipe_hash_mismatch", "unsupported_version", "not_authorized"} <= seen, titles
    async with shared.client() as http:
        for one in (await http.get("/v1/executions")).json()["executions"]:
            assert (await http.post(f"/v1/executions/{one['id']}/stop")).status_code == 202
        assert (await http.get("/v1/executions")).json() == {"executions": []}


REASONS = {
    "unsupported_version", "recipe_hash_mismatch", "missing_equipment", "missing_capability",
    "allergen_block", "missing_sensor_no_fallback", "envelope_out_of_range", "safety_limit", "mandate_scope",
}  # fmt: skip


async def test_mutated_recipes_are_kept_or_named(shared: House) -> None:
    def one(chance: random.Random) -> dict[str, Any]:
        recipe = dict(chance.choice(list(SAMPLES["recipes"].values())))
        return {name: value for name, value in recipe.items() if name not in ("hash", "signature")}

    codes, _ = await fuzz(shared, "/v1/recipes", one)
    assert set(codes) <= {201, 400, 422}, codes
    assert codes[201] >= 40, codes
    async with shared.client() as http:
        listed = (await http.get("/v1/recipes")).json()["recipes"]
        assert len(listed) > 20
        # whatever was kept can be looked for in an order
        for entry in listed[:60]:
            order = shared.order(recipe=f"cw:cookwala.ai:{entry['id']}", recipeHash=entry["hash"])
            answer = checked(await http.post("/v1/executions", json=order))
            if answer.status_code == 202 and answer.json()["state"] == "accepted":
                await http.post(f"/v1/executions/{answer.json()['id']}/stop")


async def test_mutated_mandates_are_registered_or_named(shared: House) -> None:
    household = shared.household
    key = read_key(household.folder, OWNER)

    def one(chance: random.Random) -> dict[str, Any]:
        return household.mandate(
            f"agent:{chance.randrange(1000)}", ("start_cooking", "search_recipes"), timedelta(hours=1)
        )

    def sign_again(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
        if chance.random() < 0.6:
            try:
                return sign_document(document, key, signed_at=household.clock.wall())
            except ValueError:
                return document
        return document

    codes, titles = await fuzz(shared, "/v1/mandates", one, finish=sign_again)
    assert set(codes) <= {201, 400, 403, 422}, codes
    assert codes[201] >= 40, codes
    assert {"not_authorized", "invalid", "unknown_field"} <= set(titles), titles


async def test_mutated_words_of_presence_are_taken_or_named(shared: House) -> None:
    codes, _ = await fuzz(
        shared, "/v1/presence", lambda chance: {"present": chance.random() < 0.9, "nonce": "n-1"}
    )
    assert set(codes) <= {200, 400}, codes
    assert codes[200] >= 40, codes


async def test_mutated_people_devices_and_conditions_are_taken_or_named(shared: House) -> None:
    codes, _ = await fuzz(
        shared,
        "/v1/people",
        lambda chance: {"id": f"person:{chance.randrange(10**6)}", "role": "person"},
        rounds=150,
    )
    assert set(codes) <= {201, 400, 409, 422}, codes
    assert codes[201] >= 15, codes
    codes, _ = await fuzz(
        shared,
        "/v1/conditions/end",
        lambda chance: {"device": "hob", "type": "cookwala.safety.smoke"},
        rounds=150,
    )
    assert set(codes) <= {200, 400, 404, 409, 422}, codes


async def test_mutated_stops_always_stop(shared: House) -> None:
    chance = random.Random("stop")
    async with shared.client() as http, shared.client(None) as anybody:
        for _ in range(60):
            execution = (await http.post("/v1/executions", json=shared.order())).json()["id"]
            body = {
                "core": "0.2.0",
                "kind": "StopRequest",
                "execution": execution,
                "requestedBy": "person:anna",
                "reason": "smoke",
            }
            raw = json.dumps(mutate(body, chance)).encode()
            if chance.random() < 0.5:
                raw = spoil(raw, chance)
            answer = await anybody.post(f"/v1/executions/{execution}/stop", content=raw)
            assert answer.status_code == 202, raw
            assert answer.json()["state"] == "stopped", raw
    assert not any(device.heating for device in shared.devices)


DEEP = b"[" * 5000 + b"]" * 5000
BODIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "not_json"),
    "5,000 deep": (DEEP, 400, "too_deep"),
    "5,000 deep objects": (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "too_deep"),
    "5,000 deep and cut off": (b"[" * 5000, 400, "too_deep"),
    "65 deep": (b"[" * 65 + b"]" * 65, 400, "too_deep"),
    "twice the same member": (b'{"id":"a","id":"b"}', 400, "duplicate_key"),
    "twice, once escaped": (b'{"id":"a","\\u0069d":"b"}', 400, "duplicate_key"),
    "half a surrogate pair": (b'{"id":"\\ud800"}', 400, "bad_unicode"),
    "no UTF-8": (b'{"id":"\xff"}', 400, "bad_unicode"),
    "UTF-16": ('{"id":"a"}'.encode("utf-16"), 400, ""),
    "a number beyond doubles": (b'{"servings":1e999}', 400, ""),
    "NaN": (b'{"servings":NaN}', 400, "not_json"),
    "2 MiB": (b'{"x-a":"' + b"a" * 2 * 1024 * 1024 + b'"}', 413, "too_large"),
    "a list": (b"[]", 400, "invalid"),
    "null": (b"null", 400, "invalid"),
}
DOORS = ["/v1/executions", "/v1/recipes", "/v1/mandates", "/v1/presence", "/v1/people", "/v1/devices"]


@pytest.mark.parametrize("door", DOORS)
async def test_hostile_bodies_get_their_named_error_at_every_door(shared: House, door: str) -> None:
    async with shared.client() as http:
        for name, (body, status, title) in BODIES.items():
            answer = await http.post(door, content=body)
            found = is_problem(answer, status)
            assert title in found["title"], (name, found)
            assert len(found["detail"]) < 1000, name


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/html"},
        {"Content-Type": "multipart/form-data"},
        {"Content-Type": "multipart/form-data; boundary="},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
        {"Accept": "text/html"},
        {"Cookie": "a=b; ;;; =\x7f"},
        {"Transfer-Encoding": "chunked", "Content-Type": "application/json"},
    ],
)
async def test_strange_headers_change_no_verdict_and_break_nothing(
    shared: House, door: str, headers: dict[str, str]
) -> None:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    async with shared.client() as http:
        answer = await http.post(door, content=b'{"a":1}', headers=raw)
        if answer.headers.get("content-type", "").startswith("text/plain"):
            assert answer.status_code == 400  # not HTTP any more: the server's own words
        else:
            is_problem(answer, 400)


@pytest.mark.parametrize(
    "path",
    [
        "/", "/v1", "/v1/", "//", "/v1/executions/", "/v1/executions/%ff", "/v1/executions/%00/log",
        "/%2e%2e/%2e%2e/etc", "/v1/recipes/%ff%fe", "/v1/recipes/" + "x" * 5000, "/v1/executions?state=%ff",
        "/v1/executions?state=none", "/v1/executions?state=all&state=open", "/v1/executions?=&&&",
        "/v1/executions/%ED%A0%80", "/v2/executions", "/docs", "/schema", "/schema/openapi.json",
        "/favicon.ico", "/v1/executions/exe-1/log?attempt=99999999999999999999",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "PATCH", "BREW"])
async def test_any_path_and_verb_has_a_named_answer(shared: House, verb: str, path: str) -> None:
    port = shared.household.settings.http.port
    stream = await anyio.connect_tcp("127.0.0.1", port)
    request = (
        f"{verb} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Authorization: Bearer {shared.household.token}\r\n\r\n"
    )
    raw = b""
    async with stream:
        await stream.send(request.encode())
        with anyio.fail_after(5):
            async for piece in stream:
                raw += piece
    status = int(raw.split(b" ", 2)[1])
    assert status < 500, raw[:300]
    if status >= 400:
        assert b"application/problem+json" in raw, raw[:300]


async def test_a_hub_that_met_all_this_still_cooks(shared: House) -> None:
    async with shared.client() as http:
        answer = await http.post("/v1/executions", json=shared.order())
        assert answer.json()["state"] == "accepted"
        assert (await http.post(f"/v1/executions/{answer.json()['id']}/stop")).json()["state"] == "stopped"
