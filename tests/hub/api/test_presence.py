"""Who is there, as far as a hub knows (ruling P2). Whether that suffices is the device's judgement."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest

from adapters.documents import PresenceWord
from adapters.protocol import DeviceError, DeviceUnreachable
from events import topics
from events.mqtt import MqttSettings, MqttTransport
from tests.household import OWNER, running_hub, until
from tests.hub.api.scripted import House, ScriptedDevice, Scripts, house
from tests.hub.api.test_authority import is_problem, person
from tests.hub.api.test_stop import cooking, shows, stop


async def ask(
    kitchen: House, device: str, nonce: str, *, lasts_s: float = 60, subject: str = "job-1"
) -> None:
    """The device asks over the bus whether somebody is there; returns once the question waits."""
    pairing = json.loads((kitchen.household.folder.root / f"{device}.pairing.json").read_text())
    broker = kitchen.household.settings.broker
    now = datetime.now(UTC)
    event = {
        "specversion": "1.0",
        "id": f"ask-{nonce}",
        "source": f"cookwala://home/{device}",
        "type": "cookwala.notify.request",
        "subject": subject,
        "time": now.isoformat(),
        "datacontenttype": "application/json",
        "data": {
            "audience": ["role:household"],
            "urgency": "time_critical",
            "message": {"en": f"is somebody at {device}?"},
            "actions": [{"id": "here", "label": {"en": "I am here"}}],
            "relatesTo": subject,
            "expiresAt": (now + timedelta(seconds=lasts_s)).isoformat(),
            "x-aboyeur-nonce": nonce,
        },
    }
    settings = MqttSettings(
        host=broker.host,
        port=broker.port,
        username=device,
        password=pairing["token"],
        client_id=device,
        protocol="3.1.1",
    )
    async with MqttTransport(settings, kitchen.household.clock).connect() as session:
        topic = topics.from_device("home", device, "notify", subject)
        await session.publish(topic, msgspec.json.encode(event), qos=1)


async def questions(kitchen: House) -> list[dict[str, Any]]:
    async with kitchen.client() as http:
        found = (await http.get("/v1/needs")).json()["needs"]
        return [need for need in found if need["kind"] == "presence"]


async def waiting(kitchen: House, *nonces: str) -> None:
    async def there() -> bool:
        return {need["nonce"] for need in await questions(kitchen)} == set(nonces)

    await until(there)


async def here(kitchen: House, **more: Any) -> httpx.Response:
    async with kitchen.client() as http:
        return await http.post("/v1/presence", json={"present": True, **more})


async def test_a_word_answers_every_open_question_each_with_its_nonce_and_once(tmp_path: Path) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, hob, basic) as kitchen:
        await ask(kitchen, "hob", "n-1")
        await ask(kitchen, "basic-hob", "n-2")
        await waiting(kitchen, "n-1", "n-2")
        need = (await questions(kitchen))[0]
        assert need["why"] == f"is somebody at {need['device']}?"
        answer = await here(kitchen)
        assert answer.status_code == 200
        assert sorted(answer.json()["answered"]) == ["n-1", "n-2"]
        assert await questions(kitchen) == []
        for device, nonce in ((hob, "n-1"), (basic, "n-2")):
            (word,) = device.words
            assert (word.by, word.nonce) == (OWNER, nonce)
            assert 0 <= word.age_s < 5
        assert (await here(kitchen)).json() == {"answered": []}
        assert (await here(kitchen, nonce="n-1")).json() == {"answered": []}
        assert (len(hob.words), len(basic.words)) == (1, 1)


async def test_a_nonce_answers_one_question_and_a_device_is_not_told_of_anothers(tmp_path: Path) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, hob, basic) as kitchen:
        await ask(kitchen, "hob", "n-1")
        await ask(kitchen, "basic-hob", "n-2")
        await waiting(kitchen, "n-1", "n-2")
        assert (await here(kitchen, nonce="n-2")).json() == {"answered": ["n-2"]}
        assert (await here(kitchen, nonce="n-9")).json() == {"answered": []}
        assert [need["nonce"] for need in await questions(kitchen)] == ["n-1"]
        assert hob.words == []


async def test_what_a_device_does_not_take_was_not_answered(tmp_path: Path) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")

    async def too_late(word: PresenceWord) -> None:
        raise DeviceError(409, "expired", "nobody answered in time")

    async def out_of_reach(word: PresenceWord) -> None:
        raise DeviceUnreachable("no route", "no")

    hob.on["present"], basic.on["present"] = too_late, out_of_reach
    async with house(tmp_path, hob, basic) as kitchen:
        await ask(kitchen, "hob", "n-1")
        await ask(kitchen, "basic-hob", "n-2")
        await waiting(kitchen, "n-1", "n-2")
        assert (await here(kitchen)).json() == {"answered": []}
        # the one is over, the other still waits for a word that gets through
        assert [need["nonce"] for need in await questions(kitchen)] == ["n-2"]
        basic.on.clear()
        assert (await here(kitchen)).json() == {"answered": ["n-2"]}


async def test_a_device_that_hangs_does_not_keep_the_word_from_the_others(tmp_path: Path) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    release = anyio.Event()

    async def hangs(word: PresenceWord) -> None:
        await release.wait()

    # basic-hob comes first by name
    basic.on["present"] = hangs
    async with house(tmp_path, hob, basic) as kitchen, anyio.create_task_group() as tasks:
        await ask(kitchen, "hob", "n-1")
        await ask(kitchen, "basic-hob", "n-2")
        await waiting(kitchen, "n-1", "n-2")
        tasks.start_soon(here, kitchen)

        async def told() -> bool:
            return bool(hob.words)

        await until(told, 3)
        release.set()


async def test_the_age_of_the_word_goes_with_a_start(tmp_path: Path) -> None:
    hob, basic = ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic")
    async with house(tmp_path, hob, basic) as kitchen:
        await here(kitchen)
        await anyio.sleep(0.5)
        await cooking(kitchen)
        (start,) = [*hob.starts, *basic.starts]
        assert start.x_presence is not None
        assert (start.x_presence.by, start.x_presence.nonce) == (OWNER, None)
        assert 0.5 <= start.x_presence.age_s < 5
        async with kitchen.client() as http:
            await http.post("/v1/presence", json={"present": False})
        second = await cooking(kitchen)
        (start,) = [one for one in (*hob.starts, *basic.starts) if one.id == f"{second}.1"]
        assert start.x_presence is None


async def test_the_sample_clients_claim_counts_under_a_persons_token_and_under_no_agents(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")
    claim = {"x-hub-human-present": True}
    async with house(tmp_path, hob) as kitchen:
        token, mandate = await kitchen.household.add_agent("agent:liar")
        for agent_claims in (kitchen.order(requestedBy="agent:liar", mandate=mandate, **claim),):
            async with kitchen.client(token) as http:
                accepted = (await http.post("/v1/executions", json=agent_claims)).json()
            assert accepted["state"] == "accepted"
            await shows(kitchen, accepted["id"], "running")
            assert hob.starts[-1].x_presence is None
            await stop(kitchen, accepted["id"])
        async with kitchen.client() as http:
            accepted = (await http.post("/v1/executions", json=kitchen.order(**claim))).json()
        await shows(kitchen, accepted["id"], "running")
        word = hob.starts[-1].x_presence
        assert word is not None
        assert (word.by, word.nonce) == (OWNER, None)
        assert hob.starts[-1].x_human_present is None
        await stop(kitchen, accepted["id"])


async def test_after_a_restart_nobody_is_there(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        await here(kitchen)
    async with running_hub(kitchen.household, seams=Scripts(hob).seams()):
        execution = await cooking(kitchen)
        assert hob.starts[-1].id == f"{execution}.1"
        assert hob.starts[-1].x_presence is None


async def test_a_removed_persons_word_is_gone_with_her(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        token = await person(kitchen, "person:ben")
        async with kitchen.client(token) as http:
            assert (await http.post("/v1/presence", json={"present": True})).status_code == 200
        async with kitchen.client() as http:
            await http.delete("/v1/people/person:ben")
        await cooking(kitchen)
        assert hob.starts[-1].x_presence is None


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b'{"present":1}', b'{"present":"true"}', b'{"present":true,"by":"x"}', b"[]", b"\xff"],
)
async def test_a_word_that_cannot_be_read_is_nobodys(shared: House, body: bytes) -> None:
    async with shared.client() as http:
        is_problem(await http.post("/v1/presence", content=body), 400)
