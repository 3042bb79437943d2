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

import anyio
import pytest

from hub.records.log.head import NEWEST_ROWS
from hub.store.writer import Journal, Transaction, commit_group
from tests.crash.evening import DEVICES, an_evening, entries
from tests.household import ROOT, Household, HubProcess
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
    assert check(evening.household) == (0, check(evening.household)[1])
    return evening.household


@pytest.mark.mosquitto
@pytest.mark.parametrize("where", ["row", "payload"])
async def test_a_flipped_byte_in_the_newest_part_stops_the_start_and_is_found_by_the_check(
    cooked: Household, where: str
) -> None:
    path = cooked.folder.database
    with closing(sqlite3.connect(path)) as database:
        seq, digest, body = database.execute(
            "SELECT seq, payload_digest, body FROM log JOIN payload USING (log_id, seq) "
            "WHERE kind = 'log.collected' ORDER BY seq DESC LIMIT 1"
        ).fetchone()
    if where == "row":
        flip(path, find(path, digest.encode()) + 10)
    else:
        flip(path, find(path, json.dumps(json.loads(body)["execution"]).encode() + b',"attempt":1,"verd') + 3)
    said = await ends_at_start(cooked)
    assert "the hub cannot start: the event log is damaged" in said
    reason = "altered_row" if where == "row" else "altered_payload"
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
        with anyio.fail_after(20):
            while not (accepted := entries(cooked, "damage.accepted")):
                await anyio.sleep(0.1)
        (entry,) = accepted
        assert entry["by"] == "person:anna"
        assert any(finding.startswith(reason) for finding in entry["findings"])
        async with cooked.client() as http:
            assert (await http.get("/v1/executions")).status_code == 200
    finally:
        assert hub.stop() == 0, hub.output()


@pytest.mark.mosquitto
async def test_a_flipped_byte_in_an_old_row_is_found_by_the_check_of_the_whole(cooked: Household) -> None:
    path = cooked.folder.database
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
        household, whole = evening.household, tmp_path / "whole"
        root = household.folder.root
        shutil.copytree(root, whole)
        wal = root / (household.folder.database.name + "-wal")
        size = wal.stat().st_size
        assert size > 100_000
        for part in (3, 2):
            flip(wal, size // part)
            said = await ends_at_start(household)
            assert "log_shorter_than_head" in said or "damaged" in said
            code, printed = check(household)
            assert code == 1 and "log_shorter_than_head" in printed
            for name in whole.iterdir():
                if name.is_file():
                    shutil.copy(name, root / name.name)
        # Unharmed it starts, and nothing is missing.
        await evening.start()
        await evening.check()


def _grow(household: Household, rows: int) -> None:
    """Add entries as the hub would, so that what was there is no longer the newest part."""
    from hub import entries as kinds
    from hub.records.log.head import HeadFile
    from hub.store.database import open_writer

    entry = kinds.PersonPresent(id="person:anna")

    def note(transaction: Transaction) -> None:
        for _ in range(rows):
            transaction.append(kinds.kind_of(entry), kinds.encode(entry))

    connection = open_writer(household.folder.database)
    with HeadFile(household.folder.head) as keeper, closing(connection):
        (log_id,) = connection.execute("SELECT value FROM meta WHERE name = 'log_id'").fetchone()
        commit_group(connection, Journal(log_id, household.settings.kitchen, keeper), [note], "2026-03-01T12:00:00Z")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
