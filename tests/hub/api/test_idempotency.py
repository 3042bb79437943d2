"""The same request again, and changes of what somebody else changed before: ruling X5."""

from pathlib import Path

import anyio
import httpx
import pytest

from tests.household import running_hub, until
from tests.hub.api.scripted import House, ScriptedDevice, Scripts, house
from tests.hub.api.test_authority import ask, is_problem, person


async def stop(http: httpx.AsyncClient, execution: str) -> None:
    assert (await http.post(f"/v1/executions/{execution}/stop")).status_code == 202


async def test_a_replay_returns_the_first_answer_byte_for_byte_whatever_became_of_it(shared: House) -> None:
    order = shared.order()
    async with shared.client() as http:
        first = await http.post("/v1/executions", json=order)
        assert first.status_code == 202
        execution = first.json()["id"]

        async def begun() -> bool:
            return bool((await http.get(f"/v1/executions/{execution}")).json()["state"] == "running")

        await until(begun)
        again = await http.post("/v1/executions", json=order)
        assert (again.status_code, again.content) == (202, first.content)
        await stop(http, execution)
        assert (await http.post("/v1/executions", json=order)).content == first.content
        listed = (await http.get("/v1/executions?state=all")).json()["executions"]
        assert [one["id"] for one in listed if one["request"] == order["id"]] == [execution]


async def test_a_replayed_refusal_is_the_first_refusal_byte_for_byte(shared: House) -> None:
    order = shared.order(recipeHash="sha256:" + "0" * 64)
    async with shared.client() as http:
        first = await http.post("/v1/executions", json=order)
        assert first.json()["refusal"]["reason"] == "recipe_hash_mismatch"
        assert (await http.post("/v1/executions", json=order)).content == first.content


async def test_a_key_with_another_body_is_422(shared: House) -> None:
    order = shared.order(recipeHash="sha256:" + "0" * 64)
    async with shared.client() as http:
        await http.post("/v1/executions", json=order)
        other = await http.post("/v1/executions", json={**order, "servings": 3})
        assert is_problem(other, 422)["title"] == "idempotency_key_reused"


async def test_a_key_belongs_to_one_principal(shared: House) -> None:
    token = await person(shared, "person:dora")
    hers = shared.order(recipeHash="sha256:" + "0" * 64)
    his = {**shared.order(recipeHash="sha256:" + "0" * 64), "requestedBy": "person:dora"}
    his["idempotencyKey"] = hers["idempotencyKey"]
    async with shared.client() as http:
        first = await http.post("/v1/executions", json=hers)
    second = await ask(shared, token, his)
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["id"] != second.json()["id"]
    assert second.json()["refusal"]["reason"] == "recipe_hash_mismatch"


@pytest.mark.parametrize("header", ["another-key", "", "KEY"])
async def test_a_header_key_that_is_not_the_bodys_is_400(shared: House, header: str) -> None:
    order = shared.order()
    async with shared.client() as http:
        answer = await http.post("/v1/executions", json=order, headers={"Idempotency-Key": header})
        assert is_problem(answer, 400)["title"] == "idempotency_key_mismatch"
        listed = (await http.get("/v1/executions?state=all")).json()["executions"]
        assert not [one for one in listed if one["request"] == order["id"]]


async def test_a_header_key_that_is_the_bodys_is_welcome(shared: House) -> None:
    order = shared.order(recipeHash="sha256:" + "0" * 64)
    async with shared.client() as http:
        headers = {"Idempotency-Key": order["idempotencyKey"]}
        assert (await http.post("/v1/executions", json=order, headers=headers)).status_code == 202


async def test_twenty_at_once_with_one_key_make_one_execution_and_one_start(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        order = kitchen.order()
        answers: list[httpx.Response] = []

        async def post() -> None:
            answers.append(await http.post("/v1/executions", json=order))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(post)
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.content for answer in answers}) == 1

        async def begun() -> bool:
            listed = (await http.get("/v1/executions?state=all")).json()["executions"]
            return [one["state"] for one in listed] == ["running"]

        await until(begun)
        assert len(hob.starts) == 1


async def test_a_replay_after_a_restart_is_the_first_answer_and_starts_nothing(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        orders = [kitchen.order(), kitchen.order(recipeHash="sha256:" + "0" * 64)]
        first = [await http.post("/v1/executions", json=order) for order in orders]

        async def begun() -> bool:
            return len(hob.executions) == 1

        await until(begun)
    async with running_hub(kitchen.household, seams=Scripts(hob).seams()), kitchen.client() as http:
        again = [await http.post("/v1/executions", json=order) for order in orders]
        assert [one.content for one in again] == [one.content for one in first]
        assert [one.status_code for one in again] == [202, 202]
        other = await http.post("/v1/executions", json={**orders[0], "servings": 9})
        assert other.status_code == 422
        await anyio.sleep(0.3)
    assert len(hob.executions) == 1
    assert len({start.idempotency_key for start in hob.starts}) == 1


async def test_a_device_gets_one_key_for_each_attempt_and_never_the_callers(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    tries: list[str] = []

    async def fails_twice(request: object) -> object:
        from adapters.protocol import DeviceUnreachable

        tries.append(request.idempotency_key)  # type: ignore[attr-defined] # an ExecuteRequest
        if len(tries) < 3:
            raise DeviceUnreachable("no answer", "unknown")
        return await hob.begin(request)  # type: ignore[arg-type] # an ExecuteRequest

    hob.on["start"] = fails_twice
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        order = kitchen.order()
        first = (await http.post("/v1/executions", json=order)).json()["id"]

        async def begun() -> bool:
            return len(hob.executions) == 1

        await until(begun)
        assert len(tries) == 3
        assert len(set(tries)) == 1
        assert order["idempotencyKey"] not in tries
        await stop(http, first)
        await http.post("/v1/executions", json=kitchen.order())

        async def two() -> bool:
            return len(hob.executions) == 2

        await until(two)
        assert tries[3] != tries[0]
        assert len({start.id for start in hob.starts}) == 2


async def test_if_match_is_the_hubs_seq_bare_or_quoted(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")

    async def waits_at_once(request: object) -> object:
        started = await hob.begin(request)  # type: ignore[arg-type] # an ExecuteRequest
        hob.waits(started.id)
        return hob.find(started.id)

    hob.on["start"] = waits_at_once
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        for form in ("{}", '"{}"'):
            execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
            path = f"/v1/executions/{execution}"

            async def needs(path: str = path) -> int:
                now = (await http.get(path)).json()
                return int(now["seq"]) if now["state"] == "needs_human" else 0

            seq = await until(needs)
            assert seq != hob.find(f"{execution}.1").seq, "or this shows nothing of whose seq it is"
            is_problem(await http.post(f"{path}/resume"), 428)
            for wrong in (seq - 1, seq + 1, 0, 99999):
                problem = is_problem(await http.post(f"{path}/resume", headers={"If-Match": f"{wrong}"}), 412)
                assert problem["seq"] == seq
            for unreadable in ("", "*", "x", '"', "-1", "1.0", "9" * 400, f'W/"{seq}"', f'"{seq}', f'{seq}"'):
                is_problem(await http.post(f"{path}/resume", headers={"If-Match": unreadable}), 400)
            done = await http.post(f"{path}/resume", headers={"If-Match": form.format(seq)})
            assert done.status_code == 202, done.text
            assert done.json()["state"] == "running"
            assert done.json()["seq"] > seq
            assert [verb for verb, _ in hob.said].count("resume") == 1
            hob.said.clear()
            is_problem(await http.post(f"{path}/resume", headers={"If-Match": f"{seq}"}), 412)
            await stop(http, execution)


async def test_a_resume_of_what_waits_for_nobody_is_a_conflict_and_of_the_unknown_404(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        path = f"/v1/executions/{execution}"

        async def running() -> int:
            now = (await http.get(path)).json()
            return int(now["seq"]) if now["state"] == "running" else 0

        seq = await until(running)
        is_problem(await http.post(f"{path}/resume", headers={"If-Match": f"{seq}"}), 409)
        await stop(http, execution)
        ended = (await http.get(path)).json()
        assert ended["state"] == "stopped"
        is_problem(await http.post(f"{path}/resume", headers={"If-Match": f"{ended['seq']}"}), 409)
        is_problem(await http.post("/v1/executions/exe-none/resume", headers={"If-Match": "0"}), 404)
        assert not [verb for verb, _ in hob.said if verb == "resume"]


async def test_a_resume_repeated_with_its_key_is_the_first_answer_and_reaches_the_device_once(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")

    async def waits_at_once(request: object) -> object:
        started = await hob.begin(request)  # type: ignore[arg-type] # an ExecuteRequest
        hob.waits(started.id)
        return hob.find(started.id)

    hob.on["start"] = waits_at_once
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        path = f"/v1/executions/{execution}"

        async def needs() -> int:
            now = (await http.get(path)).json()
            return int(now["seq"]) if now["state"] == "needs_human" else 0

        seq = await until(needs)
        headers = {"If-Match": f"{seq}", "Idempotency-Key": "resume-once-1"}
        first = await http.post(f"{path}/resume", headers=headers, content=b"{}")
        assert first.status_code == 202
        again = await http.post(f"{path}/resume", headers=headers, content=b"{}")
        assert (again.status_code, again.content) == (202, first.content)
        is_problem(await http.post(f"{path}/resume", headers=headers, content=b'{"x-a":1}'), 422)
        assert [verb for verb, _ in hob.said].count("resume") == 1
    async with running_hub(kitchen.household, seams=Scripts(hob).seams()), kitchen.client() as http:
        again = await http.post(f"{path}/resume", headers=headers, content=b"{}")
        assert (again.status_code, again.content) == (202, first.content)
