"""A flipped byte is reported by the commands a person uses: at start, by the check, and when she goes on."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hub import entries as kinds
from hub.records.log.head import NEWEST_ROWS, HeadFile
from hub.store.database import open_writer
from hub.store.writer import Journal, Transaction, commit_group
from tests.crash.evening import DEVICES, an_evening, entries
from tests.household import OWNER, ROOT, Household, HubProcess
from tests.mosquitto_process import Mosquitto


def flip(path: Path, place: int) -> None:
    """Change one bit of one byte."""
    raw = bytearray(path.read_bytes())
    raw[place] ^= 0x10
    path.write_bytes(raw)


def find(path: Path, text: bytes, *, last: bool = True) -> int:
    """Where `text` stands in a file."""
    raw = path.read_bytes()
    place = raw.rfind(text) if last else raw.find(text)
    assert place >= 0, text
    return place


def copied(household: Household, to: Path) -> Path:
    """A copy of the store and its head, while no hub runs."""
    to.mkdir()
    for file in household.folder.root.glob("h*"):
        shutil.copy(file, to / file.name)
    return to


def put_back(copy: Path, household: Household) -> None:
    """Make the store what it was when it was copied."""
    root, name = household.folder.root, household.folder.database.name
    for file in root.glob(f"{name}*"):
        file.unlink()
    for file in copy.iterdir():
        if file.name != "hub.log":
            shutil.copy(file, root / file.name)


async def ends_at_start(household: Household) -> str:
    """Run `aboyeur serve`, which must end by itself with exit code 1; its last words."""
    hub = HubProcess(household)
    before = hub.output()
    hub.start()
    try:
        assert await hub.wait_dead() == 1, hub.output()
    finally:
        hub.kill()
    said = hub.output().removeprefix(before)
    print(said)  # shown where what follows fails
    assert "Traceback" not in said
    return said


def check(household: Household) -> tuple[int, str]:
    """`aboyeur rebuild --check`: exit code and what it printed."""
    main = "from hub.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, "--data", str(household.folder.root), "rebuild", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout


@pytest.fixture
async def cooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> Household:
    """A household that cooked a dish, its hub closed."""
    async with an_evening(tmp_path, monkeypatch, mosquitto_factory(devices=DEVICES)) as evening:
        order = await evening.order("lentil-soup")
        await evening.served(order.execution)
        await evening.check()
    with closing(sqlite3.connect(evening.household.folder.database)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return evening.household


@pytest.mark.slow
@pytest.mark.mosquitto
async def test_a_flipped_byte_in_a_row_or_its_payload_stops_the_start_and_is_found_by_the_check(
    cooked: Household, tmp_path: Path
) -> None:
    path = cooked.folder.database
    whole = copied(cooked, tmp_path / "whole")
    with closing(sqlite3.connect(path)) as database:
        seq, digest, body = database.execute(
            "SELECT seq, payload_digest, body FROM log JOIN payload USING (log_id, seq) "
            "WHERE kind = 'log.collected' ORDER BY seq DESC LIMIT 1"
        ).fetchone()
    execution = json.dumps(json.loads(body)["execution"]).encode()
    places = {
        "altered_row": find(path, digest.encode()) + 10,
        "altered_payload": find(path, execution + b',"attempt":1,"verd') + 3,
    }
    for reason, place in places.items():
        put_back(whole, cooked)
        flip(path, place)
        said = await ends_at_start(cooked)
        assert "the hub cannot start: the event log is damaged" in said
        assert f"{reason} at {seq}" in said
        assert "aboyeur rebuild --check" in said and "aboyeur restore" in said and "--accept-damage" in said
        before = path.read_bytes()
        code, printed = check(cooked)
        assert code == 1 and f"{reason} at {seq}" in printed
        assert path.read_bytes() == before

    # She takes note, and the hub goes on and says who did.
    hub = HubProcess(cooked)
    hub.start("--accept-damage")
    try:
        await hub.wait_ready()
        (entry,) = entries(cooked, "damage.accepted")
        assert entry["by"] == OWNER
        assert any(finding.startswith("altered_payload") for finding in entry["findings"])
        async with cooked.client() as http:
            assert (await http.get("/v1/executions")).status_code == 200
    finally:
        ended = hub.stop()
        print(hub.output())
    assert ended == 0
    # What was damaged still is, and the check of the whole goes on saying so.
    code, printed = check(cooked)
    assert code == 1 and f"altered_payload at {seq}" in printed

    # In an old row the start does not find it; the check of the whole does.
    put_back(whole, cooked)
    _grow(cooked, NEWEST_ROWS + 50)
    assert check(cooked)[0] == 0
    with closing(sqlite3.connect(path)) as database:
        (digest,) = database.execute("SELECT payload_digest FROM log WHERE seq = 3").fetchone()
    flip(path, find(path, digest.encode()) + 10)
    code, printed = check(cooked)
    assert code == 1 and "altered_row at 3" in printed


@pytest.mark.mosquitto
async def test_a_flipped_byte_in_the_wal_of_a_killed_hub_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    async with an_evening(tmp_path, monkeypatch, mosquitto_factory(devices=DEVICES)) as evening:
        order = await evening.order("lentil-soup")
        await evening.served(order.execution)
        process = evening.hub.process
        evening.hub.kill()
        assert process is not None and process.returncode == -signal.SIGKILL
        household = evening.household
        root = household.folder.root
        whole = copied(household, tmp_path / "whole")
        wal = root / (household.folder.database.name + "-wal")
        size = wal.stat().st_size
        assert size > 100_000
        for part in (3, 2):
            flip(wal, size // part)
            said = await ends_at_start(household)
            assert "log_shorter_than_head" in said or "damaged" in said
            code, printed = check(household)
            assert code == 1 and "log_shorter_than_head" in printed
            put_back(whole, household)
        # Unharmed it starts, and nothing is missing.
        await evening.start()
        await evening.check()


def _grow(household: Household, rows: int) -> None:
    """Add entries as the hub would, so that what was there is no longer the newest part."""
    entry = kinds.PersonPresent(id="person:anna")

    def note(transaction: Transaction) -> None:
        for _ in range(rows):
            transaction.append(kinds.kind_of(entry), kinds.encode(entry))

    connection = open_writer(household.folder.database)
    with HeadFile(household.folder.head) as keeper, closing(connection):
        (log_id,) = connection.execute("SELECT value FROM meta WHERE name = 'log_id'").fetchone()
        commit_group(
            connection, Journal(log_id, household.settings.kitchen, keeper), [note], "2026-03-01T12:00:00Z"
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
