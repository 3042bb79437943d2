"""One device's place at the pass: starts, reads and holes, whatever a device answers or does not."""

import json
import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import pytest
from msgspec.structs import replace

from adapters.documents import ExecuteRequest, ExecutionStatus, Reading, Step
from adapters.http import HttpAdapter
from adapters.protocol import DeviceUnreachable, StopAnswer
from events.seams import SystemClock
from hub import stations
from hub.executions.model import READINGS_MOST, Attempt, Execution
from hub.store.database import Store
from tests.household import found_household, running_hub, until
from tests.hub.api.scripted import House, ScriptedDevice, Scripts, house, register
from tests.hub.api.test_stop import cooking, shows, stop
from tests.hub.speaking import alive, connected, event, rows, say, taken

T = TypeVar("T")
ENORMOUS = 10**19


async def nobody(*_: Any) -> Any:
    raise DeviceUnreachable("no route", "no")


async def order(kitchen: House) -> str:
    async with kitchen.client() as http:
        answer = await http.post("/v1/executions", json=kitchen.order())
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])


def reads(kitchen: House) -> int:
    return int(rows(kitchen.household, "SELECT count(*) FROM log WHERE kind = 'device.read'")[0][0])


def rounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often any station looked what there is to do, so far."""
    count = 0
    look = stations.Station._round

    async def counted(station: stations.Station) -> float | None:
        nonlocal count
        count += 1
        return await look(station)

    monkeypatch.setattr(stations.Station, "_round", counted)
    return lambda: count


# --- Answers that nobody can make anything of -----------------------------------------------------------


@pytest.mark.parametrize("verb", ["start", "status", "stop", "resume"])
async def test_a_status_with_a_number_beyond_all_numbers_is_no_answer_that_counts(verb: str) -> None:
    def answers(request: httpx.Request) -> httpx.Response:
        status = {
            "core": "0.2.0",
            "kind": "ExecutionStatus",
            "id": "job-1",
            "request": "exe-1.1",
            "state": "running",
            "seq": ENORMOUS,
            "updatedAt": "2026-01-01T00:00:00Z",
        }
        return httpx.Response(202, json=status)

    adapter = HttpAdapter("http://hob.invalid:9", "token", transport=httpx.MockTransport(answers))
    request = ExecuteRequest(
        core="0.2.0",
        kind="ExecuteRequest",
        id="exe-1.1",
        recipe="cw:cookwala.ai:example-koshari",
        recipe_hash="sha256:" + "0" * 64,
        requested_by="person:anna",
        idempotency_key="key-exe-1.1",
    )
    calls = {
        "start": lambda: adapter.start(request),
        "status": lambda: adapter.status("job-1"),
        "stop": lambda: adapter.stop("job-1", "person:anna"),
        "resume": lambda: adapter.resume("job-1", 1, "key-resume", "person:anna"),
    }
    with pytest.raises(DeviceUnreachable, match="seq") as caught:
        await calls[verb]()
    assert caught.value.delivered == "unknown", "so it is asked again"
    await adapter.close()


async def test_an_impossible_start_answer_is_told_and_the_start_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stations, "SURPRISED_S", 0.3)
    hob = ScriptedDevice("hob")

    async def begin(request: ExecuteRequest) -> ExecutionStatus:
        status = await hob.begin(request)
        return replace(status, seq=ENORMOUS) if len(hob.starts) == 1 else status

    hob.on["start"] = begin
    async with house(tmp_path, hob) as kitchen:
        await shows(kitchen, await order(kitchen), "running")
        assert len({request.id for request in hob.starts}) == 1
        assert "hob: a fault of ours at this station" in caplog.text
        assert await alive(kitchen)


async def test_an_impossible_status_is_told_and_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stations, "SURPRISED_S", 0.3)
    monkeypatch.setattr(stations, "HEAL_AFTER_S", 0.1)
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        job = hob.executions["hob-0001"]
        asked: list[str] = []

        async def status(ref: str) -> ExecutionStatus:
            asked.append(ref)
            return replace(hob.find(ref), seq=ENORMOUS) if len(asked) == 1 else hob.find(ref)

        hob.on["status"] = status
        hob.put(job.id, "paused")
        hob.put(job.id, "needs_human")
        later = event(
            "hob",
            "e-9",
            "execution.state_changed",
            {"request": job.request, "state": "needs_human", "x-aboyeur-boot": "boot-1"},
            subject=job.id,
            cookwalaseq=4,
        )
        await connected(kitchen)
        await say(kitchen, "hob", [later])
        await shows(kitchen, execution, "needs_human")
        assert len(asked) >= 2
        assert "hob: a fault of ours at this station" in caplog.text
        assert await alive(kitchen)


async def test_an_impossible_answer_to_a_stop_ends_nothing_but_that_try(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        answers: list[StopAnswer] = []

        async def halt(ref: str) -> StopAnswer:
            usual = await hob.halt(ref)
            assert usual.status is not None
            answers.append(usual)
            odd = replace(usual.status, seq=ENORMOUS)
            return usual if len(answers) > 2 else StopAnswer(usual.outcome, odd)

        hob.on["stop"] = halt
        answer = await stop(kitchen, execution)
        assert answer.status_code == 202
        assert not hob.heating
        await shows(kitchen, execution, "stopped")
        assert len(answers) > 2
        assert await alive(kitchen)


async def test_a_step_of_a_thousand_readings_is_bounded_and_the_hub_hears_on(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    reading = Reading(sensor="cw.sensor." + "y" * 60, value=1.0, unit="degC")

    async def begin(request: ExecuteRequest) -> ExecutionStatus:
        status = await hob.begin(request)
        return replace(status, step=Step(node="n1", readings=[reading] * 8_000))

    hob.on["start"] = begin
    async with house(tmp_path, hob) as kitchen:
        execution = await order(kitchen)
        shown = await shows(kitchen, execution, "running")
        assert len(shown["step"]["readings"]) == READINGS_MOST
        assert await alive(kitchen)
        job = hob.executions["hob-0001"]
        again = event(
            "hob",
            "e-3",
            "execution.step",
            {
                "request": job.request,
                "state": "running",
                "x-aboyeur-boot": "boot-1",
                "step": {
                    "node": "n2",
                    "readings": [{"sensor": "cw.sensor.z", "value": 1.0, "unit": "degC"}] * 500,
                },
            },
            subject=job.id,
            cookwalaseq=3,
        )
        await say(kitchen, "hob", [again])
        await taken(kitchen.household, "e-3")
        shown = await shows(kitchen, execution, "running")
        assert (shown["step"]["node"], len(shown["step"]["readings"])) == ("n2", READINGS_MOST)


# --- Holes ----------------------------------------------------------------------------------------------


async def test_a_hole_that_the_device_has_forgotten_is_read_once_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stations, "HEAL_AFTER_S", 0.2)
    hob = ScriptedDevice("hob")
    count = rounds(monkeypatch)
    async with house(tmp_path, hob) as kitchen:
        await connected(kitchen)

        def job(seq: int) -> dict[str, Any]:
            data = {"request": "r-1", "state": "running", "x-aboyeur-boot": "b"}
            return event("hob", f"e-{seq}", "execution.state_changed", data, subject="job-1", cookwalaseq=seq)

        await say(kitchen, "hob", [job(0), job(5)])

        async def closed() -> bool:
            return reads(kitchen) == 1

        await until(closed)
        assert rows(kitchen.household, "SELECT * FROM parked") == []
        assert rows(kitchen.household, "SELECT subject, open FROM subject") == [("job-1", 0)]
        before = count()
        await anyio.sleep(1.5)
        assert reads(kitchen) == 1
        assert count() - before <= 2, "the station spins"


async def test_a_hole_that_no_read_closes_is_read_ever_more_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stations, "HEAL_AFTER_S", 0.05)
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        await cooking(kitchen)
        await connected(kitchen)
        job = hob.executions["hob-0001"]
        data = {"request": job.request, "state": "running", "x-aboyeur-boot": "boot-1"}
        await say(
            kitchen,
            "hob",
            [event("hob", "e-9", "execution.step", data, subject=job.id, cookwalaseq=9)],
        )
        await taken(kitchen.household, "e-9")
        before = reads(kitchen)
        await anyio.sleep(2)
        assert 1 <= reads(kitchen) - before <= 8, "a device that lags behind its own events fills the log"


# --- Starts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lands", [True, False], ids=["stopped", "stop under way"])
async def test_a_start_that_may_not_leave_any_more_keeps_no_station_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    hob = ScriptedDevice("hob")
    hob.on["start"] = nobody
    if not lands:
        hob.on["stop"] = nobody
    count = rounds(monkeypatch)
    async with house(tmp_path, hob) as kitchen:
        execution = await order(kitchen)

        async def tried() -> bool:
            return bool(hob.starts)

        await until(tried)
        assert (await stop(kitchen, execution)).status_code == 202
        if lands:
            await shows(kitchen, execution, "stopped")
        await anyio.sleep(1.2)
        before, starts = count(), len(hob.starts)
        await anyio.sleep(1.5)
        assert count() - before <= 2
        assert len(hob.starts) == starts


async def test_no_start_leaves_after_its_stop_has_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hob = ScriptedDevice("hob")
    hob.on["start"] = nobody
    entered, released = anyio.Event(), anyio.Event()
    usual = stations.Station._request

    async def slow(station: stations.Station, execution: Execution, attempt: Attempt) -> ExecuteRequest:
        if hob.starts:  # the second try looks up what to send, and the store takes its time
            entered.set()
            await released.wait()
        return await usual(station, execution, attempt)

    monkeypatch.setattr(stations.Station, "_request", slow)
    async with house(tmp_path, hob) as kitchen:
        execution = await order(kitchen)
        with anyio.fail_after(10):
            await entered.wait()
        answer = await stop(kitchen, execution)
        assert answer.json()["x-aboyeur-stop"]["phase"] == "landed"
        assert len(hob.starts) == 1
        released.set()
        await anyio.sleep(1)
        assert len(hob.starts) == 1, "a start left for a device that had confirmed the stop"


async def test_a_read_that_tells_of_a_stop_before_the_stop_itself_hides_no_stop(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        await connected(kitchen)

        async def halt(ref: str) -> StopAnswer:
            usual = await hob.halt(ref)
            # The device speaks on the bus before its answer is back.
            job = hob.find(ref)
            data = {"request": job.request, "state": "stopped", "x-aboyeur-boot": "boot-1"}
            said = event("hob", "e-1", "execution.state_changed", data, subject=job.id, cookwalaseq=job.seq)
            await say(kitchen, "hob", [said])
            await taken(kitchen.household, "e-1")
            return usual

        hob.on["stop"] = halt
        answer = await stop(kitchen, execution, json={"requestedBy": "person:ben"})
        assert answer.status_code == 202
        landed = {"phase": "landed", "by": "person:ben"}
        assert (answer.json()["state"], answer.json()["x-aboyeur-stop"]) == ("stopped", landed)
        asked = rows(
            kitchen.household,
            "SELECT CAST(body AS TEXT) FROM log JOIN payload USING (log_id, seq) WHERE kind = 'stop.asked'",
        )
        assert [json.loads(body)["by"] for (body,) in asked] == ["person:ben"], "who stopped it is on record"


class Jumping(SystemClock):
    """A wall clock that is put forward an hour when a test says so."""

    def __init__(self) -> None:
        self.offset = timedelta()

    def wall(self) -> datetime:
        return super().wall() + self.offset


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_set_between_order_and_start_stops_no_start(tmp_path: Path, hours: int) -> None:
    hob = ScriptedDevice("hob")
    clock = Jumping()
    jumping: list[bool] = []

    class Between:
        """The clock is set in the very moment in which the order is on disk."""

        def __init__(self, store: Store) -> None:
            self.store = store

        async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
            value = await self.store.run(work)
            if jumping:
                clock.offset = timedelta(hours=hours)
            return value

        async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
            return await self.store.read(work)

    household = found_household(tmp_path / "hub")
    household.clock = clock
    async with running_hub(household, seams=Scripts(hob).seams(store=Between)):
        await register(household, hob)
        kitchen = House(household, (hob,), await household.add_recipes())
        jumping.append(True)
        await shows(kitchen, await order(kitchen), "running")
        assert clock.offset, "or this shows nothing"


# --- Events that name less than they might --------------------------------------------------------------


async def test_a_report_without_subject_leaves_the_devices_own_id_as_it_was(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        await connected(kitchen)
        request = hob.starts[0].id
        hob.waits(request, "stir")
        data = {"request": request, "state": "needs_human", "humanNeeded": {"why": "stir"}}
        await say(kitchen, "hob", [event("hob", "e-1", "execution.state_changed", data)])
        waits = await shows(kitchen, execution, "needs_human")
        async with kitchen.client() as http:
            answer = await http.post(
                f"/v1/executions/{execution}/resume", headers={"If-Match": str(waits["seq"])}
            )
        assert ("resume", "hob-0001") in hob.said
        # The device's own number was never said: it may want another look, but it is never asked for "hob".
        assert answer.status_code in (202, 409), answer.text
        assert not any(ref == "hob" for _, ref in hob.said)


async def test_what_has_ended_begins_no_more(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
        await connected(kitchen)
        await stop(kitchen, execution)
        job = hob.executions["hob-0001"]
        said = {"request": job.request, "state": "running"}
        numbered = {**said, "x-aboyeur-boot": "boot-1"}
        await say(
            kitchen,
            "hob",
            [
                event("hob", "e-1", "execution.state_changed", said, subject=job.id),
                event("hob", "e-2", "execution.state_changed", numbered, subject=job.id, cookwalaseq=4),
            ],
        )
        await taken(kitchen.household, "e-1", "e-2")
        assert rows(kitchen.household, "SELECT phase FROM attempt") == [("closed",)]
        (body,) = rows(kitchen.household, "SELECT body FROM execution")[0]
        assert json.loads(body)["state"] == "stopped"
