"""A kitchen of simulated appliances: one folder, one process, real sockets."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from litestar import Litestar, Request, Response, get

from adapters.documents import ExecuteRequest, PresenceWord
from adapters.http import HttpAdapter
from events import documents
from events.canonical import document_hash
from events.mqtt import MqttSettings, MqttTransport
from events.seams import SystemClock, SystemIds
from hub.http_server import serving
from mandates.keys import KeyRing
from mandates.signature import verify_document
from safety.device_documents import Capabilities
from sim.kitchen import ADDRESSES, device_key, run_kitchen, sample_devices, sample_recipes
from sim.loopback import listen
from sim.pairing import BrokerAddress, Pairing
from tests.mosquitto_process import Mosquitto

DEVICES = ("robot-arm", "demo-hob-robot", "demo-hob-robot-basic", "demo-oven")


def recipes_of(samples: dict[str, Any]) -> Litestar:
    """As much of a hub as a device needs: recipes by hash, for whoever has the device's token."""
    by_hash = {document_hash(recipe): json.dumps(recipe).encode() for recipe in samples["recipes"].values()}

    @get("/v1/recipes/{wanted:str}", sync_to_thread=False)
    def recipe(request: Request[Any, Any, Any]) -> Response[bytes]:
        if request.headers.get("Authorization") != "Bearer secret-of-demo-hob-robot":
            return Response(b"", status_code=401)
        found = by_hash.get(request.path_params["wanted"])
        return Response(found or b"", status_code=200 if found else 404, media_type="application/json")

    return Litestar([recipe], openapi_config=None)


@pytest.mark.mosquitto
async def test_a_paired_device_fetches_its_recipe_cooks_and_tells_it_on_the_bus(
    samples: dict[str, Any], tmp_path: Path, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    broker = mosquitto_factory(devices=DEVICES, readers=())
    hub = listen("127.0.0.1", 0)
    urls: dict[str, str] = {}
    heard: list[dict[str, Any]] = []
    folder = tmp_path / "kitchen"

    async def kitchen() -> None:
        await run_kitchen(
            folder, speed=3_000.0, base_port=0, heartbeat_s=1.0, ready=lambda found: urls.update(found)
        )

    async def ear() -> None:
        settings = MqttSettings(broker.host, broker.port, "hub", broker.secret("hub"), "hub")
        async with MqttTransport(settings, SystemClock()).connect() as session:
            await session.subscribe([("cookwala/home/from/#", 1)])
            while True:
                batch = await session.batch(100)
                heard.extend(json.loads(delivery.payload) for delivery in batch)
                await session.acknowledge(batch)

    async with serving(recipes_of(samples), hub), anyio.create_task_group() as group:
        group.start_soon(ear)
        group.start_soon(kitchen)
        with anyio.fail_after(20):
            while set(urls) != set(DEVICES):
                await anyio.sleep(0.02)
        assert json.loads((folder / ADDRESSES).read_bytes()) == {"devices": urls}
        url = urls["demo-hob-robot"]
        adapter = HttpAdapter(url, "token-of-the-hub")
        read = documents.read(Capabilities, await adapter.capabilities())
        assert read.interfaces.cookwala_http == url
        pairing = Pairing(
            kitchen="home",
            device="demo-hob-robot",
            token=broker.secret("demo-hob-robot"),
            hub_token="token-of-the-hub",
            hub_url=f"http://127.0.0.1:{hub.getsockname()[1]}",
            broker=BrokerAddress(host=broker.host, port=broker.port, protocol="5"),
        )
        (folder / "demo-hob-robot.pairing.json").write_bytes(b'{"half')
        await anyio.sleep(0.3)
        (folder / "demo-hob-robot.pairing.json").write_bytes(documents.write(pairing))
        with anyio.fail_after(20):
            while not any(event["type"] == "cookwala.device.heartbeat" for event in heard):
                await anyio.sleep(0.02)
        recipe = samples["recipes"]["salata-baladi"]
        request = ExecuteRequest(
            core="0.2.0",
            kind="ExecuteRequest",
            id="req-1",
            recipe="cw:cookwala.ai:salata-baladi",
            recipe_hash=document_hash(recipe),
            requested_by="person:anna",
            idempotency_key="idempotent-1",
            x_presence=PresenceWord(by="person:anna", said_at="2026-10-05T12:00:00Z", age_s=0.5),
        )
        status = await adapter.start(request)
        assert status.state == "accepted"
        with anyio.fail_after(30):
            while not any(event["type"] == "cookwala.execution.completed" for event in heard):
                for event in [event for event in heard if event["type"] == "cookwala.notify.request"]:
                    answer = {
                        "by": "person:anna",
                        "saidAt": "2026-10-05T12:00:00Z",
                        "ageS": 0.1,
                        "nonce": event["data"]["x-aboyeur-nonce"],
                    }
                    async with httpx.AsyncClient(trust_env=False) as client:
                        headers = {"Authorization": "Bearer token-of-the-hub"}
                        await client.post(f"{url}/v1/presence", json=answer, headers=headers)
                await anyio.sleep(0.05)
        log = await adapter.log("req-1")
        assert read.x_keys is not None
        assert verify_document(json.loads(log), KeyRing(read.x_keys)).ok
        unknown = await adapter.start(
            msgspec.structs.replace(
                request, id="req-2", idempotency_key="idempotent-2", recipe_hash="sha256:" + "0" * 64
            )
        )
        assert unknown.refusal is not None
        assert unknown.refusal.reason == "recipe_hash_mismatch"
        await adapter.close()
        group.cancel_scope.cancel()
    seqs = [event["cookwalaseq"] for event in heard if event["type"].startswith("cookwala.execution")]
    assert seqs[0] == 0


def test_the_command_runs_a_kitchen_and_ends_when_told(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "sim.kitchen", "--folder", str(tmp_path / "k"), "--base-port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert process.stdout is not None
    try:
        lines = [process.stdout.readline().split() for _ in DEVICES]
        assert [line[0] for line in lines] == list(DEVICES)
        for name, url in lines:
            reply = httpx.get(f"{url}/health", trust_env=False)
            assert reply.json()["device"] == name
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert time.monotonic() - began < 8
    finally:
        process.kill()
        process.wait(10)


def test_a_devices_key_is_made_once_kept_private_and_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "oven.key"
    key, record = device_key(path, "oven", SystemClock(), SystemIds())
    again, same = device_key(path, "oven", SystemClock(), SystemIds())
    assert (again.seed(), same) == (key.seed(), record)
    assert record.actor == "oven"
    assert path.stat().st_mode & 0o077 == 0


def test_the_sample_devices_are_the_packages_own(samples: dict[str, Any]) -> None:
    devices = sample_devices()
    assert tuple(device.name for device in devices) == DEVICES
    for device in devices:
        assert json.loads(device.capabilities) == samples["devices"][device.name]
        assert json.loads(device.limits) == samples["safetyLimits"]


def test_a_port_that_is_taken_is_named_as_such(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "sim.kitchen", "--folder", str(tmp_path / "k"), "--base-port", str(port)],
            capture_output=True,
            text=True,
            timeout=30,
            cwd=Path(__file__).parents[2],
        )
    assert done.returncode == 1
    for words in ("already in use", f"port {port} of {DEVICES[0]}", "--base-port"):
        assert words in done.stderr
    recipes = {path.stem for path in (tmp_path / "k" / "recipes").glob("*.json")}
    assert "koshari" in recipes


def test_the_sample_recipes_are_the_packages_own(samples: dict[str, Any]) -> None:
    assert {name: json.loads(raw) for name, raw in sample_recipes().items()} == samples["recipes"]
