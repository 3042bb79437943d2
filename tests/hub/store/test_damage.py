"""Whatever happens to the log on disk is reported: at the start for its newest part, by the check for all."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hub.records.log.chain import Entry, Finding, Head, chain_head, verify
from hub.records.log.head import NEWEST_ROWS, HeadFile, HeadUnreadable, check_at_start
from hub.store.database import StoreUnusable, open_reader, open_writer
from hub.store.rebuild import Report
from hub.store.rebuild import check as rebuild_check

LOG = "log-00000000000000000001"

Filled = Callable[..., Path]


def ignore(connection: sqlite3.Connection, entry: Entry) -> None:
    """A projection of nothing."""


def whole(folder: Path) -> Report:
    return rebuild_check(folder / "hub.db", ignore, ["cursor"])


def at_start(folder: Path) -> list[Finding]:
    connection = open_writer(folder / "hub.db")
    keeper = HeadFile(folder / "head")
    try:
        return check_at_start(connection, LOG, keeper)
    finally:
        connection.close()
        keeper.close()


def change(folder: Path, *statements: str) -> None:
    connection = open_writer(folder / "hub.db")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def flip(path: Path, position: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[position] ^= 0x01
    path.write_bytes(raw)


def flip_in(path: Path, text: bytes) -> None:
    flip(path, path.read_bytes().index(text) + len(text) - 1)


def reasons(findings: list[Finding]) -> list[tuple[str, int | None]]:
    return [(finding.reason, finding.seq) for finding in findings]


def test_a_whole_log_gives_no_finding(filled: Filled) -> None:
    folder = filled(30)
    assert at_start(folder) == []
    report = whole(folder)
    assert report.ok
    assert report.entries == 30


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE log SET kind = 'test.other' WHERE seq = 15", [("altered_row", 15)]),
        ("UPDATE log SET at = '2026-03-01T12:00:01.000Z' WHERE seq = 15", [("altered_row", 15)]),
        ("UPDATE log SET kitchen = 'away' WHERE seq = 15", [("altered_row", 15)]),
        ("UPDATE log SET kind = x'ff' WHERE seq = 15", [("altered_row", 15)]),
        ("UPDATE log SET kind = cast(x'ff' AS TEXT) WHERE seq = 15", [("unreadable", 15)]),
        ("UPDATE log SET prev = 'x' WHERE seq = 15", [("broken_prev", 15), ("altered_row", 15)]),
        ("UPDATE log SET hash = 'x' WHERE seq = 15", [("altered_row", 15), ("broken_prev", 16)]),
        (
            "UPDATE log SET payload_digest = 'x' WHERE seq = 15",
            [("altered_row", 15), ("altered_payload", 15)],
        ),
        ("DELETE FROM log WHERE seq = 15", [("gap", 15), ("orphan_payload", 15)]),
        ("DELETE FROM log WHERE seq < 5", [("gap", 1), *[("orphan_payload", seq) for seq in range(1, 5)]]),
        ("UPDATE payload SET body = x'00' WHERE seq = 15", [("altered_payload", 15)]),
        ("UPDATE payload SET body = 'entry 15' WHERE seq = 15", [("altered_payload", 15)]),
        ("DELETE FROM payload WHERE seq = 15", [("missing_payload", 15)]),
        (
            "UPDATE log SET log_id = 'other' WHERE seq = 15",
            [("gap", 15), ("orphan_payload", 15), ("other_log", None)],
        ),
    ],
)
def test_each_alteration_is_named_with_its_row(filled: Filled, statement: str, expected: list) -> None:
    folder = filled(30)
    change(folder, statement)
    assert reasons(list(whole(folder).findings)) == expected
    of_rows = [one for one in expected if one[0] not in ("orphan_payload", "other_log")]
    assert reasons(at_start(folder)) == of_rows


def test_an_erased_payload_leaves_the_chain_whole(filled: Filled) -> None:
    folder = filled(30)
    change(folder, "UPDATE payload SET body = NULL WHERE seq = 15")
    report = whole(folder)
    assert report.findings == ()
    assert (report.entries, report.erased) == (29, 1)


def test_rows_cut_off_at_the_end_are_reported_and_not_forgotten_by_looking(filled: Filled) -> None:
    folder = filled(30)
    change(folder, "DELETE FROM log WHERE seq > 25", "DELETE FROM payload WHERE seq > 25")
    for _ in range(2):
        assert reasons(at_start(folder)) == [("log_shorter_than_head", 30)]
        assert reasons(list(whole(folder).findings)) == [("log_shorter_than_head", 30)]


def test_a_log_written_anew_with_a_good_chain_of_its_own_is_told_by_its_head(
    filled: Filled, tmp_path: Path
) -> None:
    folder = filled(30)
    (tmp_path / "kept").write_bytes((folder / "head").read_bytes())
    change(folder, "DELETE FROM log WHERE seq > 20", "DELETE FROM payload WHERE seq > 20")
    filled(10)
    connection = open_reader(folder / "hub.db")
    assert verify(connection, LOG, 1, 30) == []
    connection.close()
    # 30 rows as before and a chain that holds, but the last ten are others than those once confirmed
    (folder / "head").write_bytes((tmp_path / "kept").read_bytes())
    assert reasons(at_start(folder)) == [("other_hash_at_head", 30)]
    assert reasons(list(whole(folder).findings)) == [("other_hash_at_head", 30)]


def test_the_start_looks_at_the_newest_thousand_rows_and_the_check_at_all(filled: Filled) -> None:
    folder = filled(NEWEST_ROWS + 10, group=200)
    change(folder, "UPDATE payload SET body = x'00' WHERE seq IN (10, 11)")
    assert reasons(at_start(folder)) == [("altered_payload", 11)]
    assert reasons(list(whole(folder).findings)) == [("altered_payload", 10), ("altered_payload", 11)]


def test_a_flipped_byte_in_a_row_or_a_payload_on_disk_is_reported_by_start_and_check(filled: Filled) -> None:
    for text in (b"test.noted", b"entry 17", b"2026-03-01T12:00:00.000Z", b"home"):
        folder = filled(30)
        flip_in(folder / "hub.db", text)
        assert at_start(folder) != [], text
        assert not whole(folder).ok, text
        shutil.rmtree(folder)


def test_a_flipped_byte_anywhere_in_the_database_is_reported_or_changed_nothing(filled: Filled) -> None:
    folder = filled(60)
    path = folder / "hub.db"
    original = path.read_bytes()

    def content() -> list[tuple[object, ...]]:
        connection = open_reader(path)
        try:
            return connection.execute(
                "SELECT log.*, body FROM log JOIN payload USING (log_id, seq) ORDER BY seq"
            ).fetchall()
        finally:
            connection.close()

    expected = content()
    generator = random.Random(7)
    reported = 0
    for position in generator.sample(range(len(original)), 250):
        raw = bytearray(original)
        raw[position] ^= 1 << generator.randrange(8)
        path.write_bytes(raw)
        try:
            ok = whole(folder).ok
        except StoreUnusable:
            ok = False
        reported += not ok
        assert not ok or content() == expected, position
    assert reported >= 20


def test_a_truncated_database_is_reported(filled: Filled) -> None:
    folder = filled(400)
    path = folder / "hub.db"
    whole_file = path.read_bytes()
    pages = len(whole_file) // 4096
    for keep in (0, 1, pages // 2, pages - 1):
        for look in (lambda: whole(folder).ok, lambda: at_start(folder) == []):
            path.write_bytes(whole_file[: keep * 4096])
            try:
                unnoticed = look()
            except StoreUnusable:
                unnoticed = False
            assert not unnoticed, keep


@pytest.fixture
def with_wal(tmp_path: Path, killed: Callable[..., str]) -> Path:
    """A data folder whose hub was killed: 40 acknowledged entries, all in the write-ahead log only."""
    folder = tmp_path / "killed"
    folder.mkdir()
    said = killed(
        """
        import os, signal, sys
        from pathlib import Path
        from conftest import NumberedIds
        from hub.records.log.head import HeadFile
        from hub.store import migrations
        from hub.store.database import open_writer
        from hub.store.writer import Journal, commit_group, log_identity
        folder = Path(sys.argv[1])
        connection = open_writer(folder / "hub.db")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        migrations.migrate(connection, migrations.available())
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        journal = Journal(log_identity(connection, NumberedIds()), "home", HeadFile(folder / "head"))
        for number in range(40):
            commit_group(
                connection, journal, [lambda transaction: transaction.append("test.noted", b"x" * 500)], "t"
            )
            print(number + 1, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        folder,
    )
    assert said.splitlines()[-1] == "40"
    assert (folder / "hub.db-wal").stat().st_size > 40 * 4096
    return folder


def test_a_killed_hub_loses_nothing_it_acknowledged(with_wal: Path) -> None:
    assert at_start(with_wal) == []
    assert whole(with_wal).entries == 40


def test_a_flipped_byte_in_the_write_ahead_log_is_reported_by_start_and_by_check(with_wal: Path) -> None:
    size = (with_wal / "hub.db-wal").stat().st_size
    for place in range(20):
        folder = with_wal.with_name(f"flipped-{place}")
        shutil.copytree(with_wal, folder)
        # from its header over its middle to its last frame
        flip(folder / "hub.db-wal", 16 + place * (size - 20) // 20)
        before = {name: (folder / name).read_bytes() for name in ("hub.db", "hub.db-wal", "head")}
        # what SQLite's own check says of it is: all is well
        report = whole(folder)
        assert not report.ok, place
        assert {name: (folder / name).read_bytes() for name in before} == before
        assert any(finding.reason in ("log_shorter_than_head", "gap") for finding in report.findings), place
        assert "log_shorter_than_head" in [finding.reason for finding in at_start(folder)], place
        reader = open_reader(folder / "hub.db")
        assert reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        reader.close()


def test_a_log_longer_than_its_head_is_a_crash_between_the_two_and_the_head_follows(filled: Filled) -> None:
    folder = filled(30)
    older = (folder / "head").read_bytes()
    filled(10)
    (folder / "head").write_bytes(older)
    assert at_start(folder) == []
    kept = HeadFile(folder / "head").read()
    assert kept is not None
    assert kept.seq == 40


def test_rows_beyond_the_head_are_verified_before_the_head_follows(filled: Filled) -> None:
    folder = filled(30)
    older = (folder / "head").read_bytes()
    filled(NEWEST_ROWS + 50, group=500)
    (folder / "head").write_bytes(older)
    change(folder, "UPDATE log SET kind = 'test.other' WHERE seq = 35")
    assert reasons(at_start(folder)) == [("altered_row", 35)]
    assert (folder / "head").read_bytes() == older


def test_a_torn_head_leaves_the_older_one(tmp_path: Path) -> None:
    path = tmp_path / "head"
    keeper = HeadFile(path)
    keeper.write(Head(LOG, 1, "sha256:1"))
    keeper.write(Head(LOG, 2, "sha256:2"))
    before = path.read_bytes()
    keeper.write(Head(LOG, 3, "sha256:3"))
    after = path.read_bytes()
    changed = [place for place in range(len(after)) if before[place] != after[place]]
    for cut in range(changed[0], changed[-1] + 1, 7):
        path.write_bytes(after[:cut] + before[cut:])
        torn = HeadFile(path).read()
        # the write was torn in slot 1, where 1 stood before; slot 0 holds 2
        assert torn == Head(LOG, 2, "sha256:2"), cut
    path.write_bytes(after)
    assert HeadFile(path).read() == Head(LOG, 3, "sha256:3")


def test_a_head_goes_on_counting_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "head"
    for seq in range(1, 8):
        keeper = HeadFile(path)
        keeper.write(Head(LOG, seq, f"sha256:{seq}"))
        keeper.close()
        assert HeadFile(path).read() == Head(LOG, seq, f"sha256:{seq}")


def test_a_head_of_which_nothing_can_be_read_is_reported_not_replaced(filled: Filled) -> None:
    folder = filled(30)
    (folder / "head").write_bytes(bytes(8192))
    with pytest.raises(HeadUnreadable):
        HeadFile(folder / "head").read()
    assert reasons(at_start(folder)) == [("head_unreadable", None)]
    assert reasons(list(whole(folder).findings)) == [("head_unreadable", None), ("head_missing", 30)]
    assert (folder / "head").read_bytes() == bytes(8192)


def test_a_head_that_is_gone_is_reported(filled: Filled) -> None:
    folder = filled(30)
    (folder / "head").unlink()
    assert reasons(at_start(folder)) == [("head_missing", 30)]
    assert not (folder / "head").exists()


def test_another_database_put_in_place_is_reported(filled: Filled) -> None:
    folder = filled(30)
    change(folder, "UPDATE meta SET value = 'log-of-another' WHERE name = 'log_id'", "DELETE FROM log")
    assert "other_log" in [finding.reason for finding in whole(folder).findings]


def test_a_database_that_is_gone_is_reported_by_its_head(filled: Filled) -> None:
    folder = filled(30)
    (folder / "hub.db").unlink()
    filled(0)
    assert reasons(at_start(folder)) == [("log_shorter_than_head", 30)]


def test_findings_are_bounded(filled: Filled) -> None:
    folder = filled(300)
    change(folder, "UPDATE log SET kind = 'test.other'")
    connection = open_reader(folder / "hub.db")
    assert len(verify(connection, LOG, 1, 300)) == 100
    assert len(verify(connection, LOG, 1, 300, most=7)) == 7
    assert chain_head(connection, LOG).seq == 300
    connection.close()
