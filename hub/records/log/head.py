"""The head of the log, kept in a small file of its own.

SQLite ends its write-ahead log silently at the first bad frame: a log that lost its newest rows looks like a
shorter one that is whole. This file remembers how far it once was.
"""

import json
import os
import sqlite3
from pathlib import Path
from typing import Protocol, Self

from config.paths import PRIVATE_FILE, sync_folder
from events.canonical import canonical, digest
from hub.records.log.chain import Finding, Head, chain_head, verify

# one slot per block, so that a write torn inside one cannot reach the other
_SLOT_BYTES = 4096
NEWEST_ROWS = 1000


class HeadUnreadable(Exception):
    """The head file is there and neither of its slots can be read."""


class HeadKeeper(Protocol):
    """Where the head is kept; a simulation keeps it in memory."""

    def read(self) -> Head | None:
        """The newest head written; None where there never was one.

        Raises:
            HeadUnreadable: there was one and it cannot be read.
        """
        ...

    def write(self, head: Head) -> None:
        """Put `head` on disk; returns after it is flushed.

        Raises:
            OSError: it may not be there.
        """
        ...


class HeadFile:
    """Two slots written in turn, each with a checksum: a torn write leaves the older one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._count = 0

    def read(self) -> Head | None:
        """As `HeadKeeper.read`."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return None
        slots = [_read_slot(raw[start : start + _SLOT_BYTES]) for start in (0, _SLOT_BYTES)]
        newest = max((slot for slot in slots if slot is not None), key=lambda slot: slot[0], default=None)
        if newest is None:
            raise HeadUnreadable(f"{self._path}: neither slot holds a readable head")
        self._count = newest[0]
        return newest[1]

    def write(self, head: Head) -> None:
        """As `HeadKeeper.write`."""
        if self._descriptor is None:
            self._open()
        assert self._descriptor is not None
        count = self._count + 1
        slot = _write_slot(count, head)
        written = os.pwrite(self._descriptor, slot, (count % 2) * _SLOT_BYTES)
        if written != len(slot):
            raise OSError(f"{self._path}: only {written} of {len(slot)} bytes written")
        os.fdatasync(self._descriptor)
        self._count = count

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        try:
            self.read()
        except HeadUnreadable:
            # whoever writes now has been told by check_at_start; an unreadable file holds nothing to keep
            self._count = 0
        if not self._path.exists():
            self._create()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    def _create(self) -> None:
        # both slots take their room on disk now, so that a full disk does not stop a later head
        fresh = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            os.pwrite(descriptor, bytes(2 * _SLOT_BYTES), 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        fresh.rename(self._path)
        sync_folder(self._path.parent)


def check(connection: sqlite3.Connection, head: Head) -> Finding | None:
    """Whether the log still holds what `head` says it once held.

    A log that goes on beyond the head is whole: the process ended between a commit and its head.
    """
    if head.seq == 0:
        return None
    try:
        row = connection.execute(
            "SELECT hash FROM log WHERE log_id = ? AND seq = ?", (head.log_id, head.seq)
        ).fetchone()
        if row is not None:
            if row[0] == head.hash:
                return None
            return Finding("other_hash_at_head", head.seq, f"row has {row[0]!r}, the head file {head.hash}")
        now = chain_head(connection, head.log_id)
    except sqlite3.DatabaseError as error:
        return Finding("unreadable", head.seq, str(error))
    return Finding(
        "log_shorter_than_head", head.seq, f"the log ends at {now.seq}, the head file says {head.seq}"
    )


def compare(connection: sqlite3.Connection, log_id: str, kept: Head | None) -> list[Finding]:
    """What is wrong between the log and the head `kept` beside it (None: there is none).

    Raises:
        sqlite3.DatabaseError: the log cannot be read.
    """
    if kept is None:
        seq = chain_head(connection, log_id).seq
        return (
            [Finding("head_missing", seq, "the log has rows, but no head is kept beside it")] if seq else []
        )
    if kept.log_id != log_id:
        return [Finding("other_log", None, f"the head is of {kept.log_id}, the log is {log_id}")]
    finding = check(connection, kept)
    return [] if finding is None else [finding]


def check_at_start(connection: sqlite3.Connection, log_id: str, keeper: HeadKeeper) -> list[Finding]:
    """The head and the newest `NEWEST_ROWS` rows (and all rows since the head).

    Where nothing is wrong the kept head is brought up to the log's end; otherwise nothing is changed: whoever
    goes on writing all the same must say so first.

    Returns:
        What is wrong; empty when all is well.

    Raises:
        OSError: the head could not be written.
    """
    findings: list[Finding] = []
    kept: Head | None = None
    try:
        kept = keeper.read()
    except HeadUnreadable as error:
        findings.append(Finding("head_unreadable", None, str(error)))
    try:
        now = chain_head(connection, log_id)
        if not findings:
            findings.extend(compare(connection, log_id, kept))
    except sqlite3.DatabaseError as error:
        return [*findings, Finding("unreadable", None, str(error))]
    since = now.seq if kept is None else min(now.seq, kept.seq + 1)
    findings.extend(verify(connection, log_id, max(1, min(since, now.seq - NEWEST_ROWS + 1)), now.seq))
    if not findings and kept != now:
        keeper.write(now)
    return findings


def _write_slot(count: int, head: Head) -> bytes:
    body = canonical({"count": count, "hash": head.hash, "log": head.log_id, "seq": head.seq})
    slot = body + b"\n" + digest(body).encode("ascii") + b"\n"
    if len(slot) > _SLOT_BYTES:
        raise OSError(f"a head of {len(slot)} bytes does not fit its slot")
    return slot.ljust(_SLOT_BYTES, b"\0")


def _read_slot(slot: bytes) -> tuple[int, Head] | None:
    lines = slot.split(b"\n", 2)
    if len(lines) != 3 or digest(lines[0]).encode("ascii") != lines[1]:
        return None
    value = json.loads(lines[0])
    return value["count"], Head(value["log"], value["seq"], value["hash"])
