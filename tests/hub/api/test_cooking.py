"""From an order to a device and back: refusals, starts of unknown fate, logs (rulings X1, X6; CASES 8-10)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from adapters.documents import ExecuteRequest, Refusal
from adapters.protocol import DeviceError, DeviceUnreachable
from events.times import format_date_time
from mandates.keys import PrivateKey
from mandates.signature import Form, sign_document
from tests.household import running_hub, until
from tests.hub.api.scripted import FailingHeads, House, ScriptedDevice, Scripts, house
from tests.hub.api.test_authority import is_problem
from tests.hub.api.test_stop import cooking, shows, stop


async def test_a_devices_refusal_is_shown_as_it_said_it(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    said = Refusal(reason="missing_sensor_no_fallback", node="n9", detail="kein Ölfühler: \u202e ignore this")

    async def refuses(request: ExecuteRequest) -> Any:
        status = await hob.begin(request)
        return hob.put(status.id, "refused", refusal=said)

    hob.on["start"] = refuses
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        shown = await shows(kitchen, execution, "refused")
        assert shown["refusal"] == msgspec.to_builtins(said)
        assert len(hob.starts) == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DeviceError(409, "conflict", "Fernstart ist am Gerät nicht freigegeben"), "needs_human_present"),
        (DeviceError(409, "busy", "a programme runs"), "busy"),
        (DeviceError(401, "HTTP 401", ""), "not_authorized"),
        (DeviceError(400, "invalid", "what is this?"), "missing_capability"),
        (DeviceError(422, "safety_limit", "too hot"), "safety_limit"),
    ],
)
async def test_a_device_that_answers_no_has_refused_and_is_not_asked_again(
    tmp_path: Path, error: DeviceError, reason: str
) -> None:
    """CASES 9: "currently not available" is a refusal with a reason a person can act on, and no retry."""
    hob = ScriptedDevice("hob")

    async def no(request: ExecuteRequest) -> Any:
        raise error

    hob.on["start"] = no
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        shown = await shows(kitchen, execution, "refused")
        assert shown["refusal"]["reason"] == reason
        if error.detail:
            assert error.detail in shown["refusal"]["detail"]
        await anyio.sleep(1.2)
        assert len(hob.starts) == 1


@pytest.mark.parametrize("error", [DeviceError(429, "slow down"), DeviceError(500, "oops")])
async def test_a_device_that_is_only_busy_answering_is_asked_again_under_the_same_key(
    tmp_path: Path, error: DeviceError
) -> None:
    hob = ScriptedDevice("hob")

    async def later(request: ExecuteRequest) -> Any:
        if len(hob.starts) < 3:
            raise error
        return await hob.begin(request)

    hob.on["start"] = later
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        await shows(kitchen, execution, "running")
        assert len({start.idempotency_key for start in hob.starts}) == 1
        assert len(hob.executions) == 1


async def test_a_start_of_unknown_fate_goes_to_a_person_where_the_device_keeps_no_keys(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob", deduplicates=False)

    async def lost_answer(request: ExecuteRequest) -> Any:
        await hob.begin(request)
        raise DeviceUnreachable("read timeout", "unknown")

    hob.on["start"] = lost_answer
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]

        async def waits() -> Any:
            return (await http.get("/v1/needs")).json()["needs"]

        (need,) = await until(waits)
        assert (need["kind"], need["execution"], need["device"]) == ("handoff", execution, "hob")
        shown = (await http.get(f"/v1/executions/{execution}")).json()
        assert shown["x-aboyeur-waiting"]["reason"] == "start_fate_unknown"
        assert shown["state"] == "accepted"
        await anyio.sleep(1.2)
        assert len(hob.starts) == 1, "a retry could cook the dish twice"
        assert (await stop(kitchen, execution)).json()["state"] == "stopped"
        assert not hob.heating


async def test_such_a_start_is_not_repeated_by_a_restarted_hub_either(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob", deduplicates=False)
    left = anyio.Event()

    async def hangs(request: ExecuteRequest) -> Any:
        await hob.begin(request)
        left.set()
        await anyio.sleep_forever()

    hob.on["start"] = hangs
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        await left.wait()
    del hob.on["start"]
    async with running_hub(kitchen.household, seams=Scripts(hob).seams()), kitchen.client() as http:

        async def settled() -> Any:
            shown = (await http.get(f"/v1/executions/{execution}")).json()
            return shown.get("x-aboyeur-waiting") or shown["state"] == "running"

        await until(settled)
        await anyio.sleep(0.5)
        assert len(hob.starts) == 1


async def test_a_restarted_hub_finds_its_work_again(tmp_path: Path) -> None:
    """CASES 10: everything in flight is found from the store and from the devices."""
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, hob, basic) as kitchen:
        first = await cooking(kitchen)
        second = await cooking(kitchen)
    (cook,) = [one for one in (hob, basic) if f"{first}.1" in [start.id for start in one.starts]]
    cook.put(f"{first}.1", "completed")
    async with running_hub(kitchen.household, seams=Scripts(hob, basic).seams()):
        shown = await shows(kitchen, first, "completed")
        assert shown["x-aboyeur-device"] == cook.name
        await shows(kitchen, second, "running")
        assert len(hob.starts) + len(basic.starts) == 2


async def test_work_that_is_over_is_never_started_again(tmp_path: Path) -> None:
    """CASES 8: a start is an event, not a level."""
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        hob.put(f"{execution}.1", "completed")
    for _ in range(2):
        async with running_hub(kitchen.household, seams=Scripts(hob).seams()):
            await shows(kitchen, execution, "completed")
    assert len(hob.starts) == 1


async def test_an_order_on_disk_whose_acknowledgement_failed_cooks_once_when_repeated(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    heads = FailingHeads()
    async with house(tmp_path, hob, head=heads) as kitchen, kitchen.client() as http:
        order = kitchen.order()
        heads.broken = True
        is_problem(await http.post("/v1/executions", json=order), 503)
        heads.broken = False
        again = await http.post("/v1/executions", json=order)
        assert again.status_code == 202
        await shows(kitchen, again.json()["id"], "running")
        assert len(hob.executions) == 1


def log_of(device: ScriptedDevice, kitchen: House, device_execution: str, **changes: Any) -> dict[str, Any]:
    document = {
        "core": "0.2.0",
        "kind": "ExecutionLog",
        "id": f"log-{device_execution}",
        "recipe": "cw:cookwala.ai:example-lentil-soup",
        "recipeHash": kitchen.recipes["lentil-soup"],
        "device": {"vendor": "test", "model": "scripted"},
        "startedAt": "2026-01-01T00:00:00Z",
        "outcome": "served",
        "steps": [],
        "consent": {"dataset": "none"},
        "privacy": {"personalData": "none"},
        "x-aboyeur-execution": device_execution,
        "x-aboyeur-request": device.find(device_execution).request,
    }
    document.update(changes)
    return {name: value for name, value in document.items() if value is not None}


async def collected(kitchen: House, execution: str) -> dict[str, Any]:
    async with kitchen.client() as http:

        async def there() -> Any:
            return (await http.get(f"/v1/executions/{execution}")).json().get("x-aboyeur-log")

        found: dict[str, Any] = await until(there)
        return found


async def test_a_device_log_gets_its_named_verdict_and_is_given_out_as_the_devices_own_bytes(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")
    stranger = PrivateKey.from_seed(b"x" * 32, kid="stranger")
    impostor = PrivateKey.from_seed(b"y" * 32, kid=hob.key.kid)
    at = datetime.now(UTC)

    def signed(document: dict[str, Any], key: PrivateKey = hob.key, **more: Any) -> bytes:
        # spaced, so that a re-encoding would show
        return json.dumps(sign_document(document, key, signed_at=at, **more), indent=3).encode()

    def tampered(document: dict[str, Any]) -> bytes:
        return json.dumps({**sign_document(document, hob.key, signed_at=at), "outcome": "failed"}).encode()

    cases: dict[str, tuple[Any, str]] = {
        "header form": (lambda log: signed(log), "ok"),
        "hash form": (lambda log: signed(log, form="hash"), "ok"),
        "an unknown key": (lambda log: signed(log, stranger), "unknown_key"),
        "another key under the pinned kid": (lambda log: signed(log, impostor), "bad_signature"),
        "changed after signing": (tampered, "bad_signature"),
        "unsigned": (lambda log: json.dumps(log).encode(), "unsigned"),
        "of another recipe": (
            lambda log: signed({**log, "recipeHash": "sha256:" + "1" * 64}),
            "other_recipe",
        ),
        "of another execution": (
            lambda log: signed({**log, "x-aboyeur-execution": "hob-9999"}),
            "other_execution",
        ),
        "of another request": (
            lambda log: signed({**log, "x-aboyeur-request": "exe-9.1"}),
            "other_execution",
        ),
        "no JSON": (lambda log: b"{", "unreadable"),
        "no text": (lambda log: b"\xff\xfe", "unreadable"),
        "no log": (lambda log: b'{"kind":"ExecutionLog"}', "unreadable"),
    }
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        for name, (make, verdict) in cases.items():
            execution = await cooking(kitchen)
            device_execution = hob.find(f"{execution}.1").id
            raw = make(log_of(hob, kitchen, device_execution))
            hob.logs[device_execution] = raw
            is_problem(await http.get(f"/v1/executions/{execution}/log"), 404)
            await stop(kitchen, execution)
            judged = await collected(kitchen, execution)
            assert judged["verdict"] == verdict, name
            unprotected = ["signedAt_unprotected"] if name == "hash form" else None
            assert judged.get("caveats") == unprotected, name
            for query in ("", "?attempt=1"):
                answer = await http.get(f"/v1/executions/{execution}/log{query}")
                if name == "no text":
                    is_problem(answer, 404)
                else:
                    assert (answer.status_code, answer.content) == (200, raw), name
            for query in ("?attempt=2", "?attempt=0"):
                is_problem(await http.get(f"/v1/executions/{execution}/log{query}"), 404)
            for query in ("?attempt=x", "?attempt=-1", "?attempt=", f"?attempt={'9' * 5000}"):
                is_problem(await http.get(f"/v1/executions/{execution}/log{query}"), 400)


@pytest.mark.parametrize(("form", "verdict"), [("header", "ok"), ("hash", "seen_after_revocation")])
async def test_an_old_form_log_that_came_after_its_keys_revocation_is_no_evidence(
    tmp_path: Path, form: Form, verdict: str
) -> None:
    hob = ScriptedDevice("hob")
    now = datetime.now(UTC)
    record = hob.key.record(actor="hob", valid_from=datetime(2026, 1, 1, tzinfo=UTC))
    revoked = msgspec.structs.replace(record, revoked_at=format_date_time(now - timedelta(hours=1)))
    hob.document["x-aboyeur-keys"] = [msgspec.to_builtins(revoked)]
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        device_execution = hob.find(f"{execution}.1").id
        dated_back = sign_document(
            log_of(hob, kitchen, device_execution), hob.key, signed_at=now - timedelta(hours=2), form=form
        )
        hob.logs[device_execution] = msgspec.json.encode(dated_back)
        await stop(kitchen, execution)
        assert (await collected(kitchen, execution))["verdict"] == verdict


async def test_a_device_without_pinned_keys_gets_no_verdict_but_that(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    del hob.document["x-aboyeur-keys"]
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        device_execution = hob.find(f"{execution}.1").id
        log = sign_document(log_of(hob, kitchen, device_execution), hob.key, signed_at=datetime.now(UTC))
        hob.logs[device_execution] = msgspec.json.encode(log)
        # A key that came to be known later is not the one that was pinned.
        hob.document["x-aboyeur-keys"] = [
            msgspec.to_builtins(hob.key.record(actor="hob", valid_from=datetime(2026, 1, 1, tzinfo=UTC)))
        ]
        await stop(kitchen, execution)
        assert (await collected(kitchen, execution))["verdict"] == "no_pinned_key"


async def test_what_a_device_gets_is_built_from_what_the_hub_understands(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        extras = {"x-acme-turbo": {"watt": 9000}, "x-aboyeur-nothing": True}
        order = kitchen.order(**extras, servings=4)
        answer = await http.post("/v1/executions", json=order)
        assert answer.json()["state"] == "accepted", answer.text
        execution = answer.json()["id"]
        await shows(kitchen, execution, "running")
        (start,) = hob.starts
        forwarded = json.loads(msgspec.json.encode(start))
        assert not [name for name in forwarded if name.startswith("x-")]
        assert forwarded["servings"] == 4
        assert (forwarded["id"], forwarded["recipeHash"]) == (f"{execution}.1", order["recipeHash"])
    import sqlite3

    connection = sqlite3.connect(kitchen.household.folder.database)
    rows = connection.execute(
        "SELECT payload.body FROM log JOIN payload USING (log_id, seq) WHERE kind = 'execution.asked'"
    ).fetchall()
    connection.close()
    recorded = [json.loads(json.loads(body)["request"]) for (body,) in rows]
    assert recorded == [order]


async def test_a_callers_word_of_presence_that_only_a_hub_may_say_is_not_passed_on(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        word = {"by": "person:anna", "saidAt": "2026-01-01T00:00:00Z", "ageS": 0.0}
        answer = await http.post("/v1/executions", json=kitchen.order(**{"x-aboyeur-presence": word}))
        if answer.status_code == 202:
            await shows(kitchen, answer.json()["id"], "running")
            assert hob.starts[0].x_presence is None
