"""The HTTP adapter against a device on a real socket (Core §7; ruling X4; DESIGN §4, a stop)."""

import asyncio
import json
import socket
import time
from typing import Any

import httpx
import pytest

from adapters.documents import ExecuteRequest, PresenceWord
from adapters.http import MAX_ANSWER_BYTES, MAX_CONNECTIONS, HttpAdapter
from adapters.protocol import DeviceAdapter, DeviceError, DeviceUnreachable

TOKEN = "hub-token"
STATUS = {
    "core": "0.2.0",
    "kind": "ExecutionStatus",
    "id": "exe-1",
    "request": "req-1",
    "state": "running",
    "seq": 4,
    "updatedAt": "2026-10-05T00:00:00Z",
    "x-aboyeur-boot": "b1",
    "x-acme-mood": {"good": True},
}
REQUEST = ExecuteRequest(
    core="0.2.0",
    kind="ExecuteRequest",
    id="req-1",
    recipe="koshari",
    recipe_hash="sha256:" + "0" * 64,
    requested_by="person:anna",
    idempotency_key="attempt-0001",
)


def test_it_is_a_device_adapter() -> None:
    adapter: DeviceAdapter = HttpAdapter("http://127.0.0.1:9", TOKEN)
    assert adapter


# --- What goes over the wire ------------------------------------------------------------------------------


async def test_each_call_goes_where_the_device_api_says(wire: Any) -> None:
    async with wire.listening(wire.answer(202, STATUS)) as device:
        adapter = HttpAdapter(device.url + "/", TOKEN)
        await adapter.start(REQUEST)
        await adapter.status("req-1")
        await adapter.stop("exe-1", "person:anna", "r" * 400)
        await adapter.resume("exe-1", 7, "resume-0001", "person:anna")
        await adapter.log("exe-1")
        await adapter.present(
            PresenceWord(by="person:anna", said_at="2026-10-05T00:00:00Z", age_s=1, nonce="n")
        )
        await adapter.capabilities()
        await adapter.safety_limits()
        await adapter.close()
    start, status, stop, resume, log, present, capabilities, limits = device.heard
    assert [(h.method, h.path) for h in device.heard] == [
        ("POST", "/v1/executions"),
        ("GET", "/v1/executions/req-1"),
        ("POST", "/v1/executions/exe-1/stop"),
        ("POST", "/v1/executions/exe-1/resume"),
        ("GET", "/v1/executions/exe-1/log"),
        ("POST", "/v1/presence"),
        ("GET", "/v1/capabilities"),
        ("GET", "/v1/safety-limits"),
    ]
    for heard in (start, status, resume, log, present):
        assert heard.headers["authorization"] == f"Bearer {TOKEN}"
    for heard in (stop, capabilities, limits):
        assert "authorization" not in heard.headers
    assert start.headers["idempotency-key"] == json.loads(start.body)["idempotencyKey"] == "attempt-0001"
    assert resume.headers["if-match"] == '"7"' and resume.headers["idempotency-key"] == "resume-0001"
    assert json.loads(resume.body) == {"by": "person:anna"}
    assert len(json.loads(stop.body)["reason"]) == 300
    for heard in (start, stop, resume, present):
        assert 8 <= len(heard.headers["idempotency-key"]) <= 128


async def test_documents_come_byte_for_byte(wire: Any) -> None:
    raw = b'{ "b": 5.0,\n "a":"\xc3\xa4" }\n'
    async with wire.listening(wire.answer(200, raw)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        assert (
            await adapter.capabilities() == await adapter.safety_limits() == await adapter.log("exe-1") == raw
        )
        await adapter.close()


async def test_two_stops_of_one_execution_carry_different_keys(wire: Any) -> None:
    async with wire.listening(wire.answer(202, STATUS)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        await adapter.stop("exe-1", "person:anna")
        await adapter.stop("exe-1", "person:anna")
        await adapter.close()
    keys = {heard.headers["idempotency-key"] for heard in device.heard}
    assert len(keys) == 2


async def test_cookies_and_proxies_of_the_surroundings_have_no_say(
    wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with wire.listening(wire.answer(200, STATUS, "Set-Cookie: a=b; Path=/")) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        await adapter.status("exe-1")
        await adapter.status("exe-1")
        await adapter.close()
    assert len(device.heard) == 2 and "cookie" not in device.heard[1].headers


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://a:b@h", "http://h?x=1", "http://h#f", "unix:/x", ""]
)
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        HttpAdapter(url, TOKEN)


@pytest.mark.parametrize("token", ["a\r\nX: y", "ä", "a\x00"])
def test_a_token_that_cannot_stand_in_a_header_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="header"):
        HttpAdapter("http://127.0.0.1:9", token)


@pytest.mark.parametrize("ref", ["../../health", "a/b", "..", "", "ab", "x" * 129, "exe-1?x", "exé-1"])
async def test_a_reference_that_is_no_id_never_reaches_the_device(ref: str, wire: Any) -> None:
    async with wire.listening(wire.answer(200, STATUS)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceError) as caught:
            await adapter.status(ref)
        assert caught.value.status == 404
        assert (await adapter.stop(ref, "person:anna")).outcome == "not_found"
        await adapter.close()
    assert device.connections == 0


# --- What the device says ---------------------------------------------------------------------------------


async def test_a_status_is_read_with_our_extensions_and_over_foreign_ones(wire: Any) -> None:
    async with wire.listening(wire.answer(200, STATUS)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        status = await adapter.status("exe-1")
        await adapter.close()
    assert (status.state, status.seq, status.x_boot) == ("running", 4, "b1")


@pytest.mark.parametrize(
    ("code", "body", "outcome"),
    [
        (202, {**STATUS, "state": "stopping"}, "stopping"),
        (202, STATUS, "stopping"),
        *[(202, {**STATUS, "state": s}, "landed") for s in ("refused", "stopped", "completed", "failed")],
        (202, {"x-aboyeur-barred": True, "execution": "exe-1"}, "landed"),
        (404, {"title": "not_found"}, "not_found"),
        (404, b"<html>", "not_found"),
    ],
)
async def test_a_stop_has_landed_only_when_the_device_says_so(
    code: int, body: Any, outcome: str, wire: Any
) -> None:
    async with wire.listening(wire.answer(code, body)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        assert (await adapter.stop("exe-1", "person:anna")).outcome == outcome
        await adapter.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"stopped",
        b"{}",
        b"[]",
        b"null",
        b'{"a":1,"a":2}',
        b"[" * 5000 + b"]" * 5000,
        {**STATUS, "state": "stopped", "id": "exe-2", "request": "req-2"},
        {**STATUS, "state": "stopped", "core": "0.3.0"},
        {**STATUS, "state": "evaporated"},
        {**STATUS, "state": "stopped", "bonus": 1},
        {**STATUS, "state": "stopped", "seq": "4"},
        {"x-aboyeur-barred": True, "execution": "exe-2"},
        {"x-aboyeur-barred": "yes", "execution": "exe-1"},
        {"x-aboyeur-barred": True},
        b"x" * (MAX_ANSWER_BYTES + 1),
    ],
)
async def test_an_answer_that_cannot_be_read_is_no_answer(body: Any, wire: Any) -> None:
    async with wire.listening(wire.answer(202, body)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.stop("exe-1", "person:anna")
        assert caught.value.delivered == "unknown"
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.start(REQUEST)
        assert caught.value.delivered == "unknown"
        await adapter.close()


@pytest.mark.parametrize("code", [200, 409])
async def test_an_endless_answer_is_given_up_long_before_its_time_is(code: int, wire: Any) -> None:
    sent = 0

    async def endless(heard: Any, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(f"HTTP/1.1 {code} K\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        while True:
            writer.write(b"10000\r\n" + b"z" * 65_536 + b"\r\n")
            await writer.drain()
            sent += 65_536

    async with wire.listening(endless) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=60)
        with pytest.raises((DeviceUnreachable, DeviceError)):
            await asyncio.wait_for(adapter.capabilities(), 20)
        await adapter.close()
    assert sent < 32 * MAX_ANSWER_BYTES


async def test_a_compressed_answer_is_not_unpacked(wire: Any) -> None:
    async with wire.listening(wire.answer(200, STATUS, "Content-Encoding: gzip")) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceUnreachable):
            await adapter.capabilities()
        await adapter.close()


@pytest.mark.parametrize("code", [302, 400, 401, 404, 409, 412, 422, 428])
async def test_an_error_of_the_device_comes_with_its_own_words(code: int, wire: Any) -> None:
    problem = {"type": "about:blank", "title": "busy", "status": code, "detail": "d" * 900}
    async with wire.listening(wire.answer(code, problem, "Location: http://127.0.0.1:1/")) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceError) as caught:
            await adapter.start(REQUEST)
        await adapter.close()
    assert (caught.value.status, caught.value.title) == (code, "busy")
    assert caught.value.detail == "d" * 500
    assert len(device.heard) == 1


@pytest.mark.parametrize("body", [b"", b"\xff", [1], {"title": 5, "detail": {}}, b"y" * 100_000])
async def test_an_error_without_words_is_still_the_devices_error(body: Any, wire: Any) -> None:
    async with wire.listening(wire.answer(409, body)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceError) as caught:
            await adapter.start(REQUEST)
        await adapter.close()
    assert (caught.value.status, caught.value.title, caught.value.detail) == (409, "HTTP 409", "")


@pytest.mark.parametrize("code", [500, 502, 503])
async def test_a_device_that_broke_while_working_leaves_the_fate_unknown(code: int, wire: Any) -> None:
    async with wire.listening(wire.answer(code, {"title": "oops"})) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.start(REQUEST)
        await adapter.close()
    assert caught.value.delivered == "unknown" and "oops" in caught.value.detail


# --- No answer --------------------------------------------------------------------------------------------


async def silence(heard: Any, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def test_where_nobody_listens_nothing_was_delivered() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        adapter = HttpAdapter(f"http://127.0.0.1:{taken.getsockname()[1]}", TOKEN)
        for call in (adapter.start(REQUEST), adapter.stop("exe-1", "person:anna")):
            with pytest.raises(DeviceUnreachable) as caught:
                await call
            assert caught.value.delivered == "no"
        await adapter.close()


async def test_a_device_that_hangs_up_leaves_the_fate_unknown(wire: Any) -> None:
    async def hang_up(heard: Any, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with wire.listening(hang_up) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.start(REQUEST)
        await adapter.close()
    assert caught.value.delivered == "unknown" and len(device.heard) == 1


@pytest.mark.parametrize(
    "junk", [b"\x00\x01\x02\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 K\r\nx\r\n\r\n"]
)
async def test_what_is_not_http_is_no_answer(junk: bytes, wire: Any) -> None:
    async def reply(heard: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(junk)

    async with wire.listening(reply) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=1)
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.start(REQUEST)
        await adapter.close()
    assert caught.value.delivered == "unknown"


async def test_an_answer_drop_by_drop_ends_at_the_time_for_the_whole(wire: Any) -> None:
    async def drip(heard: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with wire.listening(drip) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=0.3)
        with pytest.raises(DeviceUnreachable) as caught:
            await asyncio.wait_for(adapter.status("exe-1"), 5)
        await adapter.close()
    assert caught.value.delivered == "unknown"


async def test_a_call_that_never_got_a_connection_was_not_delivered(wire: Any) -> None:
    async with wire.listening(silence) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=1.0)
        hung = [asyncio.create_task(adapter.status("exe-1")) for _ in range(MAX_CONNECTIONS)]
        while len(device.heard) < MAX_CONNECTIONS:
            await asyncio.sleep(0.01)
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.start(REQUEST)
        assert caught.value.delivered == "no"
        ends = await asyncio.gather(*hung, return_exceptions=True)
        await adapter.close()
    assert [getattr(end, "delivered", None) for end in ends] == ["unknown"] * MAX_CONNECTIONS
    assert all(heard.method == "GET" for heard in device.heard)


async def test_a_hundred_hung_calls_do_not_delay_a_stop(wire: Any) -> None:
    async def reply(heard: Any, writer: asyncio.StreamWriter) -> None:
        if heard.path.endswith("/stop"):
            await wire.answer(202, {**STATUS, "state": "stopped"})(heard, writer)
        else:
            await silence(heard, writer)

    async with wire.listening(reply) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=30, stop_timeout_s=2)
        hung = [asyncio.create_task(adapter.status("exe-1")) for _ in range(100)]
        while len(device.heard) < MAX_CONNECTIONS:
            await asyncio.sleep(0.01)
        begun = time.monotonic()
        outcome = (await adapter.stop("exe-1", "person:anna")).outcome
        took_s = time.monotonic() - begun
        assert outcome == "landed"
        assert sum(task.done() for task in hung) == 0, "the stop waited for the others"
        assert took_s < 2
        for task in hung:
            task.cancel()
        await asyncio.gather(*hung, return_exceptions=True)
        await adapter.close()


async def test_hung_stops_do_not_delay_another_stop(wire: Any) -> None:
    async def reply(heard: Any, writer: asyncio.StreamWriter) -> None:
        if "/exe-9/" in heard.path:
            await wire.answer(202, {**STATUS, "id": "exe-9", "state": "stopping"})(heard, writer)
        else:
            await silence(heard, writer)

    async with wire.listening(reply) as device:
        adapter = HttpAdapter(device.url, TOKEN, stop_timeout_s=20)
        hung = [asyncio.create_task(adapter.stop("exe-1", "person:anna")) for _ in range(100)]
        while len(device.heard) < 100:
            await asyncio.sleep(0.01)
        assert (await adapter.stop("exe-9", "person:anna")).outcome == "stopping"
        assert not any(task.done() for task in hung)
        for task in hung:
            task.cancel()
        await asyncio.gather(*hung, return_exceptions=True)
        await adapter.close()


async def test_each_stop_opens_a_connection_of_its_own(wire: Any) -> None:
    async with wire.listening(wire.answer(202, STATUS)) as device:
        adapter = HttpAdapter(device.url, TOKEN)
        await adapter.status("exe-1")
        for _ in range(3):
            await adapter.stop("exe-1", "person:anna")
        assert device.connections == 4
        await adapter.status("exe-1")
        assert device.connections == 4, "other calls keep theirs"
        await adapter.close()


async def test_a_cancelled_call_frees_its_place(wire: Any) -> None:
    async def reply(heard: Any, writer: asyncio.StreamWriter) -> None:
        if heard.path.endswith("/log"):
            await silence(heard, writer)
        await wire.answer(200, STATUS)(heard, writer)

    async with wire.listening(reply) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=5)
        hung = [asyncio.create_task(adapter.log("exe-1")) for _ in range(MAX_CONNECTIONS)]
        while len(device.heard) < MAX_CONNECTIONS:
            await asyncio.sleep(0.01)
        for task in hung:
            task.cancel()
        ends = await asyncio.gather(*hung, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        assert (await adapter.status("exe-1")).state == "running"
        await adapter.close()


async def test_closing_ends_calls_in_flight_and_refuses_later_ones(wire: Any) -> None:
    async with wire.listening(silence) as device:
        adapter = HttpAdapter(device.url, TOKEN, timeout_s=1.0)
        hung = asyncio.create_task(adapter.status("exe-1"))
        while not device.heard:
            await asyncio.sleep(0.01)
        await adapter.close()
        await adapter.close()
        with pytest.raises(DeviceUnreachable) as caught:
            await hung
        assert caught.value.delivered == "unknown"
        with pytest.raises(DeviceUnreachable) as caught:
            await adapter.start(REQUEST)
        assert caught.value.delivered == "no"


async def test_a_simulated_network_takes_the_place_of_sockets() -> None:
    adapter = HttpAdapter(
        "http://device",
        TOKEN,
        transport=httpx.MockTransport(lambda request: httpx.Response(200, json=STATUS)),
    )
    assert (await adapter.status("req-1")).id == "exe-1"
    await adapter.close()
