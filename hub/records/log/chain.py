"""The chain of the event log: each row's hash covers the row before it.

A row holds the digest of its payload, not the payload: a payload can be erased and the chain still holds.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from events.canonical import canonical, digest

# what stands as `prev` in the first row of every log
GENESIS = "aboyeur-log-1"

FINDINGS_MOST = 100

FindingReason = Literal[
    "gap",
    "altered_row",
    "broken_prev",
    "altered_payload",
    "missing_payload",
    "orphan_payload",
    "unreadable",
    "log_shorter_than_head",
    "other_hash_at_head",
    "other_log",
    "head_missing",
    "head_unreadable",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a log. `seq` is the row it concerns, if it is one."""

    reason: FindingReason
    seq: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a log; `seq` 0 and `hash` = `GENESIS` for an empty one."""

    log_id: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log with its payload, as a projection reads it."""

    seq: int
    kind: str
    at: str
    payload: bytes


def row_hash(
    *, log_id: str, seq: int, prev: str, kind: str, at: str, payload_digest: str, kitchen: str
) -> str:
    """`sha256:<hex>` over the RFC 8785 bytes of the row."""
    return digest(
        canonical(
            {
                "at": at,
                "kind": kind,
                "kitchen": kitchen,
                "log": log_id,
                "payloadDigest": payload_digest,
                "prev": prev,
                "seq": seq,
            }
        )
    )


def chain_head(connection: sqlite3.Connection, log_id: str) -> Head:
    """The newest row of the log as the database has it now."""
    row = connection.execute(
        "SELECT seq, hash FROM log WHERE log_id = ? ORDER BY seq DESC LIMIT 1", (log_id,)
    ).fetchone()
    return Head(log_id, row[0], row[1]) if row else Head(log_id, 0, GENESIS)


def verify(
    connection: sqlite3.Connection,
    log_id: str,
    from_seq: int,
    to_seq: int,
    *,
    each: Callable[[Entry], None] | None = None,
    most: int = FINDINGS_MOST,
) -> list[Finding]:
    """Check rows `from_seq`..`to_seq` (both included, counted from 1) and their payloads.

    Reads them once, in order; `each` is called with every entry that can be read and is not erased, even if
    it was altered. Stops after `most` findings. The row before `from_seq` is believed for the first `prev`.

    Returns:
        What is wrong, in order of seq; empty when all is well.
    """
    findings: list[Finding] = []
    prev = _hash_before(connection, log_id, from_seq)
    expected = from_seq
    while expected <= to_seq and len(findings) < most:
        try:
            for row in _rows(connection, log_id, expected, to_seq):
                seq = row[0]
                if seq != expected:
                    findings.append(Finding("gap", expected, f"rows {expected} to {seq - 1} are missing"))
                    prev = None
                findings.extend(_check_row(log_id, row, prev))
                expected = seq + 1
                prev = row[2] if isinstance(row[2], str) else None
                kind, at, body = row[3], row[4], row[8]
                if each and isinstance(kind, str) and isinstance(at, str) and isinstance(body, bytes):
                    each(Entry(seq, kind, at, body))
                if len(findings) >= most:
                    return findings[:most]
            if expected <= to_seq:
                findings.append(Finding("gap", expected, f"rows {expected} to {to_seq} are missing"))
            break
        except sqlite3.DatabaseError as error:
            # one row the database cannot read must not hide the state of those after it
            findings.append(Finding("unreadable", expected, str(error)))
            expected += 1
            prev = None
    return findings[:most]


def orphans(connection: sqlite3.Connection, log_id: str, *, most: int = FINDINGS_MOST) -> list[Finding]:
    """Payloads that belong to no row, and rows of another log than `log_id`."""
    findings = [
        Finding("orphan_payload", seq, "a payload without a row")
        for (seq,) in connection.execute(
            "SELECT seq FROM payload WHERE NOT EXISTS (SELECT 1 FROM log WHERE log.log_id = payload.log_id"
            " AND log.seq = payload.seq) LIMIT ?",
            (most,),
        )
    ]
    findings.extend(
        Finding("other_log", None, f"there are rows of another log: {other!r}")
        for (other,) in connection.execute(
            "SELECT DISTINCT log_id FROM log WHERE log_id <> ? LIMIT ?", (log_id, most)
        )
    )
    return findings[:most]


def count_erased(connection: sqlite3.Connection, log_id: str) -> int:
    """How many payloads are marked as erased."""
    row = connection.execute("SELECT count(*) FROM payload WHERE log_id = ? AND body IS NULL", (log_id,))
    return int(row.fetchone()[0])


_Row = tuple[int, object, object, object, object, object, object, object, object]


def _rows(connection: sqlite3.Connection, log_id: str, from_seq: int, to_seq: int) -> Iterator[_Row]:
    return connection.execute(
        "SELECT log.seq, log.prev, log.hash, log.kind, log.at, log.payload_digest, log.kitchen,"
        " payload.seq, payload.body FROM log LEFT JOIN payload USING (log_id, seq)"
        " WHERE log.log_id = ? AND log.seq BETWEEN ? AND ? ORDER BY log.seq",
        (log_id, from_seq, to_seq),
    )


def _hash_before(connection: sqlite3.Connection, log_id: str, seq: int) -> str | None:
    """What row `seq` must have as `prev`; None when the row before cannot be read."""
    if seq <= 1:
        return GENESIS
    try:
        row = connection.execute(
            "SELECT hash FROM log WHERE log_id = ? AND seq = ?", (log_id, seq - 1)
        ).fetchone()
    except sqlite3.DatabaseError:
        return None
    return row[0] if row and isinstance(row[0], str) else None


def _check_row(log_id: str, row: _Row, before: str | None) -> Iterator[Finding]:
    seq, prev, stored, kind, at, payload_digest, kitchen, payload_seq, body = row
    if not (
        isinstance(prev, str)
        and isinstance(kind, str)
        and isinstance(at, str)
        and isinstance(payload_digest, str)
        and isinstance(kitchen, str)
    ):
        yield Finding("altered_row", seq, "a column is no text")
        return
    if before is not None and prev != before:
        yield Finding("broken_prev", seq, f"names {prev} as the row before, which is {before}")
    computed = row_hash(
        log_id=log_id, seq=seq, prev=prev, kind=kind, at=at, payload_digest=payload_digest, kitchen=kitchen
    )
    if computed != stored:
        yield Finding("altered_row", seq, f"says {stored}, its content gives {computed}")
    if payload_seq is None:
        yield Finding("missing_payload", seq, "neither there nor marked as erased")
    elif body is not None and (not isinstance(body, bytes) or digest(body) != payload_digest):
        yield Finding("altered_payload", seq, f"does not give {payload_digest}")
