"""A hundred thousand malformed publications through a real broker (rulings Q2, Q4, E5)."""

import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import paho.mqtt.client as paho
import psutil
import pytest

from config.settings import Quotas
from events import topics
from events.admission import Publisher, admit
from events.canonical import content_hash
from events.documents import DocumentError, read
from events.envelope import Event, read_event
from events.topics import category_of
from hub.event_types import event_registry
from hub.store.database import open_reader
from sim.pairing import Pairing
from tests.delivery.cooks import rebuilt
from tests.delivery.home_broker import HomeBroker, mosquitto_settings
from tests.events import mutants, samples
from tests.household import Household, HubProcess, found_household, running_kitchen, until

DEVICES = ("hob-1", "hob-2", "hob-3", "hob-4")
"""Several, because the bytes of one device are bounded whatever the settings say."""
MANY = 100_000
FEW = 10_000
CHUNK = 2_500
MOST_GROWTH_BYTES = 5 * 1024 * 1024
LONGEST = 66_000
REGISTRY = event_registry()


@dataclass(frozen=True)
class Sent:
    device: str
    topic: str
    payload: bytes


class Expected:
    """What must become of each publication, by the pure decisions alone."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.logged = 0
        self.unlogged = 0
        self.duplicates = 0
        self._content: dict[tuple[str, str], str] = {}

    def note(self, sent: Sent) -> None:
        topic = topics.parse_from(sent.topic)
        assert topic is not None
        try:
            event = read_event(sent.payload, REGISTRY)
        except DocumentError as error:
            self.reasons[error.reason] += 1
            return
        publisher = Publisher(sent.device, f"cookwala://home/{sent.device}")
        refused = admit(event, publisher, "home", REGISTRY, topic=topic)
        if refused is not None:
            self.reasons[refused.reason] += 1
        elif event.event_type.event_class == "telemetry":
            self.unlogged += 1
        else:
            self._once(sent.device, event)

    def _once(self, device: str, event: Event) -> None:
        content = content_hash(event.raw)
        first = self._content.setdefault((device, event.envelope.id), content)
        if first is content:
            self.logged += 1
        elif first == content:
            self.duplicates += 1
        else:
            self.reasons["id_conflict"] += 1


def publications(seed: int) -> Iterator[Sent]:
    """Mutants of every sample, from every device, for ever."""
    chance = random.Random(seed)
    own = {
        device: [json.loads(json.dumps(one).replace("//home/hob", f"//home/{device}")) for one in samples.ALL]
        for device in DEVICES
    }
    number = 0
    while True:
        device = chance.choice(DEVICES)
        valid: dict[str, Any] = copy.copy(chance.choice(own[device]))
        if valid.get("subject") == "hob":
            valid["subject"] = device
        number += 1
        valid["id"] = f"evt-{number}"
        if valid["type"].startswith("cookwala.execution."):
            valid.update(subject=f"exe-{number}", cookwalaseq=0)
        payload = mutants.mutant(valid, chance)
        if len(payload) > LONGEST:
            # Longer than an event may be is long enough; a broker carries no megabytes here.
            if chance.random() < 0.9:
                continue
            payload = payload[:LONGEST]
        yield Sent(device, _topic(device, payload, valid), payload)


def _topic(device: str, payload: bytes, valid: dict[str, Any]) -> str:
    """Where a device that believes its own event would publish it."""
    try:
        said = json.loads(payload)
        category, subject = category_of(said["type"]), said.get("subject")
        topic = topics.from_device("home", device, category, subject)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        topic = topics.from_device("home", device, category_of(valid["type"]), valid.get("subject"))
    return topic if len(topic) < 1_000 else topics.from_device("home", device, "x", None)


class Publishers:
    """One MQTT connection for each device; publications at QoS 1, many on their way at a time."""

    def __init__(self, pairings: dict[str, Pairing]) -> None:
        self._clients = {name: self._connect(pairing) for name, pairing in pairings.items()}

    def publish(self, sent: list[Sent]) -> None:
        receipts = [self._clients[one.device].publish(one.topic, one.payload, qos=1) for one in sent]
        for receipt in receipts:
            receipt.wait_for_publish(20)
            assert receipt.is_published()

    def close(self) -> None:
        for client in self._clients.values():
            client.disconnect()
            client.loop_stop()

    @staticmethod
    def _connect(pairing: Pairing) -> paho.Client:
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=pairing.device, protocol=paho.MQTTv5)
        client.username_pw_set(pairing.device, pairing.token)
        client.max_inflight_messages_set(500)
        client.connect(pairing.broker.host, pairing.broker.port)
        client.loop_start()
        until_s = time.monotonic() + 5
        while not client.is_connected() and time.monotonic() < until_s:
            time.sleep(0.01)
        assert client.is_connected()
        return client


@pytest.mark.mosquitto
@pytest.mark.slow
async def test_a_hundred_thousand_malformed_publications_cost_nothing_but_their_count(tmp_path: Path) -> None:
    quotas = Quotas(
        events_per_device_per_minute=10_000_000, open_subjects_per_device=1_000_000, payload_bytes=1_048_576
    )
    household = found_household(tmp_path / "hub", broker=mosquitto_settings(), quotas=quotas)
    broker = HomeBroker(household, tmp_path / "mosquitto", hasty=True)
    broker.start()
    hub = HubProcess(household)
    hub.start()
    try:
        await hub.wait_ready()
        pairings = await _pair(household, tmp_path / "kitchen")
        broker.let_in_the_paired()
        await anyio.sleep(0.3)
        publishers = await anyio.to_thread.run_sync(Publishers, pairings)
        assert hub.process is not None
        process = psutil.Process(hub.process.pid)
        expected = Expected()
        source = publications(seed=20_261_130)
        resident_after_few = 0
        began = time.monotonic()
        for done in range(CHUNK, MANY + 1, CHUNK):
            chunk = [next(source) for _ in range(CHUNK)]
            for one in chunk:
                expected.note(one)
            await anyio.to_thread.run_sync(publishers.publish, chunk)
            # The broker keeps a hub from drowning only so far: the next come when most are through.
            await until(lambda: _through(household, expected, CHUNK), 30.0)
            if done == FEW:
                await until(lambda: _through(household, expected, 0), 30.0)
                resident_after_few = process.memory_info().rss
        await until(lambda: _through(household, expected, 0), 30.0)
        took_s = time.monotonic() - began
        growth = process.memory_info().rss - resident_after_few
        print(
            f"{MANY / took_s:.0f} publications/s through Mosquitto; "
            f"resident {resident_after_few / 2**20:.1f} MiB after {FEW}, {growth / 2**20:+.2f} after {MANY}; "
            f"{expected.logged} logged, {expected.unlogged} telemetry, {dict(expected.reasons)}",
            file=sys.stderr,
        )
        async with household.client() as http:
            assert (await http.get("/v1/quarantine")).json()["counters"] == dict(expected.reasons)
        assert _logged(household) == expected.logged
        assert growth <= MOST_GROWTH_BYTES
        await _good_event_takes_effect(household, publishers)
        publishers.close()
        assert hub.stop() == 0
    finally:
        hub.kill()
        broker.kill()
    kinds = set(expected.reasons)
    assert {"duplicate_key", "not_json", "too_large", "too_deep", "unknown_field"} <= kinds, kinds
    assert expected.logged + expected.unlogged >= 0.1 * MANY
    assert rebuilt(household).ok


async def _pair(household: Household, folder: Path) -> dict[str, Pairing]:
    async with running_kitchen(folder) as urls, household.client() as http:
        found = {}
        for name, url in zip(DEVICES, urls.values(), strict=True):
            answer = await http.post("/v1/devices", json={"name": name, "url": url})
            assert answer.status_code == 201, answer.text
            found[name] = read(Pairing, answer.content)
        return found


def _logged(household: Household) -> int:
    connection = open_reader(household.folder.database)
    try:
        return int(connection.execute("SELECT count(*) FROM log WHERE kind = 'event'").fetchone()[0])
    finally:
        connection.close()


async def _through(household: Household, expected: Expected, most_behind: int) -> bool:
    connection = open_reader(household.folder.database)
    try:
        (logged,) = connection.execute("SELECT count(*) FROM seen").fetchone()
        (turned,) = connection.execute(
            "SELECT sum(count) FROM ring_counter WHERE ring = 'quarantine'"
        ).fetchone()
    finally:
        connection.close()
    return expected.logged + sum(expected.reasons.values()) - logged - (turned or 0) <= most_behind


async def _good_event_takes_effect(household: Household, publishers: Publishers) -> None:
    device = DEVICES[0]
    alarm = {
        **samples.SMOKE,
        "id": "evt-last",
        "source": f"cookwala://home/{device}",
        "subject": device,
        "time": "2099-01-01T00:00:00Z",
        "type": "cookwala.safety.gas_leak",
    }
    topic = topics.from_device("home", device, "safety", device)
    await anyio.to_thread.run_sync(publishers.publish, [Sent(device, topic, json.dumps(alarm).encode())])

    async def shown() -> bool:
        connection = open_reader(household.folder.database)
        try:
            query = "SELECT 1 FROM condition WHERE device = ? AND type = ? AND active = 1"
            return connection.execute(query, (device, alarm["type"])).fetchone() is not None
        finally:
            connection.close()

    await until(shown)
