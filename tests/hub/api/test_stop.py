"""Stop: whatever else is broken, it leaves for the device, and its answer is honest (rulings X1, X4)."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import pytest

from adapters.documents import ExecuteRequest
from adapters.protocol import DeviceError, DeviceUnreachable, StopAnswer
from config.settings import Forward
from hub import http_server
from hub.api import app
from hub.store.database import Store, StoreFailed
from tests.household import running_hub, until
from tests.hub.api.scripted import FailingHeads, House, ScriptedDevice, Scripts, house
from tests.hub.api.test_authority import is_problem

T = TypeVar("T")
CONTROL = "use the control on the appliance"


async def cooking(kitchen: House, recipe: str = "lentil-soup") -> str:
    """An execution that its device is at."""
    async with kitchen.client() as http:
        answer = await http.post("/v1/executions", json=kitchen.order(recipe))
        execution = str(answer.json()["id"])
        await shows(kitchen, execution, "running")
        return execution


async def shows(kitchen: House, execution: str, state: str, within_s: float = 15) -> dict[str, Any]:
    async with kitchen.client() as http:

        async def there() -> dict[str, Any] | None:
            found: dict[str, Any] = (await http.get(f"/v1/executions/{execution}")).json()
            return found if found.get("state") == state else None

        found: dict[str, Any] = await until(there, within_s)
        return found


async def stop(kitchen: House, execution: str, **more: Any) -> httpx.Response:
    async with kitchen.client(None) as http:
        return await http.post(f"/v1/executions/{execution}/stop", **more)


def stops(device: ScriptedDevice) -> list[str]:
    return [ref for verb, ref in device.said if verb == "stop"]


REQUESTS: dict[str, dict[str, Any]] = {
    "nothing at all": {},
    "an unknown token": {"headers": {"Authorization": "Bearer wrong"}},
    "a header of garbage": {"headers": {b"authorization": b"\xff\xfe", b"x-\x7e": b"\xff"}},
    "a stale If-Match and a strange key": {"headers": {"If-Match": "W/banana", "Idempotency-Key": "x"}},
    "a body that is not JSON": {"content": b"\xff\xfe{{{{", "headers": {"Content-Type": "image/png"}},
    "a body 2,000 levels deep": {"content": b"[" * 2000},
    "a body of another kind": {"content": b'{"core":"9","kind":"Nonsense","requestedBy":7,"reason":[]}'},
    "half a surrogate pair": {"content": b'{"requestedBy":"\\ud800"}'},
    "a list": {"content": b"[1]"},
    "a body of 2 MiB": {"content": b"x" * 2 * 1024 * 1024},
    "an encoding nobody has": {"content": b"\x00\x01", "headers": {"Content-Encoding": "banana"}},
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_stop_needs_no_token_no_body_and_no_headers_and_minds_no_bad_ones(
    shared: House, name: str
) -> None:
    execution = await cooking(shared)
    answer = await stop(shared, execution, **REQUESTS[name])
    assert answer.status_code == 202, answer.text
    assert (answer.json()["state"], answer.json()["x-aboyeur-stop"]["phase"]) == ("stopped", "landed")
    assert not any(device.heating for device in shared.devices)


async def test_a_stop_says_who_and_why_where_its_body_says_so(shared: House) -> None:
    execution = await cooking(shared)
    answer = await stop(shared, execution, json={"requestedBy": "person:ben", "reason": "it burns"})
    assert answer.json()["x-aboyeur-stop"] == {"phase": "landed", "by": "person:ben"}


@pytest.mark.parametrize("body", [b"", b'{"reas'])
async def test_a_stop_waits_for_no_body_that_was_announced(shared: House, body: bytes) -> None:
    execution = await cooking(shared)
    port = shared.household.settings.http.port
    stream = await anyio.connect_tcp("127.0.0.1", port)
    async with stream:
        head = f"POST /v1/executions/{execution}/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
        await stream.send(head.encode() + body)
        with anyio.fail_after(3):
            answer = await stream.receive()
    assert answer.startswith(b"HTTP/1.1 202")
    assert not any(device.heating for device in shared.devices)


async def test_a_caller_who_hangs_up_at_once_has_stopped_it(shared: House) -> None:
    execution = await cooking(shared)
    stream = await anyio.connect_tcp("127.0.0.1", shared.household.settings.http.port)
    head = f"POST /v1/executions/{execution}/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    await stream.send(head.encode())
    await stream.aclose()
    await shows(shared, execution, "stopped")


@pytest.mark.parametrize(
    "path",
    ["exe-none", "exe-%ff%fe", "..", "a%2Fb", "%00", "x" * 4000, "%F0%9F%8D%B2", "%ED%A0%80", "a/b"],
)
async def test_a_stop_of_what_is_unknown_is_404_and_names_the_control_on_the_appliance(
    shared: House, path: str
) -> None:
    stream = await anyio.connect_tcp("127.0.0.1", shared.household.settings.http.port)
    async with stream:
        await stream.send(
            f"POST /v1/executions/{path}/stop HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        with anyio.fail_after(5):
            async for piece in stream:
                answer += piece
    assert answer.startswith(b"HTTP/1.1 404"), answer[:100]
    assert b"application/problem+json" in answer
    assert CONTROL.encode() in answer


async def test_a_stop_of_what_has_ended_says_how_it_ended_and_leaves_the_device_alone(shared: House) -> None:
    execution = await cooking(shared)
    await stop(shared, execution)
    before = [len(stops(device)) for device in shared.devices]
    again = await stop(shared, execution)
    assert (again.status_code, again.json()["state"]) == (202, "stopped")
    assert [len(stops(device)) for device in shared.devices] == before


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
async def test_a_stop_goes_out_with_the_store_locked_and_is_recorded_when_it_opens(
    tmp_path: Path, lock: str
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        with closing(sqlite3.connect(kitchen.household.folder.database, isolation_level=None)) as other:
            other.execute(f"BEGIN {lock}")
            began = time.monotonic()
            answering: list[httpx.Response] = []
            async with anyio.create_task_group() as tasks:

                async def ask() -> None:
                    answering.append(await stop(kitchen, execution))

                tasks.start_soon(ask)

                async def cold() -> bool:
                    return not hob.heating

                await until(cold)
                assert time.monotonic() - began < 1, "the device had to wait for the store"
            assert time.monotonic() - began < 5
            (answer,) = answering
            assert answer.status_code == 202, answer.text
            assert answer.json()["x-aboyeur-stop"]["phase"] == "landed"
            unknown = await stop(kitchen, "exe-none")
            assert unknown.status_code == 404
            other.execute("ROLLBACK")
        assert (await shows(kitchen, execution, "stopped"))["x-aboyeur-stop"]["phase"] == "landed"


class Full:
    """A store whose disk is full while `full` is set."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.full = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self.full:
            raise StoreFailed("database or disk is full (SQLITE_FULL)")
        return await self.store.run(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self.store.read(work)


async def test_a_stop_goes_out_with_the_store_full_and_is_recorded_when_there_is_room(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")
    disks: list[Full] = []

    def fill(store: Store) -> Full:
        disks.append(Full(store))
        return disks[-1]

    async with house(tmp_path, hob, store=fill) as kitchen:
        execution = await cooking(kitchen)
        for disk in disks:
            disk.full = True
        answer = await stop(kitchen, execution)
        assert answer.status_code == 202
        assert answer.json()["x-aboyeur-stop"]["phase"] == "landed"
        assert not hob.heating
        async with kitchen.client() as http:
            order = await http.post("/v1/executions", json=kitchen.order())
            assert is_problem(order, 503)["title"] == "store_failed"
        async with kitchen.client("wrong") as http:
            is_problem(await http.get("/v1/needs"), 401)
        for disk in disks:
            disk.full = False
        await shows(kitchen, execution, "stopped")


async def test_an_unreachable_device_is_tried_again_even_while_the_store_hangs(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    released = anyio.Event()
    hanging: list[bool] = []

    class Hanging(Full):
        async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
            if hanging:
                await released.wait()
            return await self.store.run(work)

    async with house(tmp_path, hob, store=Hanging) as kitchen:
        execution = await cooking(kitchen)
        hanging.append(True)
        tries: list[str] = []

        async def fails_at_first(ref: str) -> StopAnswer:
            tries.append(ref)
            if len(tries) < 3:
                raise DeviceUnreachable("no route", "no")
            return await hob.halt(ref)

        hob.on["stop"] = fails_at_first
        try:
            answer = await stop(kitchen, execution)
            assert answer.status_code == 202

            async def cold() -> bool:
                return not hob.heating

            await until(cold, 8)
        finally:
            released.set()
            hanging.clear()
        await shows(kitchen, execution, "stopped")


async def test_a_stop_lands_before_a_starting_hub_is_ready(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
    assert hob.heating
    release = anyio.Event()

    class Slow(Full):
        async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
            await release.wait()  # as a migration of a large log, or a check of its newest part
            return await self.store.run(work)

    seams = Scripts(hob).seams(store=Slow)
    stopping, ready = anyio.Event(), anyio.Event()
    from hub.service import serve

    household = kitchen.household
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await serve(
                household.settings,
                household.clock,
                household.ids,
                stopping=stopping,
                seams=seams,
                ready=ready,
            )

        tasks.start_soon(run)
        answer: httpx.Response | None = None
        with anyio.fail_after(10):
            while answer is None:
                try:
                    answer = await stop(kitchen, execution)
                except httpx.TransportError:
                    await anyio.sleep(0.05)
        assert not ready.is_set(), "or this shows nothing"
        assert not hob.heating
        assert answer.status_code == 202
        assert answer.json()["x-aboyeur-stop"]["phase"] == "landed"
        unknown = await stop(kitchen, "exe-none")
        assert unknown.status_code == 404
        assert CONTROL in unknown.json()["detail"]
        release.set()
        with anyio.fail_after(10):
            await ready.wait()
        await shows(kitchen, execution, "stopped")
        stopping.set()


async def test_a_stop_that_comes_while_the_hub_closes_goes_out_and_is_taken_up_again(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    reached = anyio.Event()

    async def never_answers(ref: str) -> StopAnswer:
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        async with house(tmp_path, hob) as kitchen:
            execution = await cooking(kitchen)
            hob.on["stop"] = never_answers

            async def ask() -> None:
                try:
                    await stop(kitchen, execution)
                except httpx.TransportError:
                    pass  # the hub went before it could answer

            tasks.start_soon(ask)
            await reached.wait()
        del hob.on["stop"]
    assert hob.heating
    async with running_hub(kitchen.household, seams=Scripts(hob).seams()):
        await shows(kitchen, execution, "stopped")
        assert not hob.heating


async def test_a_stop_passes_a_hundred_calls_that_hang_at_the_device(tmp_path: Path) -> None:
    """Over real HTTP: the device takes every connection and answers nothing but a stop."""
    stopped = anyio.Event()
    held: list[anyio.abc.SocketStream] = []

    async def serve_one(stream: anyio.abc.SocketStream) -> None:
        held.append(stream)
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive()
        _, path, _ = head.split(b" ", 2)
        if path == b"/v1/capabilities":
            body = await hob.capabilities()
        elif path == b"/v1/safety-limits":
            body = await hob.safety_limits()
        elif path.endswith(b"/stop"):
            body = b'{"x-aboyeur-barred":true,"execution":"' + path.split(b"/")[3] + b'"}'
            stopped.set()
        else:
            await anyio.sleep_forever()
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
        await stream.send(answer % (len(body), body))
        await stream.aclose()

    hob = ScriptedDevice("hob")
    async with anyio.create_task_group() as tasks:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.start_soon(listener.serve, serve_one)
        async with house(tmp_path, changes={"forward": Forward(answer_s=30)}) as kitchen:
            await kitchen.household.pair(tmp_path, {"hob": f"http://127.0.0.1:{port}"})
            async with kitchen.client() as http:
                accepted = (await http.post("/v1/executions", json=kitchen.order())).json()
                assert accepted["state"] == "accepted"

                async def sent() -> bool:
                    return len(held) > 2

                await until(sent)
                more = [kitchen.order() for _ in range(100)]
                for order in more:
                    await http.post("/v1/executions", json=order)
                async with anyio.create_task_group() as readers:
                    for _ in range(100):
                        readers.start_soon(http.get, f"/v1/executions/{accepted['id']}")
                began = time.monotonic()
                answer = await stop(kitchen, accepted["id"])
                assert time.monotonic() - began < 2
                assert stopped.is_set()
                assert answer.json()["state"] == "stopped"
        tasks.cancel_scope.cancel()


async def test_a_hundred_hung_calls_of_one_device_do_not_hold_up_its_stop(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    hung = 0

    async def hang(*given: object) -> Any:
        nonlocal hung
        hung += 1
        await anyio.sleep_forever()

    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        hob.waits(f"{execution}.1")
        for verb in ("status", "resume", "present", "log", "start"):
            hob.on[verb] = hang
        async with anyio.create_task_group() as tasks, kitchen.client() as http:

            async def present() -> None:
                await http.post("/v1/presence", json={"present": True})

            for _ in range(100):
                tasks.start_soon(present)
            began = time.monotonic()
            answer = await stop(kitchen, execution)
            assert time.monotonic() - began < 2
            assert answer.json()["state"] == "stopped"
            tasks.cancel_scope.cancel()


async def test_a_device_that_does_not_know_it_is_not_landed_and_the_answer_says_unconfirmed(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)

        async def unknown(ref: str) -> StopAnswer:
            return StopAnswer("not_found")

        hob.on["stop"] = unknown
        answer = await stop(kitchen, execution)
        assert answer.status_code == 202
        said = answer.json()
        assert said["state"] == "running"
        assert said["x-aboyeur-stop"]["phase"] == "asked"
        assert said["x-aboyeur-stop"]["note"] == f"unconfirmed: {CONTROL}"
        tries = len(stops(hob))

        async def tried_again() -> bool:
            return len(stops(hob)) > tries

        await until(tried_again)
        del hob.on["stop"]
        assert "note" not in (await shows(kitchen, execution, "stopped"))["x-aboyeur-stop"]


@pytest.mark.parametrize(
    "trouble", [DeviceUnreachable("no route", "no"), DeviceError(409, "busy", "panel locked")]
)
async def test_a_device_out_of_reach_is_tried_until_the_stop_lands_and_callers_join_the_running_one(
    tmp_path: Path, trouble: Exception
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)

        async def fails(ref: str) -> StopAnswer:
            raise trouble

        hob.on["stop"] = fails
        answers: list[httpx.Response] = []

        async def ask() -> None:
            answers.append(await stop(kitchen, execution))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
        for answer in answers:
            assert answer.status_code == 202
            assert answer.json()["x-aboyeur-stop"]["note"] == f"unconfirmed: {CONTROL}"
        assert len(stops(hob)) <= 4, "ten callers were ten stops"
        assert hob.heating
        del hob.on["stop"]
        landed = await shows(kitchen, execution, "stopped")
        assert landed["x-aboyeur-stop"]["phase"] == "landed"
        assert not hob.heating


async def test_a_stop_of_work_that_never_left_ends_it_without_a_word_to_the_device(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    release = anyio.Event()
    async with house(tmp_path, hob) as kitchen:
        first = await cooking(kitchen)

        async def busy_reading(ref: str) -> bytes:
            await release.wait()
            return b"{}"

        # The station is at something else, so that the second order waits its turn.
        hob.on["log"] = busy_reading
        await stop(kitchen, first)

        async def collecting() -> bool:
            return ("log", "hob-0001") in hob.said

        await until(collecting)
        before = len(stops(hob))
        async with kitchen.client() as http:
            second = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        answer = await stop(kitchen, second)
        assert (answer.json()["state"], answer.json()["x-aboyeur-stop"]["phase"]) == ("stopped", "landed")
        assert answer.json()["seq"] == 2  # accepted, stop asked, stopped: one for each
        release.set()
        await anyio.sleep(0.3)
        assert len(stops(hob)) == before
        assert [start.id for start in hob.starts] == [f"{first}.1"]


@pytest.mark.parametrize("delay_s", [0.0, 0.002, 0.005, 0.01, 0.02, 0.05])
async def test_a_stop_that_races_the_start_leaves_no_device_heating(shared: House, delay_s: float) -> None:
    for _ in range(5):
        async with shared.client() as http:
            execution = (await http.post("/v1/executions", json=shared.order())).json()["id"]
            await anyio.sleep(delay_s)
            await stop(shared, execution)
            ended = await shows(shared, execution, "stopped")
            assert ended["x-aboyeur-stop"]["phase"] == "landed"
            await anyio.sleep(0.05)
            assert not any(device.heating for device in shared.devices)


async def test_a_stop_that_overtakes_a_slow_start_finds_its_bar_at_the_device(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    begin, left = anyio.Event(), anyio.Event()

    async def slow(request: ExecuteRequest) -> Any:
        left.set()
        await begin.wait()
        return await hob.begin(request)

    hob.on["start"] = slow
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        await left.wait()
        answer = await stop(kitchen, execution)
        assert answer.json()["state"] == "stopped"
        begin.set()
        await anyio.sleep(0.3)
        assert not hob.heating
        assert len(hob.starts) == 1
        assert (await shows(kitchen, execution, "stopped"))["x-aboyeur-stop"]["phase"] == "landed"


async def test_where_the_start_of_unknown_fate_arrives_late_the_stop_still_gets_it(tmp_path: Path) -> None:
    """A device that keeps no bars: 404 until the start arrives, then the stop finds it."""
    hob = ScriptedDevice("hob")
    begin, left = anyio.Event(), anyio.Event()

    async def slow(request: ExecuteRequest) -> Any:
        left.set()
        await begin.wait()
        return await hob.begin(request)

    async def no_bars(ref: str) -> StopAnswer:
        try:
            hob.find(ref)
        except DeviceError:
            return StopAnswer("not_found")
        return await hob.halt(ref)

    hob.on.update(start=slow, stop=no_bars)
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        await left.wait()
        answer = await stop(kitchen, execution)
        assert answer.json()["x-aboyeur-stop"]["note"] == f"unconfirmed: {CONTROL}"
        begin.set()
        await shows(kitchen, execution, "stopped")
        assert not hob.heating


async def test_after_a_stop_was_asked_no_start_leaves_not_even_after_a_restart(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")

    async def out_of_reach(*given: object) -> Any:
        raise DeviceUnreachable("no route", "unknown")

    hob.on.update(start=out_of_reach, stop=out_of_reach)
    async with house(tmp_path, hob) as kitchen, kitchen.client() as http:
        execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]

        async def tried() -> bool:
            return bool(hob.starts)

        await until(tried)
        answer = await stop(kitchen, execution)
        assert answer.json()["state"] == "accepted"
        starts = len(hob.starts)
        await anyio.sleep(1.2)
        assert len(hob.starts) == starts
    async with running_hub(kitchen.household, seams=Scripts(hob).seams()):
        await anyio.sleep(0.5)
        assert len(hob.starts) == starts
        hob.on.clear()
        await shows(kitchen, execution, "stopped")
        assert len(hob.starts) == starts
        assert not hob.executions


async def test_a_stop_ends_what_its_device_has_forgotten(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        hob.executions.clear()
        answer = await stop(kitchen, execution)
        assert (answer.json()["state"], answer.json()["x-aboyeur-stop"]["phase"]) == ("stopped", "landed")
        async with kitchen.client() as http:
            assert (await http.get("/v1/executions")).json() == {"executions": []}
            assert (await http.delete("/v1/devices/hob")).status_code == 204


async def test_a_log_head_that_cannot_be_written_stops_no_stop(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    heads = FailingHeads()
    async with house(tmp_path, hob, head=heads) as kitchen:
        execution = await cooking(kitchen)
        heads.broken = True
        assert (await stop(kitchen, execution)).status_code == 202
        assert not hob.heating
        heads.broken = False
        await shows(kitchen, execution, "stopped")


async def test_a_stop_finds_its_way_past_a_crowd_of_silent_connections(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        port = kitchen.household.settings.http.port
        crowd = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(http_server.CONNECTIONS_MOST + 20)]
        try:
            await crowd[-1].send(b"GET /health HT")  # one that begins and does not go on
            answer = await stop(kitchen, execution)
            assert answer.json()["state"] == "stopped"
            async with kitchen.client() as http:
                assert (await http.get("/v1/needs")).status_code == 200
        finally:
            for one in crowd:
                await one.aclose()


async def test_a_stop_finds_its_way_past_as_many_requests_as_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "REQUESTS_MOST", 30)
    hob = ScriptedDevice("hob")
    release = anyio.Event()
    hanging: list[bool] = []

    class Hanging(Full):
        async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
            if hanging:
                await release.wait()
            return await self.store.read(work)

    async with house(tmp_path, hob, store=Hanging) as kitchen:
        execution = await cooking(kitchen)
        hanging.append(True)
        answers: list[int] = []
        many = httpx.Limits(max_connections=None)
        async with kitchen.household.client(limits=many) as http, anyio.create_task_group() as tasks:

            async def ask() -> None:
                answers.append((await http.get("/v1/needs")).status_code)

            for _ in range(30 + 10):
                tasks.start_soon(ask)

            async def crowded() -> bool:
                return answers.count(503) == 10

            await until(crowded)
            assert is_problem(await http.get("/v1/needs"), 503)["title"] == "busy"
            answer = await stop(kitchen, execution)
            assert answer.status_code == 202
            assert not hob.heating
            release.set()
            hanging.clear()
        assert answers.count(200) == 30
