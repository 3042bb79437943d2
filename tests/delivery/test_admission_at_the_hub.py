"""What the inbox takes, turns away and counts (rulings E1, E2, E5; CASES 1, 2, 8)."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cookwala_samples import load_bundle

from config.settings import Quotas
from events.transport import Delivery
from hub.entries import DeviceRegistered, QuestionClosed
from hub.inbox import SAMPLE_EVERY_S
from hub.projections import events as fold_events
from hub.store.rings import QUARANTINE, Ring
from tests.delivery.counter import Counter, counter, delivery

HOB, OVEN = "demo-hob-robot", "demo-oven"


def event(device: str, event_type: str, data: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    made = {
        "specversion": "1.0",
        "id": "evt-1",
        "source": f"cookwala://home/{device}",
        "type": event_type,
        "time": "2026-10-05T12:00:00.250Z",
        "data": data,
        **attributes,
    }
    return {name: value for name, value in made.items() if value is not None}


def step(device: str = HOB, seq: int | None = 0, subject: str | None = "ex-1", **more: Any) -> dict[str, Any]:
    data = {"request": "req-1", "state": "running", "x-aboyeur-boot": "boot-1", **more.pop("data", {})}
    name = more.pop("id", f"evt-{subject}-{seq}")
    return event(device, "cookwala.execution.step", data, id=name, subject=subject, cookwalaseq=seq, **more)


def fault(device: str = HOB, name: str = "evt-fault", **more: Any) -> dict[str, Any]:
    return event(device, "cookwala.device.fault", {"code": "E7"}, **{"subject": device, "id": name, **more})


def heartbeat(device: str = HOB) -> dict[str, Any]:
    return event(
        device, "cookwala.device.heartbeat", {"intervalS": 10, "counter": 1}, subject=device, id="beat"
    )


def sent(device: str, plain: dict[str, Any], **how: Any) -> Delivery:
    return delivery(device, json.dumps(plain).encode(), **how)


@asynccontextmanager
async def kitchen(folder: Path, **quotas: int) -> AsyncGenerator[Counter]:
    capabilities = load_bundle()["devices"]
    limits = json.dumps(load_bundle()["safetyLimits"])
    folder.mkdir(exist_ok=True)
    async with counter(folder / "hub", quotas=Quotas(**quotas)) as hub:
        await hub.record(
            [
                DeviceRegistered(
                    name=name,
                    url="http://127.0.0.1:9",
                    token_hash=f"token-{name}",
                    broker_hash="none",
                    salt="salt",
                    capabilities=json.dumps(capabilities[name]),
                    safety_limits=limits,
                    by="person:anna",
                )
                for name in (HOB, OVEN)
            ]
        )
        hub.kitchen.liveness.listening(hub.clock.monotonic())
        yield hub


async def positions(hub: Counter) -> list[tuple[Any, ...]]:
    return await hub.rows(
        "SELECT device, subject, seq, json_extract(report, '$.state') FROM subject ORDER BY 1, 2"
    )


async def logged(hub: Counter) -> int:
    return int((await hub.rows("SELECT count(*) FROM log WHERE kind = 'event'"))[0][0])


async def test_an_event_without_a_number_is_applied_on_arrival(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as hub:
        await hub.take(sent(HOB, step(seq=None, id="a")))
        assert [row[3] for row in await positions(hub)] == ["running"]
        await hub.take(sent(HOB, step(seq=None, id="b", data={"state": "needs_human"})))
        assert [row[3] for row in await positions(hub)] == ["needs_human"]
        assert hub.rebuilt().ok


async def test_an_event_without_a_subject_is_about_its_source(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as hub:
        await hub.take(
            sent(HOB, step(seq=1, subject=None, id="b", data={"state": "needs_human"})),
            sent(HOB, step(seq=0, subject=None, id="a")),
            sent(HOB, step(seq=0, subject=None, id="late", data={"state": "failed"})),
        )
        assert await positions(hub) == [(HOB, f"cookwala://home/{HOB}", 1, "needs_human")]
        assert await hub.quarantined() == {}


async def test_state_never_moves_back_in_seq(tmp_path: Path) -> None:
    """CASES 2."""
    async with kitchen(tmp_path) as hub:
        await hub.take(*(sent(HOB, step(seq=seq)) for seq in range(4)))
        await hub.take(sent(HOB, step(seq=2, id="older", data={"state": "needs_human"})))
        await hub.take(sent(HOB, step(seq=3, id="same", data={"state": "needs_human"})))
        assert await positions(hub) == [(HOB, "ex-1", 3, "running")]
        assert await logged(hub) == 6, "what came late is history, and history is kept"


async def test_one_publication_that_comes_twice_has_one_effect(tmp_path: Path) -> None:
    """CASES 1: within one batch, over two batches, and from two devices that number alike."""
    async with kitchen(tmp_path) as hub:
        same = sent(HOB, fault())
        await hub.take(same, same)
        await hub.take(same)
        assert hub.inbox.duplicates == 2
        await hub.take(sent(OVEN, fault(OVEN)))
        assert await logged(hub) == 2
        assert await hub.quarantined() == {}


async def test_the_same_content_written_otherwise_is_a_duplicate_and_other_content_a_conflict(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path) as hub:
        plain = fault()
        await hub.take(sent(HOB, plain))
        otherwise = json.dumps(dict(reversed(plain.items())), indent=2).replace("E7", "\\u00457").encode()
        await hub.take(delivery(HOB, otherwise))
        assert hub.inbox.duplicates == 1
        assert await hub.quarantined() == {}
        await hub.take(sent(HOB, {**plain, "data": {"code": "E8"}}))
        assert await hub.quarantined() == {"id_conflict": 1}
        (body,) = (await hub.rows("SELECT body FROM payload ORDER BY seq DESC"))[0]
        assert json.loads(body)["event"] == plain, "the first wins"
        assert await logged(hub) == 1


async def test_a_kept_or_repeated_word_of_a_start_starts_nothing(tmp_path: Path) -> None:
    """CASES 8: `accepted` is an event, never a level; and nothing but an order makes the hub send a start."""
    async with kitchen(tmp_path) as hub, hub.stations() as stations:
        accepted = event(
            HOB,
            "cookwala.execution.accepted",
            {"request": "req-1", "state": "accepted", "x-aboyeur-boot": "boot-1"},
            subject="ex-1",
            cookwalaseq=0,
        )
        done = step(seq=1, data={"state": "completed"})
        await hub.take(sent(HOB, accepted), sent(HOB, done))
        for again in (
            sent(HOB, accepted, retained=True),
            sent(HOB, accepted),
            sent(HOB, {**accepted, "id": "new"}),
        ):
            await hub.take(again)
        for station in stations.values():
            station.ring()
        assert await positions(hub) == [(HOB, "ex-1", 1, "completed")]
        assert all(device.starts == [] for device in hub.devices.values())


WRONG: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("foreign_source", HOB, step(source=f"cookwala://home/{OVEN}"), None),
    ("foreign_source", HOB, step(source="cookwala://home/hub"), None),
    ("foreign_subject", HOB, fault(subject=OVEN), None),
    ("foreign_subject", HOB, step(subject=f"cookwala://home/{OVEN}"), None),
    ("forbidden_type", HOB, event(HOB, "cookwala.lease.granted", {}), None),
    ("forbidden_type", HOB, event(HOB, "cookwala.human.presence", {}), None),
    ("forbidden_type", HOB, event(HOB, "cookwala.handoff.acknowledged", {}), None),
    ("forbidden_type", HOB, event(HOB, "cookwala.recall.published", {}), None),
    ("forbidden_type", HOB, event(HOB, "cookwala.policy.evaluated", {}), None),
    ("wrong_kitchen", HOB, fault(cookwalakitchen="away"), None),
    ("wrong_topic", HOB, step(subject="ex-2"), f"cookwala/home/from/{HOB}/execution/ex-1"),
    ("wrong_topic", HOB, step(), f"cookwala/home/from/{HOB}/device/ex-1"),
    ("wrong_topic", HOB, step(), f"cookwala/home/from/{HOB}/execution"),
    ("unknown_device", "stranger", fault("stranger"), None),
    ("bad_time", HOB, fault(time="2026-10-05T12:00:00"), None),
    ("attribute_not_string", HOB, fault(id=7), None),
    ("bad_attribute_name", HOB, {**fault(), "example-extension": "x"}, None),
    ("bad_data", HOB, step(data={"state": "on fire"}), None),
    (
        "bad_data",
        HOB,
        event(
            HOB,
            "cookwala.notify.request",
            {
                "audience": ["role:household"],
                "urgency": "info",
                "message": {"en": "?"},
                "expiresAt": "2026-02-30T00:00:00Z",
                "x-aboyeur-nonce": "nonce-1",
            },
        ),
        None,
    ),
    ("unknown_type", HOB, event(HOB, "cookwala.nonsense.said", {}), None),
]


@pytest.mark.parametrize(("reason", "device", "plain", "topic"), WRONG)
async def test_what_may_not_be_said_is_turned_away_with_its_reason_and_the_stream_goes_on(
    tmp_path: Path, reason: str, device: str, plain: dict[str, Any], topic: str | None
) -> None:
    async with kitchen(tmp_path) as hub:
        await hub.take(sent(device, plain, topic=topic), sent(OVEN, fault(OVEN)))
        assert await hub.quarantined() == {reason: 1}
        assert await logged(hub) == 1
        row = (await hub.rows("SELECT source, detail, body FROM quarantine"))[0]
        assert row[0] in (device, ""), "where the topic names no device, nobody is named"
        assert row[1]
        assert json.loads(row[2]) == plain


async def test_a_makers_own_types_are_logged_and_nothing_more(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as hub:
        before = await hub.tables()
        await hub.take(sent(HOB, event(HOB, "x-acme.glow", {"colour": "red"})))
        assert await logged(hub) == 1
        assert await hub.tables() == before


async def test_a_device_that_says_too_much_is_heard_no_further_and_nobody_else_suffers(
    tmp_path: Path,
) -> None:
    async with kitchen(tmp_path, events_per_device_per_minute=10) as hub:
        flood = [sent(HOB, fault(name=f"evt-{number}")) for number in range(25)]
        await hub.take(*flood, sent(OVEN, fault(OVEN)))
        assert await hub.quarantined() == {"quota": 15}
        assert await logged(hub) == 11
        await hub.take(sent(HOB, heartbeat(), qos=0))
        assert hub.kitchen.liveness.life(HOB) == "alive", "who says too much is not dead"
        assert hub.heard.incomplete == []
        hub.clock.seconds += 60.0
        hub.kitchen.liveness.listening(hub.clock.monotonic())
        await hub.take(sent(HOB, fault(name="after")))
        assert await hub.quarantined() == {"quota": 15}
        assert await logged(hub) == 12
        assert hub.heard.incomplete == [HOB], "what was turned away is made good by reading the device"


async def test_bytes_have_a_quota_too(tmp_path: Path) -> None:
    async with kitchen(tmp_path, payload_bytes=1_024) as hub:
        await hub.take(sent(HOB, {**fault(name="long"), "data": {"code": "x" * 2_000}}))
        assert await hub.quarantined() == {"quota": 1}
        await hub.take(
            *(sent(HOB, {**fault(name=f"e-{n}"), "data": {"code": "x" * 700}}) for n in range(100))
        )
        assert 20 <= (await hub.quarantined())["quota"] <= 40
        await hub.take(sent(OVEN, fault(OVEN)))
        assert await hub.rows("SELECT count(*) FROM condition WHERE device = ?", OVEN) == [(1,)]


async def test_open_executions_have_a_quota_and_an_ended_one_makes_room(tmp_path: Path) -> None:
    async with kitchen(tmp_path, open_subjects_per_device=3) as hub:
        await hub.take(*(sent(HOB, step(subject=f"ex-{number}")) for number in range(5)))
        # One that is early counts as well: it holds a place in the store.
        await hub.take(sent(HOB, step(subject="ex-early", seq=7)))
        assert await hub.quarantined() == {"quota": 3}
        await hub.take(sent(OVEN, step(OVEN, subject="ex-9")))
        await hub.take(sent(HOB, step(subject="ex-0", seq=1, data={"state": "completed"})))
        await hub.take(sent(HOB, step(subject="ex-8", id="later")))
        assert await hub.quarantined() == {"quota": 3}
        assert [row[1] for row in await positions(hub)] == ["ex-0", "ex-1", "ex-2", "ex-8", "ex-9"]


async def test_what_waits_for_a_hole_to_close_is_bounded(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as hub:
        for start in range(1, 601, 200):
            await hub.take(*(sent(HOB, step(seq=seq)) for seq in range(start, start + 200)))
        (count,) = (await hub.rows("SELECT count(*) FROM parked"))[0]
        assert count == 256
        assert await logged(hub) == 600
        await hub.take(sent(HOB, step(seq=0)))
        assert await positions(hub) == [(HOB, "ex-1", 256, "running")]


async def test_the_ring_of_what_was_turned_away_is_bounded_and_counts_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (QUARANTINE.rows_most, QUARANTINE.bytes_most) == (10_000, 64 * 1024 * 1024)
    monkeypatch.setattr("hub.inbox.QUARANTINE", Ring("quarantine", rows_most=50, bytes_most=100_000))
    async with kitchen(tmp_path) as hub:
        for _ in range(4):
            await hub.take(
                *(delivery(HOB, b"{", topic=f"cookwala/home/from/{HOB}/device/x") for _ in range(50))
            )
        assert await hub.quarantined() == {"not_json": 200}
        assert await hub.rows("SELECT count(*) FROM quarantine") == [(50,)]
        long = b"[" + b" " * 60_000
        await hub.take(*(delivery(HOB, long, topic=f"cookwala/home/from/{HOB}/device/x") for _ in range(10)))
        ((rows, size),) = await hub.rows("SELECT count(*), sum(size) FROM quarantine")
        assert rows >= 1
        assert size <= 100_000


async def test_what_comes_before_the_marker_is_kept_but_proves_no_life(tmp_path: Path) -> None:
    async with kitchen(tmp_path) as hub:
        await hub.take(sent(HOB, heartbeat(), qos=0), sent(HOB, step()), live=False)
        assert hub.kitchen.liveness.life(HOB) == "unknown"
        assert hub.heard.returned == []
        assert await logged(hub) == 1
        await hub.take(sent(HOB, heartbeat(), qos=0))
        assert hub.heard.returned == [HOB]
        await hub.take(sent(HOB, heartbeat(), retained=True))
        assert await hub.quarantined() == {"retained_heartbeat": 1}


async def test_a_device_that_is_back_on_the_bus_is_read(tmp_path: Path) -> None:
    online = event(HOB, "cookwala.device.online", {"x-aboyeur-boot": "boot-1"}, subject=HOB)
    async with kitchen(tmp_path) as hub:
        await hub.take(sent(HOB, {**online, "id": "before"}), live=False)
        assert hub.heard.incomplete == []
        await hub.take(sent(HOB, online))
        assert hub.heard.incomplete == [HOB]


async def test_an_event_that_meets_a_fault_of_ours_is_put_aside_and_the_others_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fold_events.taken

    def taken(fold: Any, entry: Any, event: Any = None) -> None:
        if event is not None and event.envelope.id == "poison":
            raise ZeroDivisionError("a fault of ours")
        real(fold, entry, event)

    monkeypatch.setattr("hub.projections.events.taken", taken)
    async with kitchen(tmp_path) as hub:
        await hub.take(sent(HOB, step()), sent(HOB, fault(name="poison")), sent(OVEN, fault(OVEN)))
        assert await hub.quarantined() == {"not_processable": 1}
        assert await logged(hub) == 2
        assert hub.rebuilt().ok


def question(nonce: str, expires: str) -> dict[str, Any]:
    data = {
        "audience": ["role:household"],
        "urgency": "time_critical",
        "message": {"en": "?"},
        "expiresAt": f"2026-10-05T12:{expires}:00Z",
        "x-aboyeur-nonce": nonce,
    }
    return event(HOB, "cookwala.notify.request", data, subject="ex-1", id=f"evt-{nonce}")


@pytest.mark.parametrize("late", ["after its dish is over", "after a newer one was answered"])
async def test_a_question_that_comes_late_is_not_open_again(tmp_path: Path, late: str) -> None:
    running, over = sent(HOB, step(seq=0)), sent(HOB, step(seq=1, data={"state": "completed"}))
    older, newer = sent(HOB, question("older", "01")), sent(HOB, question("newer", "02"))
    answered = QuestionClosed(device=HOB, nonce="newer", outcome="answered", by="person:anna")
    orders: list[list[Any]]
    if late.endswith("over"):
        orders = [[running, older, over], [running, over, older]]
    else:
        orders = [[running, older, newer, answered], [running, newer, answered, older]]
    found = []
    for number, order in enumerate(orders):
        async with kitchen(tmp_path / str(number)) as hub:
            for item in order:
                if isinstance(item, Delivery):
                    await hub.take(item)
                else:
                    await hub.record([item])
            assert await hub.rows("SELECT count(*) FROM question WHERE open = 1") == [(0,)]
            assert hub.rebuilt().ok
            found.append(await hub.tables("question", "subject"))
    assert found[0] == found[1]


async def test_of_many_readings_one_a_minute_is_kept(tmp_path: Path) -> None:
    def reading(number: int, device: str = HOB) -> Delivery:
        data = {"readings": [{"sensor": "cw.sense.liquid_temp", "value": 90 + number, "unit": "degC"}]}
        return sent(device, event(device, "cookwala.telemetry.reading", data, id=f"reading-{number}"))

    async with kitchen(tmp_path) as hub:
        await hub.take(reading(0), live=False)
        for number in range(1, 4):
            await hub.take(reading(number))
        await hub.take(reading(4, OVEN))
        hub.clock.seconds += SAMPLE_EVERY_S
        await hub.take(reading(5), reading(6))
        rows = await hub.rows(
            "SELECT body FROM payload JOIN log USING (log_id, seq) "
            "WHERE kind = 'telemetry.sampled' ORDER BY seq"
        )
        kept = [json.loads(body)["event"]["id"] for (body,) in rows]
        assert kept == ["reading-1", "reading-4", "reading-5"]
        assert await logged(hub) == 0
        assert hub.rebuilt().ok
