"""A real peer: the public sample client and orchestrator, as they are, against a hub (cookwala-samples)."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from cookwala_samples import CookwalaProblem, HubClient, Job, MonitorAgent, Orchestrator, ScriptedHuman
from cookwala_samples.simulator import dry_run

from tests.household import Household, found_household, running_hub, running_kitchen, until
from tests.hub.api.scripted import SAMPLES, ScriptedDevice, house

in_thread = anyio.to_thread.run_sync


def client(household: Household, token: str | None = None) -> HubClient:
    return HubClient(household.url, token or household.token, timeout=10, retries=1, poll_s=0.05)


async def heard(household: Household) -> None:
    """Wait until every device has its pairing and is heard."""

    async def everyone() -> bool:
        async with household.client() as http:
            devices = (await http.get("/v1/devices")).json()["devices"]
        return all(device["liveness"] == "alive" for device in devices)

    await until(everyone)


async def test_the_sample_client_orders_follows_resumes_and_reads_the_log(tmp_path: Path) -> None:
    household = found_household(tmp_path / "hub")
    async with running_hub(household), running_kitchen(tmp_path / "kitchen", presence_interval_s=0.3) as urls:
        recipes = await household.add_recipes()
        await household.pair(tmp_path / "kitchen", urls)
        peer, monitor = client(household), MonitorAgent()
        await heard(household)
        request = household.request("koshari", recipes["koshari"])
        status = await in_thread(partial(peer.start_execution, request, human_present=True))
        resumed = 0
        with anyio.fail_after(60):
            while status["state"] not in ("completed", "refused", "stopped", "failed"):
                monitor.observe(status)
                if status["state"] == "needs_human":
                    status = await in_thread(peer.resume_execution, status["id"], status["seq"])
                    resumed += 1
                async with household.client() as http:
                    await http.post("/v1/presence", json={"present": True})
                await anyio.sleep(0.05)
                status = await in_thread(peer.get_execution, status["id"])
        monitor.observe(status)
        assert status["state"] == "completed", status
        assert resumed >= 1, "koshari's step n14 waits for a person"
        assert monitor.anomalies == []

        async def log() -> Any:
            try:
                return await in_thread(peer.execution_log, status["id"])
            except CookwalaProblem as problem:
                assert problem.status == 404
                return None

        found = await until(log)
        assert (found["kind"], found["outcome"]) == ("ExecutionLog", "served")
        assert found["recipeHash"] == recipes["koshari"]


async def test_the_sample_client_reads_what_is_open_and_is_refused_as_core_says(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        peer = client(kitchen.household)
        assert (await in_thread(peer.capabilities))["roles"] == ["hub"]
        assert (await in_thread(peer.safety_limits))["kind"] == "SafetyLimits"
        refused = await in_thread(peer.start_execution, kitchen.order(core="0.3.0"))
        assert (refused["state"], refused["refusal"]["reason"]) == ("refused", "unsupported_version")
        with pytest.raises(CookwalaProblem) as no_token:
            await in_thread(client(kitchen.household, "wrong").get_execution, "exe-none")
        assert no_token.value.status == 401
        with pytest.raises(CookwalaProblem) as unknown:
            await in_thread(peer.stop_execution, "exe-none")
        assert unknown.value.status == 404


async def test_a_resume_that_the_sample_client_repeats_after_a_lost_answer_is_answered_again(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")

    async def waits(request: Any) -> Any:
        hob.waits((await hob.begin(request)).id)
        return hob.find(request.id)

    hob.on["start"] = waits
    async with house(tmp_path, hob) as kitchen:
        peer = client(kitchen.household)
        status = await in_thread(peer.start_execution, kitchen.order())

        async def needs() -> Any:
            found = await in_thread(peer.get_execution, status["id"])
            return found if found["state"] == "needs_human" else None

        seen = await until(needs)
        path = f"/v1/executions/{status['id']}/resume"
        headers = {"Idempotency-Key": "resume-0123456789", "If-Match": f'"{seen["seq"]}"'}
        first = await in_thread(partial(peer._call, "POST", path, {}, headers))
        again = await in_thread(partial(peer._call, "POST", path, {}, headers))
        assert first == again
        assert first["state"] == "running"


class Hub(HubClient):
    """The sample orchestrator also wants a dry run and an advance, which are tools of its reference hub and
    not Core: the dry run is done here on the samples' own device, and a hub advances by itself."""

    def dry_run(self, recipe: Any, human_present: bool = False) -> Any:
        return dry_run(recipe, SAMPLES["devices"]["demo-hob-robot"], human_present, True)

    def advance(self) -> None:
        time.sleep(self.poll_s)


async def test_the_sample_orchestrator_cooks_a_dish_through_the_hub(tmp_path: Path) -> None:
    household = found_household(tmp_path / "hub")
    async with running_hub(household), running_kitchen(tmp_path / "kitchen") as urls:
        recipes = await household.add_recipes()
        await household.pair(tmp_path / "kitchen", urls)
        await heard(household)
        peer = Hub(household.url, household.token, timeout=10, retries=1, poll_s=0.05)
        job = Job(
            "soup",
            request=household.request("lentil-soup", recipes["lentil-soup"]),
            recipe=SAMPLES["recipes"]["lentil-soup"],
            human_present=True,
        )
        orchestrator = Orchestrator({"hub": peer}, human=ScriptedHuman(), recalls=[])
        records: list[Any] = []

        async def cook() -> None:
            records.append(await in_thread(orchestrator.run, job))

        async with anyio.create_task_group() as tasks, household.client() as http:
            tasks.start_soon(cook)
            with anyio.fail_after(60):
                while not records:
                    await http.post("/v1/presence", json={"present": True})
                    await anyio.sleep(0.05)
        (record,) = records
        assert record.status["state"] == "completed", record.status
        assert record.anomalies == []
        assert record.transitions[0] == "accepted"
        assert record.transitions[-1] == "completed"
