"""While the disk is full nothing is promised, and a stop still reaches the appliance (ruling X4)."""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.crash.evening import DEVICES, Taken, an_evening
from tests.household import until
from tests.mosquitto_process import Mosquitto

pytestmark = [pytest.mark.mosquitto, pytest.mark.slow]


async def test_on_a_full_disk_nothing_is_acknowledged_or_accepted_and_a_stop_goes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    broker = mosquitto_factory(devices=DEVICES)
    full = tmp_path / "full"
    async with an_evening(tmp_path, monkeypatch, broker, speed=200) as evening:
        assert evening.hub.stop() == 0
        await evening.start(CRASH_FULL=str(full))
        order = await evening.order("koshari")

        async def cooking() -> bool:
            return ((await evening.execution(order.execution)) or {}).get("state") == "running"

        await until(cooking)
        full.touch()
        await anyio.sleep(0.3)  # what was under way is through
        logged, acknowledged = evening.logged(), evening.acknowledged
        told = len(evening.confirmed)

        # Another order gets no 202, but an answer that says why.
        body = evening.household.request("lentil-soup", evening.hashes["lentil-soup"])
        async with evening.household.client() as http:
            answer = await http.post("/v1/executions", content=json.dumps(body))
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert set(answer.json()) >= {"type", "title", "status", "detail"}

        # The stop needs no disk: the appliance has it, and the caller is told what is known.
        async with evening.household.client(None) as http:
            stopped = await http.post(f"/v1/executions/{order.execution}/stop")
        assert stopped.status_code == 202
        with anyio.fail_after(3):
            while evening.states_at_devices() != {order.execution: "stopped"}:
                await anyio.sleep(0.05)

        # The devices went on telling; the hub took none of it.
        async def told_more() -> bool:
            return len(evening.confirmed) > told

        await until(told_more)
        assert evening.logged() == logged
        assert evening.acknowledged == acknowledged

        full.unlink()
        await evening.everything_heard()

        async def stopped_here() -> bool:
            status = await evening.execution(order.execution) or {}
            return status.get("state") == "stopped" and "x-aboyeur-log" in status

        await until(stopped_here)
        assert set(evening.acknowledged) > set(acknowledged)
        # Nothing of the order without an answer was kept; asked again it is taken.
        assert len(evening.started()) == 1
        await evening.say_here()
        async with evening.household.client() as http:
            again = await http.post("/v1/executions", content=json.dumps(body))
        assert again.status_code == 202
        evening.taken.append(Taken(body, evening.household.token, again.json()["id"], "accepted"))
        await evening.served(again.json()["id"])
        await evening.check()


@pytest.mark.skipif(sys.platform != "linux", reason="sets a limit of another process")
async def test_a_file_that_may_not_grow_stops_promises_until_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    broker = mosquitto_factory(devices=DEVICES)
    async with an_evening(tmp_path, monkeypatch, broker) as evening:
        hub = evening.hub.process
        assert hub is not None
        # SQLite itself meets the limit here, in the middle of a write to its write-ahead log.
        unlimited = resource.prlimit(hub.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(hub.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
        body = evening.household.request("koshari", evening.hashes["koshari"])
        for _ in range(3):
            async with evening.household.client() as http:
                answer = await http.post("/v1/executions", content=json.dumps(body))
            assert answer.status_code == 503, answer.text
        resource.prlimit(hub.pid, resource.RLIMIT_FSIZE, unlimited)
        order = await evening.order("koshari")
        await evening.served(order.execution)
        await evening.check()
