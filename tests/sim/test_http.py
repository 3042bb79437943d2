"""The device's HTTP API over a real socket: every answer is one a client can act on, none is a 500."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from adapters.documents import ExecuteRequest, PresenceWord
from adapters.http import HttpAdapter
from adapters.protocol import DeviceError
from events import documents
from hub.http_server import serving
from safety.device_documents import Capabilities, SafetyLimits
from sim.device_api import Access, device_api
from sim.loopback import listen

TOKEN = "hub-token-of-this-test"
Benches = Callable[..., Any]


@asynccontextmanager
async def served(bench: Any) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    sock = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with (
        serving(device_api(bench.appliance, Access(TOKEN)), sock),
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=5) as client,
    ):
        yield url, client


def bearer(**more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN}", **more}


async def test_what_anybody_may_read_needs_no_token_and_is_readable(bench: Benches) -> None:
    one = bench()
    async with served(one) as (_, client):
        capabilities = await client.get("/v1/capabilities")
        limits = await client.get("/v1/safety-limits")
        health = await client.get("/health")
    read = documents.read(Capabilities, capabilities.content)
    assert read.interfaces.cookwala_http == "http://127.0.0.1:9101"
    assert read.x_keys == [one.record]
    assert read.x_start_dedup_h == 24
    assert documents.read(SafetyLimits, limits.content).id == "cookwala-default"
    assert health.json()["x-aboyeur-boot"] == one.appliance.boot
    assert {reply.headers["content-type"] for reply in (capabilities, limits, health)} == {"application/json"}


def test_the_api_leaves_the_log_as_the_command_set_it(bench: Benches) -> None:
    root = logging.getLogger()
    before, handlers = root.level, list(root.handlers)
    root.setLevel(logging.WARNING)
    try:
        device_api(bench().appliance, Access(TOKEN))
        assert (root.level, root.handlers) == (logging.WARNING, handlers)
    finally:
        root.setLevel(before)


async def test_everything_else_needs_the_hubs_token(bench: Benches) -> None:
    one = bench()
    wrong = ["Bearer wrong", "Bearer", f"Basic {TOKEN}", "Bearer \u00e4\u00e4", "", f"Bearer {TOKEN}x"]
    calls = [
        ("POST", "/v1/executions"),
        ("GET", "/v1/executions/req-1"),
        ("GET", "/v1/executions/req-1/log"),
        ("POST", "/v1/executions/req-1/resume"),
        ("POST", "/v1/presence"),
    ]
    async with served(one) as (_, client):
        for method, path in calls:
            for header in [None, *wrong]:
                headers = {} if header is None else {"Authorization": header.encode()}
                reply = await client.request(method, path, headers=headers, content=one.request("koshari"))
                assert reply.status_code == 401, (method, path, header)
                assert reply.headers["content-type"] == "application/problem+json"
                assert reply.json()["title"] == "not_authorized"
    assert one.fetched == []


async def test_a_device_without_a_pairing_takes_orders_from_nobody(bench: Benches) -> None:
    access = Access()
    assert not access.admits("Bearer ")
    assert not access.admits("Bearer None")
    assert not access.admits(None)


async def test_the_adapter_of_a_hub_cooks_stops_and_reads_a_device(bench: Benches) -> None:
    one = bench()
    async with served(one) as (url, _):
        adapter = HttpAdapter(url, TOKEN)
        try:
            request = documents.read(ExecuteRequest, one.request("koshari"))
            status = await adapter.start(request)
            assert (status.state, status.seq) == ("accepted", 0)
            assert await adapter.start(request) == status
            waiting = one.turn_until(status.id, "needs_human")
            assert (await adapter.status("req-1")).seq == waiting.seq
            with pytest.raises(DeviceError) as stale:
                await adapter.resume(status.id, waiting.seq - 1, "resume-key-1", "person:anna")
            assert stale.value.status == 412
            resumed = await adapter.resume(status.id, waiting.seq, "resume-key-2", "person:anna")
            again = await adapter.resume(status.id, waiting.seq, "resume-key-2", "person:anna")
            assert resumed.state == "running"
            assert again.id == resumed.id
            with pytest.raises(DeviceError) as early:
                await adapter.log(status.id)
            assert early.value.status == 404
            stopping = await adapter.stop("req-1", "person:anna", "enough")
            assert stopping.outcome == "stopping"
            one.turn(1)
            assert (await adapter.stop(status.id, "person:anna")).outcome == "landed"
            assert json.loads(await adapter.log("req-1"))["outcome"] == "aborted_safe"
            assert (await adapter.stop("req-unknown", "person:anna")).outcome == "landed"
            with pytest.raises(DeviceError) as nobody:
                await adapter.present(
                    PresenceWord(by="person:anna", said_at="2026-10-05T12:00:00Z", age_s=1, nonce="x")
                )
            assert (nobody.value.status, nobody.value.title) == (409, "no_question")
        finally:
            await adapter.close()


HOSTILE = {
    "not json": b"{",
    "nothing": b"",
    "5,000 deep": b"[" * 5_000 + b"]" * 5_000,
    "5,000 objects deep": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "a member twice": b'{"core":"0.2.0","core":"0.2.0"}',
    "half a surrogate": b'{"core":"\\ud800"}',
    "not UTF-8": b'{"core":"\xff"}',
    "a number": b"7",
    "a list": b"[]",
    "null": b"null",
    "a huge number": b'{"servings":1e999}',
    "an unknown member": b'{"surprise":1}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_bodies_get_a_problem_and_never_a_500(bench: Benches, body: bytes) -> None:
    one = bench()
    async with served(one) as (_, client):
        for path in ("/v1/executions", "/v1/presence"):
            reply = await client.post(path, headers=bearer(), content=body)
            assert reply.status_code == 400, reply.text
            assert reply.headers["content-type"] == "application/problem+json"
        status = await one.start("koshari")
        resume = await client.post(
            f"/v1/executions/{status.id}/resume",
            headers=bearer(**{"If-Match": "0", "Idempotency-Key": "resume-key"}),
            content=body,
        )
        assert resume.status_code == 400
        stop = await client.post(f"/v1/executions/{status.id}/stop", content=body)
    assert (stop.status_code, stop.json()["state"]) == (202, "stopped")


async def test_a_body_beyond_the_bound_is_refused_and_a_stop_does_not_care(bench: Benches) -> None:
    one = bench()
    huge = b"x" * 2_000_000
    async with served(one) as (_, client):
        reply = await client.post("/v1/executions", headers=bearer(), content=huge)
        assert reply.status_code == 413
        assert reply.headers["content-type"] == "application/problem+json"
        stop = await client.post("/v1/executions/req-9/stop", content=huge)
    assert stop.json() == {"x-aboyeur-barred": True, "execution": "req-9"}


async def test_a_stop_needs_no_body_no_header_and_not_even_a_whole_request(bench: Benches) -> None:
    one = bench()
    status = await one.start("koshari")
    one.turn(3)
    assert one.appliance.heat_w() > 0
    async with served(one) as (url, _):
        port = int(url.rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            # The body that is announced never comes.
            await stream.send(
                f"POST /v1/executions/{status.id}/stop HTTP/1.1\r\n".encode()
                + b"Host: x\r\nContent-Length: 99\r\n\r\n"
            )
            with anyio.fail_after(5):
                answer = await stream.receive()
    assert b"202" in answer.splitlines()[0]
    assert one.appliance.heat_w() == 0


async def test_an_impossible_id_is_not_found_and_nothing_is_barred(bench: Benches) -> None:
    one = bench()
    async with served(one) as (_, client):
        for ref in ("%2e%2e", "x", "a" * 200, "%00abc", "a%20b%20c"):
            reply = await client.post(f"/v1/executions/{ref}/stop")
            assert reply.status_code == 404, ref
    assert one.memory.bar_count() == 0


async def test_resume_says_which_of_its_headers_is_wrong(bench: Benches) -> None:
    one = bench()
    status = await one.start("koshari")
    path = f"/v1/executions/{status.id}/resume"
    async with served(one) as (_, client):

        async def post(where: str = path, **headers: str) -> int:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            reply = await client.post(where, headers=bearer(**named), content=b'{"by":"person:anna"}')
            return reply.status_code

        assert await post(Idempotency_Key="resume-key") == 428
        assert await post(If_Match="zero", Idempotency_Key="resume-key") == 412
        assert await post(If_Match="7", Idempotency_Key="resume-key") == 412
        assert await post(If_Match="0") == 400
        assert await post(If_Match="0", Idempotency_Key="resume-key") == 409
        waiting = one.turn_until(status.id, "needs_human")
        unknown = "/v1/executions/req-nothing/resume"
        assert await post(unknown, If_Match="0", Idempotency_Key="resume-key") == 404
        assert await post(If_Match=f'"{waiting.seq}"', Idempotency_Key="resume-key") == 202
        assert await post(If_Match=f'"{waiting.seq}"', Idempotency_Key="other-key") == 412


async def test_a_key_in_the_header_must_be_the_one_in_the_body(bench: Benches) -> None:
    one = bench()
    async with served(one) as (_, client):
        other = await client.post(
            "/v1/executions",
            headers=bearer(**{"Idempotency-Key": "another-key"}),
            content=one.request("koshari"),
        )
        same = await client.post(
            "/v1/executions",
            headers=bearer(**{"Idempotency-Key": "idempotent-1"}),
            content=one.request("koshari"),
        )
        reused = await client.post(
            "/v1/executions", headers=bearer(), content=one.request("koshari", servings=9)
        )
    assert (other.status_code, other.json()["title"]) == (400, "idempotency_key_mismatch")
    assert same.status_code == 202
    assert (reused.status_code, reused.json()["title"]) == (422, "idempotency_key_reused")


async def test_unknown_paths_and_methods_are_problems_too(bench: Benches) -> None:
    one = bench()
    async with served(one) as (_, client):
        replies = [
            await client.get("/v1/nothing"),
            await client.delete("/v1/capabilities"),
            await client.get("/v1/executions/req-nothing", headers=bearer()),
            await client.get("/v1/executions/req-nothing/log", headers=bearer()),
        ]
    assert [reply.status_code for reply in replies] == [404, 405, 404, 404]
    assert {reply.headers["content-type"] for reply in replies} == {"application/problem+json"}


async def test_a_served_device_closes_in_bounded_time_though_a_client_hangs_on(bench: Benches) -> None:
    one = bench()
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    with anyio.fail_after(6):
        async with serving(device_api(one.appliance, Access(TOKEN)), sock):
            stream = await anyio.connect_tcp("127.0.0.1", port)
            await stream.send(b"POST /v1/executions HTTP/1.1\r\nHost: x\r\n")
        await stream.aclose()
    with pytest.raises(OSError):
        await anyio.connect_tcp("127.0.0.1", port)


def test_what_is_simulated_listens_on_loopback_only() -> None:
    with pytest.raises(ValueError, match="loopback"):
        listen("0.0.0.0", 0)
