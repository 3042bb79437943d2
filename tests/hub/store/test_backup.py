"""A backup made beside a running hub can be restored; a damaged one is noticed before it takes any place."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from hub.records.log.head import HeadFile, check_at_start
from hub.store.backup import BackupFailed, backup, restore
from hub.store.database import DataFolderLock, FolderInUse, StoreUnusable, open_reader

LOG = "log-00000000000000000001"

Filled = Callable[..., Path]


def entries(folder: Path) -> list[bytes]:
    connection = open_reader(folder / "hub.db")
    try:
        return [body for (body,) in connection.execute("SELECT body FROM payload ORDER BY seq")]
    finally:
        connection.close()


def change(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / "hub.db", isolation_level=None)
    connection.execute(statement)
    connection.close()


async def test_a_backup_beside_a_running_hub_is_whole_and_of_one_moment(tmp_path: Path, opened) -> None:
    data = tmp_path / "data"
    data.mkdir()
    async with opened(data) as store:
        stop = False
        written = 0

        async def work() -> None:
            nonlocal written
            while not stop:
                number = written
                await store.writer.submit(
                    lambda transaction, number=number: transaction.append("test.noted", b"%d" % number)
                )
                written += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            for number in range(4):
                await anyio.sleep(0.05)
                before = written
                findings = await anyio.to_thread.run_sync(
                    partial(backup, store.path, tmp_path / f"backup-{number}")
                )
                assert findings == []
                restored = tmp_path / f"restored-{number}"
                await anyio.to_thread.run_sync(restore, tmp_path / f"backup-{number}", restored)
                kept = entries(restored)
                assert len(kept) >= before > 0
                assert kept == [b"%d" % one for one in range(len(kept))]
            stop = True
    async with opened(tmp_path / "restored-0") as store:
        assert store.findings == []
        assert await store.writer.submit(lambda transaction: transaction.append("test.noted", b"after")) > 0


def test_a_backup_does_not_overwrite_and_leaves_nothing_half_done(filled: Filled, tmp_path: Path) -> None:
    folder = filled(30)
    target = tmp_path / "backup"
    backup(folder / "hub.db", target)
    with pytest.raises(BackupFailed, match="there already"):
        backup(folder / "hub.db", target)
    change(folder, "UPDATE log SET kind = 'test.other' WHERE seq = 3")
    with pytest.raises(BackupFailed, match="altered_row at 3"):
        backup(folder / "hub.db", tmp_path / "second")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["backup", "data"]
    assert sorted(one.name for one in target.iterdir()) == ["head", "hub.db"]
    assert all(one.stat().st_mode & 0o077 == 0 for one in [target, *target.iterdir()])


def test_a_damaged_log_can_be_backed_up_and_restored_when_told_and_says_so(
    filled: Filled, tmp_path: Path
) -> None:
    folder = filled(30)
    change(folder, "UPDATE log SET kind = 'test.other' WHERE seq = 3")
    target = tmp_path / "backup"
    assert [one.reason for one in backup(folder / "hub.db", target, even_damaged=True)] == ["altered_row"]
    with pytest.raises(BackupFailed, match="altered_row at 3"):
        restore(target, tmp_path / "restored")
    assert [one.reason for one in restore(target, tmp_path / "restored", even_damaged=True)] == [
        "altered_row"
    ]
    assert entries(tmp_path / "restored") == entries(folder)


def test_there_must_be_something_to_back_up(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="no such database"):
        backup(tmp_path / "hub.db", tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_a_restore_refuses_a_folder_that_holds_something_unless_told(filled: Filled, tmp_path: Path) -> None:
    folder = filled(30)
    backup(folder / "hub.db", tmp_path / "backup")
    filled(5)
    old = entries(folder)
    old_head = (folder / "head").read_bytes()
    with pytest.raises(BackupFailed, match="not empty"):
        restore(tmp_path / "backup", folder)
    assert entries(folder) == old
    restore(tmp_path / "backup", folder, replace=True)
    assert entries(folder) == [f"entry {number}".encode() for number in range(1, 31)]
    # what was replaced is kept
    assert entries(folder / "before-restore-1") == old
    assert (folder / "before-restore-1" / "head").read_bytes() == old_head
    restore(tmp_path / "backup", folder, replace=True)
    assert (folder / "before-restore-2").is_dir()


def test_no_write_ahead_log_of_the_old_database_is_played_into_the_restored_one(
    filled: Filled, tmp_path: Path
) -> None:
    folder = filled(30)
    backup(folder / "hub.db", tmp_path / "backup")
    (folder / "hub.db-wal").write_bytes(b"left behind by a kill")
    restore(tmp_path / "backup", folder, replace=True)
    assert not (folder / "hub.db-wal").exists()
    assert (folder / "before-restore-1" / "hub.db-wal").read_bytes() == b"left behind by a kill"


def test_a_restore_under_a_running_hub_is_refused(filled: Filled, tmp_path: Path) -> None:
    folder = filled(30)
    backup(folder / "hub.db", tmp_path / "backup")
    with DataFolderLock(folder), pytest.raises(FolderInUse):
        restore(tmp_path / "backup", folder, replace=True)


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("altered payload", "UPDATE payload SET body = x'00' WHERE seq = 2", "altered_payload at 2"),
        ("shortened", "DELETE FROM log WHERE seq > 20", "log_shorter_than_head"),
        ("newer program", "PRAGMA user_version = 9000", "schema 9000"),
        ("no log", "DELETE FROM meta", "no log"),
    ],
)
def test_a_bad_backup_is_noticed_before_anything_is_in_place(
    filled: Filled, tmp_path: Path, name: str, damage: str, said: str
) -> None:
    folder = filled(30)
    backup(folder / "hub.db", tmp_path / "backup")
    change(tmp_path / "backup", damage)
    before = entries(folder)
    for target, replace in ((tmp_path / "fresh", False), (folder, True)):
        with pytest.raises(BackupFailed, match=said):
            restore(tmp_path / "backup", target, replace=replace)
    assert [one.name for one in (tmp_path / "fresh").iterdir()] == ["hub.lock"]
    assert entries(folder) == before
    assert not (folder / "before-restore-1").exists()


@pytest.mark.parametrize("name", ["hub.db", "head"])
def test_a_backup_of_which_a_file_is_missing_or_rubbish_is_refused(
    filled: Filled, tmp_path: Path, name: str
) -> None:
    folder = filled(30)
    backup(folder / "hub.db", tmp_path / "backup")
    (tmp_path / "backup" / name).write_bytes(b"rubbish" * 2000)
    with pytest.raises(BackupFailed):
        restore(tmp_path / "backup", tmp_path / "fresh")
    (tmp_path / "backup" / name).unlink()
    with pytest.raises(BackupFailed, match=f"has no {name}"):
        restore(tmp_path / "backup", tmp_path / "fresh")


@pytest.mark.parametrize("stop_after", range(6))
def test_a_restore_cut_off_anywhere_is_finished_or_noticed_at_the_next_start(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_after: int
) -> None:
    folder = filled(30)
    backup(folder / "hub.db", tmp_path / "backup")
    filled(5)
    assert len(entries(folder)) == 35  # leaves -wal and -shm behind, as a kill does
    renamed = 0
    rename = Path.rename

    def cut_off(self: Path, target: Path) -> Path:
        nonlocal renamed
        if renamed == stop_after:
            raise KeyboardInterrupt
        renamed += 1
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", cut_off)
    finished = True
    try:
        restore(tmp_path / "backup", folder, replace=True)
    except KeyboardInterrupt:
        finished = False
    monkeypatch.undo()
    assert finished == (stop_after >= 5)
    # what the next start would see
    filled(0)
    connection = sqlite3.connect(folder / "hub.db", isolation_level=None)
    findings = check_at_start(connection, LOG, HeadFile(folder / "head"))
    count = connection.execute("SELECT count(*) FROM log").fetchone()[0]
    connection.close()
    if finished:
        assert (findings, count) == ([], 30)
    else:
        # nothing was touched yet, or the start is told that rows are missing
        assert (findings, count) == ([], 35) or [one.reason for one in findings] == ["log_shorter_than_head"]
