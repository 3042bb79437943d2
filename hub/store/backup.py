"""Backup while the hub runs, and restore into a data folder.

A backup is a folder with the database and the head of its log, both as of one moment.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from config.paths import PRIVATE_FILE, PRIVATE_FOLDER, DataFolder, sync_folder
from hub.records.log import chain, head
from hub.records.log.chain import Finding
from hub.store import migrations
from hub.store.database import (
    LOCK_NAME,
    DataFolderLock,
    StoreUnusable,
    open_reader,
    open_writer,
    read_snapshot,
)

_DATABASE = DataFolder(Path()).database.name
_HEAD = DataFolder(Path()).head.name
_ASIDE = "before-restore"


class BackupFailed(Exception):
    """No backup was made, or nothing was restored; the message says why."""

    def __init__(self, detail: str, findings: Iterable[Finding] = ()) -> None:
        self.findings = tuple(findings)
        shown = [f"{one.reason} at {one.seq}: {one.detail}" for one in self.findings[:3]]
        super().__init__("; ".join([detail, *shown]))


def backup(path: Path, target: Path, *, even_damaged: bool = False) -> list[Finding]:
    """Copy the database at `path`, as it is at one moment, and its log's head into the new folder `target`.

    The hub may run: its writes do not wait. `target` appears whole or not at all.

    Args:
        even_damaged: make the backup although the log is not what its chain or its head says.

    Returns:
        What is wrong with the log that was copied.

    Raises:
        BackupFailed: `target` is there already, or the log is damaged.
        StoreUnusable: there is no database at `path`.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupFailed(f"{target} is there already")
    unfinished = target.with_name(f".{target.name}.unfinished")
    if unfinished.exists():
        shutil.rmtree(unfinished)
    unfinished.mkdir(mode=PRIVATE_FOLDER, parents=True)
    try:
        kept = _kept_head(DataFolder(path.parent).head)
        copy = DataFolder(unfinished).database
        _copy(path, copy)
        connection = open_writer(copy)
        try:
            log_id = _log_id(connection)
            if log_id is None:
                raise BackupFailed(f"{path} holds no log yet: start the hub once")
            findings = _verify_log(connection, log_id, kept)
            if findings and not even_damaged:
                raise BackupFailed("the log is damaged, nothing was backed up", findings)
            with head.HeadFile(DataFolder(unfinished).head) as keeper:
                keeper.write(chain.chain_head(connection, log_id))
        except sqlite3.DatabaseError as error:
            raise BackupFailed(f"the database cannot be read: {error}") from error
        finally:
            connection.close()
        _sync(copy)
        sync_folder(unfinished)
        unfinished.rename(target)
        sync_folder(target.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return findings


def restore(
    source: Path, folder: Path, *, replace: bool = False, even_damaged: bool = False
) -> list[Finding]:
    """Put the backup `source` into the data folder `folder` (made if it is not there).

    The whole chain, the head and the schema of the backup are verified before anything is put in place. What
    it replaces is kept in `folder`, under `before-restore-N`.

    Args:
        replace: `folder` may hold something already.
        even_damaged: put it in place although its log is not what its chain or its head says.

    Returns:
        What is wrong with the log that was restored.

    Raises:
        BackupFailed: not a backup, damaged, from a newer program, or `folder` is not empty.
        FolderInUse: a hub runs on `folder`.
    """
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with DataFolderLock(folder):
        fresh = folder / f".{_ASIDE}.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        held = [entry for entry in folder.iterdir() if entry.name != LOCK_NAME]
        if held and not replace:
            raise BackupFailed(f"{folder} is not empty")
        fresh.mkdir(mode=PRIVATE_FOLDER)
        try:
            for name in (_DATABASE, _HEAD):
                if not (source / name).is_file():
                    raise BackupFailed(f"{source} is no backup: it has no {name}")
                shutil.copyfile(source / name, fresh / name)
                (fresh / name).chmod(PRIVATE_FILE)
            findings = _verify_whole(fresh)
            if findings and not even_damaged:
                raise BackupFailed("the backup is damaged", findings)
            for name in (_DATABASE, _HEAD):
                _sync(fresh / name)
            _put_aside(folder)
            for name in (_HEAD, _DATABASE):
                (fresh / name).rename(folder / name)
                sync_folder(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return findings


def _copy(path: Path, copy: Path) -> None:
    source = open_reader(path)
    try:
        os.close(os.open(copy, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        target = sqlite3.connect(copy, isolation_level=None)
        try:
            # in one step: a copy in several steps begins again whenever the hub writes
            read_snapshot(source, lambda connection: connection.backup(target, pages=-1))
        finally:
            target.close()
    except sqlite3.DatabaseError as error:
        raise BackupFailed(f"the database cannot be copied: {error}") from error
    finally:
        source.close()


def _kept_head(path: Path) -> chain.Head | None:
    try:
        return head.HeadFile(path).read()
    except head.HeadUnreadable as error:
        raise BackupFailed(str(error)) from error


def _log_id(connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'log_id'").fetchone()
    return str(row[0]) if row else None


def _verify_log(connection: sqlite3.Connection, log_id: str, kept: chain.Head | None) -> list[Finding]:
    findings = head.compare(connection, log_id, kept)
    findings.extend(chain.verify(connection, log_id, 1, chain.chain_head(connection, log_id).seq))
    findings.extend(chain.orphans(connection, log_id))
    return findings


def _verify_whole(folder: Path) -> list[Finding]:
    kept = _kept_head(DataFolder(folder).head)
    try:
        connection = open_reader(DataFolder(folder).database)
    except StoreUnusable as error:
        raise BackupFailed(str(error)) from error
    try:
        known = migrations.available()[-1].number
        found = migrations.version(connection)
        if not 1 <= found <= known:
            raise BackupFailed(f"the backup has schema {found:04d}, this program knows up to {known:04d}")
        broken = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
        if broken != ["ok"]:
            raise BackupFailed(f"the backup is damaged: {'; '.join(broken)}")
        log_id = _log_id(connection)
        if log_id is None:
            raise BackupFailed("the backup holds no log")
        return _verify_log(connection, log_id, kept)
    except sqlite3.DatabaseError as error:
        raise BackupFailed(f"the backup cannot be read: {error}") from error
    finally:
        connection.close()


def _put_aside(folder: Path) -> None:
    """Move what a restore replaces out of the way, the write-ahead log first; of the head put a copy aside.

    A log left beside another database would be played into it. The old head stays until the new one replaces
    it: were the restore cut off in between, the next start is told that rows are missing.
    """
    names = [f"{_DATABASE}-wal", f"{_DATABASE}-shm", _DATABASE]
    there = [name for name in names if (folder / name).exists()]
    has_head = (folder / _HEAD).exists()
    if not there and not has_head:
        return
    number = 1
    while (folder / f"{_ASIDE}-{number}").exists():
        number += 1
    aside = folder / f"{_ASIDE}-{number}"
    aside.mkdir(mode=PRIVATE_FOLDER)
    if has_head:
        shutil.copyfile(folder / _HEAD, aside / _HEAD)
        (aside / _HEAD).chmod(PRIVATE_FILE)
        _sync(aside / _HEAD)
    for name in there:
        (folder / name).rename(aside / name)
        sync_folder(aside)
        sync_folder(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
