"""Whatever comes in, from a device, a person, the store or the broker, the hub goes on and says so."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from adapters.documents import ExecuteRequest, ExecutionStatus, HumanNeeded, PresenceWord
from config.settings import Quotas
from events.envelope import MAX_EVENT_BYTES, Event
from events.mqtt import MOST_PAYLOAD_BYTES
from events.transport import Delivery, Session, Transport, TransportLost
from hub import bus
from hub.entries import DeviceRead, DeviceRegistered, ExecutionAsked, StartGivenUp, StartSending
from hub.event_types import event_registry
from hub.executions.model import DeviceReport
from hub.projections import conditions, events
from hub.projections.executions import read_execution
from hub.projections.fold import Fold
from hub.projections.projector import TABLES, Projector
from hub.store.database import Store, StoreFailed
from hub.store.rebuild import check
from tests.delivery.counter import Counter, counter, delivery
from tests.household import OWNER, until
from tests.hub.api.scripted import SAMPLES, House, ScriptedDevice, house
from tests.hub.api.test_stop import cooking, shows
from tests.hub.speaking import alive, alter, connected, event, question, rows, say, taken

T = TypeVar("T")
LASTS = timedelta(hours=1)
HOB = DeviceRegistered(
    name="hob",
    url="http://hob.invalid:9",
    token_hash="0" * 64,
    broker_hash="none",
    salt="salt",
    capabilities=json.dumps(SAMPLES["devices"]["demo-hob-robot"]),
    safety_limits=json.dumps(SAMPLES["safetyLimits"]),
    by=OWNER,
)


async def quarantined(kitchen: House) -> dict[str, int]:
    async with kitchen.client() as http:
        found: dict[str, int] = (await http.get("/v1/quarantine")).json()["counters"]
        return found


# --- Events ---------------------------------------------------------------------------------------------


async def test_a_day_that_no_calendar_has_goes_to_quarantine_alone(tmp_path: Path) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        await connected(kitchen)
        await say(
            kitchen,
            "hob",
            [
                question("q-1", "job-1"),
                question("q-2", "job-2", expires_at="2025-02-30T00:00:00Z"),
                question("q-3", "job-3"),
            ],
        )
        await taken(kitchen.household, "q-1", "q-3")
        assert await quarantined(kitchen) == {"bad_data": 1}
        assert await alive(kitchen)


@pytest.mark.parametrize(
    "error", [RuntimeError("ours"), sqlite3.IntegrityError("ours"), OverflowError("ours")]
)
async def test_an_event_that_cannot_be_folded_leaves_no_trace_but_in_quarantine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fold_one, fold_alarm = events.taken, conditions.said

    def odd(fold: Fold, entry: Any, said: Event | None = None) -> None:
        fold_one(fold, entry, said)
        if said is not None and said.envelope.id == "bad-report":
            raise error

    def odd_alarm(fold: Fold, device: str, said: Event) -> None:
        fold_alarm(fold, device, said)
        if said.envelope.id == "bad-alarm":
            raise error

    monkeypatch.setattr(events, "taken", odd)
    monkeypatch.setattr(conditions, "said", odd_alarm)
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB, *started()])
        smoke = {"level": "alarm", "action": "none"}

        def alarm(name: str, kind: str) -> Delivery:
            said = event("hob", name, f"safety.{kind}", smoke, subject="hob", cookwalapriority="safety")
            return delivery("hob", json.dumps(said).encode())

        before = pass_.kitchen.open_work.get("exe-1")
        await pass_.take(
            alarm("good-1", "smoke"),
            alarm("bad-alarm", "fire"),
            delivery("hob", reported("bad-report", "preparing", 0)),
            alarm("good-2", "gas_leak"),
        )
        assert await pass_.quarantined() == {"not_processable": 2}
        assert await pass_.rows("SELECT id FROM seen ORDER BY id") == [("good-1",), ("good-2",)]
        assert await pass_.rows("SELECT count(*) FROM log WHERE kind = 'event'") == [(2,)]
        kinds = await pass_.rows("SELECT type FROM condition ORDER BY type")
        assert kinds == [("cookwala.safety.gas_leak",), ("cookwala.safety.smoke",)]
        assert await pass_.rows("SELECT * FROM subject") == []
        assert pass_.kitchen.open_work.get("exe-1") == before, "told of what is not on disk"
        monkeypatch.undo()
        assert pass_.rebuilt().ok


@pytest.mark.parametrize("ending", [b"\n", b" \r\n\t "])
async def test_white_space_around_an_event_comes_back_from_the_log_as_it_was_taken(
    tmp_path: Path, ending: bytes
) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        await connected(kitchen)
        smoke = event(
            "hob",
            "s-1",
            "safety.smoke",
            {"level": "alarm", "action": "none"},
            subject="hob",
            cookwalapriority="safety",
        )
        job = {"request": "req-1", "state": "running", "x-aboyeur-boot": "b"}
        early = event("hob", "e-1", "execution.state_changed", job, subject="job-1", cookwalaseq=5)
        await say(kitchen, "hob", [early, smoke], ending)
        await taken(kitchen.household, "e-1", "s-1")
        replay = Projector("home", event_registry()).replay
        report = await anyio.to_thread.run_sync(
            lambda: check(kitchen.household.folder.database, replay, TABLES)
        )
        assert report.ok, report


def started() -> tuple[ExecutionAsked, StartSending]:
    """An order for the hob whose start is on its way."""
    forward = ExecuteRequest(
        core="0.2.0",
        kind="ExecuteRequest",
        id="exe-1.1",
        recipe="cw:cookwala.ai:example-koshari",
        recipe_hash="sha256:" + "0" * 64,
        requested_by=OWNER,
        idempotency_key="key-exe-1.1",
    )
    asked = ExecutionAsked(
        execution="exe-1",
        request="{}",
        request_id="order-1",
        principal=OWNER,
        requested_by=OWNER,
        recipe=forward.recipe,
        recipe_hash=forward.recipe_hash,
        key="key-order-1",
        body_hash="0" * 64,
        device="hob",
        forward=forward,
    )
    return asked, StartSending(execution="exe-1", attempt=1)


def reported(name: str, state: str, seq: int | None) -> bytes:
    """The hob's execution changed; the event says nothing of a boot."""
    data = {"request": "exe-1.1", "state": state}
    numbered = {} if seq is None else {"cookwalaseq": seq}
    return json.dumps(
        event("hob", name, "execution.state_changed", data, subject="job-1", **numbered)
    ).encode()


ANSWER = DeviceRead(
    device="hob",
    ref="exe-1.1",
    why="start",
    device_execution="job-1",
    report=DeviceReport(state="accepted", seq=0, boot="b-1"),
)


async def as_held(pass_: Counter) -> tuple[str, str, str, int]:
    ((body,),) = await pass_.rows("SELECT body FROM execution")
    ((phase,),) = await pass_.rows("SELECT phase FROM attempt")
    ((parked,),) = await pass_.rows("SELECT count(*) FROM parked")
    execution = read_execution(body)
    return execution.state, phase, execution.waiting.reason if execution.waiting else "", parked


@pytest.mark.parametrize("first", ["answer", "events"])
async def test_events_without_a_boot_count_whether_the_starts_answer_comes_before_or_after_them(
    tmp_path: Path, first: str
) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB, *started()])
        if first == "answer":
            await pass_.record([ANSWER])
        for said in (reported("e-1", "preparing", 1), reported("e-2", "failed", 2)):
            await pass_.take(delivery("hob", said))
        if first == "events":
            await pass_.record([ANSWER])
        assert await as_held(pass_) == ("failed", "closed", "", 0)
        assert pass_.rebuilt().ok


async def test_an_unnumbered_report_after_the_end_opens_nothing_again(tmp_path: Path) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB, *started(), ANSWER])
        for said in (
            reported("e-1", "preparing", 1),
            reported("e-2", "failed", 2),
            reported("e-3", "preparing", None),
        ):
            await pass_.take(delivery("hob", said))
        assert await as_held(pass_) == ("failed", "closed", "", 0)
        assert pass_.kitchen.open_work.get("exe-1") is None


async def test_a_start_that_the_device_refused_is_not_given_up_afterwards(tmp_path: Path) -> None:
    async with counter(tmp_path) as pass_:
        await pass_.record([HOB, *started()])
        await pass_.take(delivery("hob", reported("e-1", "refused", 0)))
        await pass_.record([StartGivenUp(execution="exe-1", attempt=1, delivered=True, detail="late")])
        assert await as_held(pass_) == ("refused", "closed", "", 0)


# --- Quotas ---------------------------------------------------------------------------------------------


async def test_what_waited_at_the_broker_is_no_devices_excess(tmp_path: Path) -> None:
    async with counter(tmp_path, quotas=Quotas(events_per_device_per_minute=5)) as pass_:
        await pass_.record([HOB])

        def online(name: str) -> Delivery:
            return delivery(
                "hob", json.dumps(event("hob", name, "device.online", {}, subject="hob")).encode()
            )

        await pass_.take(*(online(f"old-{number}") for number in range(20)), live=False)
        assert await pass_.quarantined() == {}
        await pass_.take(*(online(f"new-{number}") for number in range(8)))
        assert await pass_.quarantined() == {"quota": 3}


async def test_a_device_that_asks_without_end_is_heard_so_often_and_answered_all_at_once(
    tmp_path: Path,
) -> None:
    hob = ScriptedDevice("hob")
    beside, most_beside = 0, 0

    async def present(word: PresenceWord) -> None:
        nonlocal beside, most_beside
        beside += 1
        most_beside = max(most_beside, beside)
        await anyio.sleep(0.2)
        beside -= 1

    hob.on["present"] = present
    quotas = Quotas(open_subjects_per_device=50)
    async with house(tmp_path, hob, changes={"quotas": quotas}) as kitchen:
        await connected(kitchen)
        await say(kitchen, "hob", [question(f"q-{number}", f"job-{number}") for number in range(600)])

        async def all_in() -> bool:
            return (await quarantined(kitchen)).get("quota") == 550

        await until(all_in)
        async with kitchen.client() as http:
            needs = (await http.get("/v1/needs")).json()["needs"]
            assert len(needs) == 50
            began = anyio.current_time()
            answer = await http.post("/v1/presence", json={"present": True})
            took_s = anyio.current_time() - began
        assert len(answer.json()["answered"]) == 50
        assert most_beside > 10
        assert took_s < 50 * 0.2 / 2, "one after the other"
        await say(kitchen, "hob", [question("q-again", "job-1")])
        await taken(kitchen.household, "q-again")


# --- What people send -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"device": "hob", "type": "a." + "x" * 70_000}, 400),
        ({"device": "h" * 70_000, "type": "cookwala.safety.smoke"}, 400),
        ({"device": "hob", "type": "a.\x00#/+"}, 404),
        ({"device": "../#", "type": "cookwala.safety.smoke"}, 404),
        ({"device": "hob", "type": "cookwala.safety.smoke"}, 404),
        ({"device": "", "type": ""}, 400),
    ],
)
async def test_an_end_of_what_never_began_poisons_nothing(
    tmp_path: Path, body: dict[str, str], status: int
) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        async with kitchen.client() as http:
            answer = await http.post("/v1/conditions/end", json=body)
        assert answer.status_code == status, answer.text
        assert rows(kitchen.household, "SELECT * FROM log WHERE kind = 'condition.ended'") == []
        assert await alive(kitchen)


POISON = {
    "a wildcard": "INSERT INTO outbox (kitchen, topic, retain, body) VALUES ('home', 'a/#', 0, 'x')",
    "a topic of 70,000": "INSERT INTO outbox (kitchen, topic, retain, body) "
    "VALUES ('home', replace(hex(zeroblob(35000)), '00', 'xx'), 0, 'x')",
    "a body of 700 kB": "INSERT INTO outbox (kitchen, topic, retain, body) "
    "VALUES ('home', 'cookwala/home/x/y', 0, hex(zeroblob(350000)))",
    "no text": "INSERT INTO outbox (kitchen, topic, retain, body) "
    "VALUES ('home', 'cookwala/home/x/y', 0, CAST(x'fffe' AS TEXT))",
    "a topic of no text": "INSERT INTO outbox (kitchen, topic, retain, body) "
    "VALUES ('home', CAST(x'fffe' AS TEXT), 0, 'x')",
}


@pytest.mark.parametrize("name", POISON)
async def test_a_row_that_no_broker_carries_is_told_and_passed_over(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        await connected(kitchen)
        alter(kitchen.household, POISON[name])
        assert await alive(kitchen)

        async def through() -> bool:
            return rows(kitchen.household, "SELECT count(*) FROM outbox") == [(0,)]

        await until(through)
        if name != "no text":  # bytes are bytes to a broker
            assert "cannot be published" in caplog.text
        assert "not connected to the broker" not in caplog.text
        assert MOST_PAYLOAD_BYTES < 700_000


async def test_what_no_broker_carries_is_never_stored_for_it(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")

    async def begin(request: ExecuteRequest) -> ExecutionStatus:
        await hob.begin(request)
        return hob.put(request.id, "needs_human", human_needed=HumanNeeded(why="look " * 100_000))

    hob.on["start"] = begin
    async with house(tmp_path, hob) as kitchen:
        await connected(kitchen)
        alter(kitchen.household, "CREATE TABLE written (bytes INTEGER)")
        alter(
            kitchen.household,
            "CREATE TRIGGER watch AFTER INSERT ON outbox BEGIN "
            "INSERT INTO written VALUES (length(CAST(new.body AS BLOB))); END",
        )
        async with kitchen.client() as http:
            execution = (await http.post("/v1/executions", json=kitchen.order())).json()["id"]
        await shows(kitchen, execution, "needs_human")
        assert await alive(kitchen)
        ((widest,),) = rows(kitchen.household, "SELECT max(bytes) FROM written")
        assert 0 < widest <= MAX_EVENT_BYTES


async def test_a_person_an_agent_and_a_device_never_share_a_name(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        token, _ = await kitchen.household.add_agent("planner")
        del token
        async with kitchen.client() as http:
            assert (await http.post("/v1/people", json={"id": "ben"})).status_code == 201
            for taken_by in ("hob", "planner", "ben"):
                answer = await http.post("/v1/people", json={"id": taken_by})
                assert answer.status_code == 409, taken_by
            for taken_by in ("planner", "ben", "hob"):
                answer = await http.post("/v1/devices", json={"name": taken_by, "url": hob.url})
                assert answer.status_code == 409, taken_by
            for taken_by in ("hob", "ben", OWNER):
                mandate = kitchen.household.mandate(taken_by, ("start_cooking",), LASTS)
                answer = await http.post("/v1/mandates", json=mandate)
                assert answer.status_code in (409, 422), taken_by
        assert rows(kitchen.household, "SELECT actor, role FROM token ORDER BY actor") == [
            ("ben", "person"),
            ("hob", "device"),
            (OWNER, "owner"),
            ("planner", "agent"),
        ]


async def test_of_three_who_want_one_name_at_once_one_gets_it(tmp_path: Path) -> None:
    hob = ScriptedDevice("hob")
    async with house(tmp_path, hob) as kitchen:
        codes: list[int] = []
        mandate = kitchen.household.mandate("sam", ("start_cooking",), LASTS)

        async def ask(path: str, body: Any) -> None:
            async with kitchen.client() as http:
                codes.append((await http.post(path, json=body)).status_code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "/v1/people", {"id": "sam"})
            tasks.start_soon(ask, "/v1/mandates", mandate)
            tasks.start_soon(ask, "/v1/people", {"id": "sam"})
        assert codes.count(201) == 1, codes
        assert len(rows(kitchen.household, "SELECT role FROM token WHERE actor = 'sam'")) == 1


async def test_two_owners_cannot_remove_each_other_at_once(tmp_path: Path) -> None:
    hurry: list[bool] = []

    class Slow:
        """So slow to write that both have been let in before either is gone."""

        def __init__(self, store: Store) -> None:
            self.read = store.read
            self.store = store

        async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
            if hurry:
                await anyio.sleep(0.5)
            return await self.store.run(work)

    async with house(tmp_path, ScriptedDevice("hob"), store=Slow) as kitchen:
        async with kitchen.client() as http:
            answer = await http.post("/v1/people", json={"id": "person:ben", "role": "owner"})
        ben = answer.json()["token"]
        codes: list[int] = []
        hurry.append(True)

        async def remove(token: str, person: str) -> None:
            async with kitchen.client(token) as http:
                codes.append((await http.delete(f"/v1/people/{person}")).status_code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(remove, kitchen.household.token, "person:ben")
            tasks.start_soon(remove, ben, OWNER)
        assert sorted(codes) == [204, 409]
        assert rows(kitchen.household, "SELECT count(*) FROM person WHERE role = 'owner'") == [(1,)]


# --- A store that fails ---------------------------------------------------------------------------------


class Failing:
    """A store whose next reads fail, as many as a test says."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reads = 0
        """How many reads are still to fail."""

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self.store.run(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self.reads:
            self.reads -= 1
            raise StoreFailed("disk I/O error")
        return await self.store.read(work)


async def test_a_revoked_mandate_opens_nothing_though_its_revocation_could_not_be_read_back(
    tmp_path: Path,
) -> None:
    stores: list[Failing] = []

    def failing(store: Store) -> Failing:
        stores.append(Failing(store))
        return stores[-1]

    async with house(tmp_path, ScriptedDevice("hob"), store=failing) as kitchen:
        token, mandate = await kitchen.household.add_agent("agent:planner")
        async with kitchen.client() as http, kitchen.client(token) as agent:
            (known,) = (await http.get("/v1/mandates")).json()["mandates"]
            assert (await agent.get("/v1/executions")).status_code == 200
            for store in stores:
                store.reads = 1_000_000
            answer = await http.delete(f"/v1/mandates/{known['hash']}")
            assert answer.status_code == 503, "nobody says what is not certain"
            assert rows(kitchen.household, "SELECT revoked FROM mandate") == [(1,)], "or this shows nothing"
            order = kitchen.order(requestedBy="agent:planner", mandate=mandate)
            assert (await agent.post("/v1/executions", json=order)).status_code == 503
            assert (await agent.get("/v1/executions")).status_code == 503
            for store in stores:
                store.reads = 0
            assert (await agent.post("/v1/executions", json=order)).status_code == 401
            assert (await agent.get("/v1/executions")).status_code == 401
            assert (await http.get("/v1/mandates")).json()["mandates"] == []


async def test_a_removed_device_is_not_let_in_though_its_removal_could_not_be_read_back(
    tmp_path: Path,
) -> None:
    stores: list[Failing] = []

    def failing(store: Store) -> Failing:
        stores.append(Failing(store))
        return stores[-1]

    async with house(tmp_path, ScriptedDevice("hob"), store=failing) as kitchen:
        await connected(kitchen)
        for store in stores:
            store.reads = 1_000_000
        async with kitchen.client() as http:
            assert (await http.delete("/v1/devices/hob")).status_code == 503
        with pytest.raises(TransportLost):
            await say(kitchen, "hob", [event("hob", "e-1", "device.online", {}, subject="hob")])
        for store in stores:
            store.reads = 0
        async with kitchen.client() as http:

            async def gone() -> bool:
                # Without anybody's doing: the hub itself reads it anew.
                return (await http.get("/v1/capabilities")).json()["capabilities"].get("ops", []) == []

            await until(gone)
        with pytest.raises(TransportLost):
            await say(kitchen, "hob", [event("hob", "e-2", "device.online", {}, subject="hob")])


async def test_health_says_when_the_store_fails_and_when_it_works_again(tmp_path: Path) -> None:
    stores: list[Failing] = []

    def failing(store: Store) -> Failing:
        stores.append(Failing(store))
        return stores[-1]

    async with house(tmp_path, ScriptedDevice("hob"), store=failing) as kitchen:
        await connected(kitchen)
        async with kitchen.client(None) as http:
            well = (await http.get("/health")).json()
            assert (well["status"], well["store"]) == ("ok", "ok")
            for store in stores:
                store.reads = 1_000_000
            answer = await http.get("/health")
            assert answer.status_code == 200
            assert (answer.json()["status"], answer.json()["store"]) == ("degraded", "failing")
            for store in stores:
                store.reads = 0
            assert (await http.get("/health")).json()["store"] == "ok"


# --- A broker that keeps what it should give ------------------------------------------------------------


class Swallowing:
    """A transport whose first connection never delivers anything, and confirms all."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.connections = 0

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        async with self.inner.connect() as session:
            self.connections += 1
            yield _Silent(session) if self.connections == 1 else session


class _Silent:
    def __init__(self, inner: Session) -> None:
        self.subscribe = inner.subscribe
        self.acknowledge = inner.acknowledge
        self.publish = inner.publish
        self.generation = inner.generation

    async def batch(self, most: int) -> list[Delivery]:
        await anyio.sleep_forever()
        return []


async def test_a_marker_that_does_not_come_back_ends_the_connection_and_the_next_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bus, "MARKER_WITHIN_S", 0.5)
    made: list[Swallowing] = []

    def swallowing(inner: Transport) -> Swallowing:
        made.append(Swallowing(inner))
        return made[-1]

    async with house(tmp_path, ScriptedDevice("hob"), transport=swallowing) as kitchen:
        await connected(kitchen)
        assert made[0].connections == 2
        assert "the marker did not come back" in caplog.text
        assert await alive(kitchen)


# --- A damaged row --------------------------------------------------------------------------------------


async def test_an_execution_that_cannot_be_read_any_more_does_not_end_the_watch_over_devices(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path, ScriptedDevice("hob")) as kitchen:
        execution = await cooking(kitchen)
        await connected(kitchen)
        alter(kitchen.household, f"UPDATE execution SET body = '!' WHERE id = '{execution}'")
        beat = event("hob", "b-1", "device.heartbeat", {"intervalS": 1, "counter": 1}, subject="hob")
        await say(kitchen, "hob", [beat])

        async def life() -> str:
            async with kitchen.client() as http:
                return str((await http.get("/v1/devices")).json()["devices"][0]["liveness"])

        async def silent() -> bool:
            return await life() == "lost"

        await until(silent)

        async def told() -> bool:
            return "that hob is lost cannot be recorded" in caplog.text

        await until(told)
        assert await alive(kitchen)
        await say(kitchen, "hob", [{**beat, "id": "b-2"}])

        async def back() -> bool:
            lives = rows(kitchen.household, "SELECT kind FROM log WHERE kind = 'device.life'")
            return await life() == "alive" and len(lives) >= 2

        await until(back)
