"""While a hub starts, stops go through; and what is damaged on its disk keeps it from nothing else."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import pytest

from hub import service, starting, stops
from hub.service import serve
from hub.store.database import Store
from tests.household import until
from tests.hub.api.scripted import House, ScriptedDevice, Scripts, house
from tests.hub.api.test_stop import CONTROL, cooking, shows, stop
from tests.hub.speaking import alter, rows

T = TypeVar("T")


class Gate:
    """A store that does nothing before it is let: a long migration, a slow disk."""

    def __init__(self) -> None:
        self.open = anyio.Event()

    def store(self, store: Store) -> Any:
        gate = self

        class Slow:
            async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
                await gate.open.wait()
                return await store.run(work)

            async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
                return await store.read(work)

        return Slow()


@asynccontextmanager
async def starting_hub(kitchen: House, gate: Gate) -> AsyncGenerator[anyio.Event]:
    """The hub again, as far as the gate lets it; gives what says when it is ready."""
    stopping, ready = anyio.Event(), anyio.Event()
    household = kitchen.household
    seams = Scripts(*kitchen.devices).seams(store=gate.store)

    async def run() -> None:
        await serve(
            household.settings, household.clock, household.ids, stopping=stopping, seams=seams, ready=ready
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield ready
        gate.open.set()
        stopping.set()


async def first_answer(kitchen: House, execution: str) -> httpx.Response:
    """The answer to a stop, as soon as anybody answers."""
    with anyio.fail_after(10):
        while True:
            try:
                return await stop(kitchen, execution)
            except httpx.TransportError:
                await anyio.sleep(0.02)


def one_schema_behind(kitchen: House) -> None:
    alter(
        kitchen.household,
        "ALTER TABLE device DROP COLUMN interval_s",
        "ALTER TABLE question DROP COLUMN open",
        *(
            f"DROP TABLE {table}"
            for table in ("recall", "inventory", "incident_report", "incident_delivery", "incident")
        ),
        "PRAGMA user_version = 2",
    )


def not_looked_into(path: Path, kitchen: Any) -> None:
    """As where the look before the start found nothing it could read."""


async def test_a_stop_lands_while_a_hub_with_an_older_schema_is_not_ready(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
    one_schema_behind(kitchen)
    gate = Gate()
    async with starting_hub(kitchen, gate) as ready:
        answer = await first_answer(kitchen, execution)
        assert not ready.is_set(), "or this shows nothing"
        assert answer.status_code == 202, answer.text
        assert answer.json()["x-aboyeur-stop"]["phase"] == "landed"
        assert not hob.heating
        gate.open.set()
        await shows(kitchen, execution, "stopped")
    assert rows(kitchen.household, "PRAGMA user_version")[0][0] > 2


async def test_a_stop_that_a_starting_hub_can_look_up_in_time_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
    monkeypatch.setattr(service, "preload", not_looked_into)
    gate = Gate()
    async with starting_hub(kitchen, gate), anyio.create_task_group() as tasks:
        answers: list[httpx.Response] = []

        async def ask() -> None:
            answers.append(await first_answer(kitchen, execution))

        tasks.start_soon(ask)
        await anyio.sleep(0.5)
        assert hob.heating
        gate.open.set()

        async def answered() -> bool:
            return bool(answers)

        await until(answered)
        assert answers[0].status_code == 202, answers[0].text
        await shows(kitchen, execution, "stopped")
        assert not hob.heating


async def test_a_stop_that_came_before_the_store_could_be_read_is_begun_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
    monkeypatch.setattr(service, "preload", not_looked_into)
    monkeypatch.setattr(stops, "ANSWER_WITHIN_S", 0.3)
    gate = Gate()
    async with starting_hub(kitchen, gate):
        answer = await first_answer(kitchen, execution)
        assert answer.status_code == 404
        assert CONTROL in answer.json()["detail"]
        assert hob.heating, "or this shows nothing"
        gate.open.set()
        await shows(kitchen, execution, "stopped")
        assert not hob.heating
        assert [ref for verb, ref in hob.said if verb == "stop"]


@pytest.mark.parametrize("broken", ["_look_for_work", "_look_for_the_rest"])
async def test_what_the_look_before_the_start_cannot_read_takes_nothing_else_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)

    def fails(*_: Any) -> None:
        raise sqlite3.OperationalError("no such column")

    monkeypatch.setattr(starting, broken, fails)
    gate = Gate()
    async with starting_hub(kitchen, gate):
        if broken == "_look_for_work":
            gate.open.set()
        assert (await first_answer(kitchen, execution)).status_code == 202
        if broken == "_look_for_the_rest":
            assert not gate.open.is_set()
            assert not hob.heating
        gate.open.set()
        await shows(kitchen, execution, "stopped")
        assert not hob.heating


FLIPPED = {
    "a recipe": ("UPDATE recipe SET document = '!' || substr(document, 2)", "the recipe sha256:"),
    "a recipe that is no text": (
        "UPDATE recipe SET document = CAST(x'7bff' AS TEXT)",
        "the recipe sha256:",
    ),
    "the capabilities": (
        "UPDATE device SET capabilities = '!' || substr(capabilities, 2)",
        "the capabilities of hob",
    ),
    "capabilities that are no text": (
        "UPDATE device SET capabilities = CAST(x'7bff' AS TEXT)",
        "the capabilities of hob",
    ),
    "the limits": ("UPDATE device SET safety_limits = '{}'", "the safety limits of hob"),
    "a device's keys": ("UPDATE device SET keys = '!'", "the keys of hob"),
    "a person's keys": ("UPDATE person SET keys = CAST(x'ff' AS TEXT)", "the keys of person:anna"),
}


@pytest.mark.parametrize("name", FLIPPED)
async def test_a_row_that_cannot_be_read_any_more_keeps_no_hub_from_starting_and_no_stop_from_landing(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        execution = await cooking(kitchen)
    statement, told = FLIPPED[name]
    alter(kitchen.household, statement)
    gate = Gate()
    gate.open.set()
    async with starting_hub(kitchen, gate) as ready:
        with anyio.fail_after(10):
            await ready.wait()
        assert f"{told}" in caplog.text
        assert "cannot be read any more" in caplog.text
        assert hob.heating
        assert (await stop(kitchen, execution)).json()["x-aboyeur-stop"]["phase"] == "landed"
        assert not hob.heating
        async with kitchen.client() as http:
            (device,) = (await http.get("/v1/devices")).json()["devices"]
        assert (device["name"], device["url"]) == ("hob", hob.url)


async def test_an_execution_that_cannot_be_read_any_more_keeps_no_other_from_being_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, hob, basic) as kitchen:
        lost, execution = await cooking(kitchen), await cooking(kitchen)
    alter(kitchen.household, f"UPDATE execution SET body = CAST(x'7bff' AS TEXT) WHERE id = '{lost}'")
    gate = Gate()
    gate.open.set()
    async with starting_hub(kitchen, gate) as ready:
        with anyio.fail_after(10):
            await ready.wait()
        assert f"{lost} cannot be read any more" in caplog.text
        answer = await stop(kitchen, execution)
        assert answer.status_code == 202, answer.text
        assert answer.json()["x-aboyeur-stop"]["phase"] == "landed"
        answer = await stop(kitchen, lost)
        assert answer.status_code == 404
        assert CONTROL in answer.json()["detail"]
