"""Texts that give orders are written down wherever they come in; nothing follows from them (ruling Q5)."""

import json
from pathlib import Path
from typing import Any

import msgspec

from tests.hub.api.scripted import SAMPLES, House, ScriptedDevice, house
from tests.hub.speaking import event, question, say, taken
from tests.safety import hostile_texts

ORDER = hostile_texts.ENGLISH[0]


async def noted(kitchen: House) -> list[dict[str, Any]]:
    async with kitchen.client() as http:
        answer = (await http.get("/v1/untrusted-texts")).json()
    assert set(answer["counters"]) <= {"cw.incident.untrusted_instruction"}
    found: list[dict[str, Any]] = answer["newest"]
    return found


async def test_a_hostile_recipe_is_taken_cooked_and_written_down(tmp_path: Path) -> None:
    async with house(
        tmp_path, ScriptedDevice("hob"), ScriptedDevice("basic", "demo-hob-robot-basic")
    ) as kitchen:
        assert await noted(kitchen) == [], "the sample recipes and devices give no orders"
        plain = json.loads(json.dumps(SAMPLES["recipes"]["lentil-soup"]))
        plain.pop("hash", None)
        usual: dict[str, Any] | None = None
        for number, text in enumerate([None, *hostile_texts.ALL[::9]]):
            plain["text"]["en"]["intro"] = "as ever" if text is None else text
            plain["process"]["nodes"][0]["notes"] = {"en": plain["text"]["en"]["intro"]}
            async with kitchen.client() as http:
                added = await http.post("/v1/recipes", json=plain)
                assert added.status_code == 201, text
                body = kitchen.household.request("lentil-soup", added.json()["hash"])
                status = (await http.post("/v1/executions", json=body)).json()
                stop = await http.post(f"/v1/executions/{status['id']}/stop")
                assert stop.status_code == 202
            told = {name: status.get(name) for name in ("state", "x-aboyeur-device", "refusal")}
            usual = usual or told
            assert told == usual, text
            if text is not None:
                newest = (await noted(kitchen))[:2]
                assert {one["text"] for one in newest} == {text}
                assert all(added.json()["hash"] in one["source"] for one in newest), number
                assert {one["detail"].split(":")[0] for one in newest} == {
                    "$.text.en.intro",
                    "$.process.nodes[0].notes.en",
                }


async def test_an_order_in_a_request_a_mandate_or_an_event_is_written_down(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        async with kitchen.client() as http:
            body = kitchen.order(**{"x-note": ORDER})
            status = (await http.post("/v1/executions", json=body)).json()
        assert status["state"] == "accepted"
        assert [one["detail"] for one in await noted(kitchen)] == ["$.x-note: override"]
        asks = question("q-1", "hob-0001")
        asks["data"]["message"] = {"en": ORDER}
        await say(kitchen, "hob", [asks])
        await say(kitchen, "hob", [event("hob", "f-1", "device.fault", {"detail": hostile_texts.ARABIC[0]})])
        await taken(kitchen.household, "q-1", "f-1")
        assert {one["source"] for one in await noted(kitchen)} == {
            "a request of person:anna",
            "an event of hob",
        }
        # A repeated event is no second incident.
        await say(kitchen, "hob", [event("hob", "f-1", "device.fault", {"detail": hostile_texts.ARABIC[0]})])
        await say(kitchen, "hob", [event("hob", "f-2", "device.fault", {"detail": "motor"})])
        await taken(kitchen.household, "f-2")
        assert len(await noted(kitchen)) == 3


async def test_a_devices_own_words_are_written_down_when_it_is_registered(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    hob.document = msgspec.json.decode(msgspec.json.encode(hob.document))
    hob.document["actor"]["name"] = ORDER
    async with house(tmp_path, hob) as kitchen:
        (one,) = await noted(kitchen)
        assert (one["source"], one["detail"]) == ("the capabilities of hob", "$.actor.name: override")
        async with kitchen.client() as http:
            status = (await http.post("/v1/executions", json=kitchen.order())).json()
        assert (status["state"], status["x-aboyeur-device"]) == ("accepted", "hob")
