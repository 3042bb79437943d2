"""Rings: what was turned away, the newest of it only, with counters that outlive the rows (RULINGS E5).

An attacker can fill a ring, but not the disk; how often each reason occurred stays known.
"""

import sqlite3
from dataclasses import dataclass
from typing import Literal

ROWS_MOST = 10_000
BYTES_MOST = 64 * 1024 * 1024
# of one thing turned away this much is kept; its true length stands beside it
BODY_MOST_BYTES = 64 * 1024
TEXT_MOST_CHARACTERS = 1000

RingName = Literal["quarantine", "refusal", "failed_login", "incident"]

# what a row costs besides its texts and body
_ROW_BYTES = 64


@dataclass(frozen=True, slots=True)
class RingRow:
    """One thing turned away: when, why, from whom.

    `body` may be cut; `body_length` is its whole length in bytes.
    """

    id: int
    kitchen: str
    at: str
    reason: str
    source: str
    detail: str
    body: bytes
    body_length: int


@dataclass(frozen=True, slots=True)
class Ring:
    """One of the rings of the store, with its bounds."""

    name: RingName
    rows_most: int = ROWS_MOST
    bytes_most: int = BYTES_MOST

    def add(
        self,
        connection: sqlite3.Connection,
        *,
        kitchen: str,
        at: str,
        reason: str,
        source: str,
        detail: str = "",
        body: bytes = b"",
    ) -> int:
        """Keep one more, count it under `reason`, and let the oldest go where the ring is full.

        Args:
            reason: one of the program's own words, never text from outside: there is one counter for each.

        Returns:
            The row's id; ids rise and are never used again.
        """
        source, detail = _storable(source), _storable(detail)
        kept = body[:BODY_MOST_BYTES]
        size = (
            _ROW_BYTES + len(kept) + sum(len(text.encode()) for text in (kitchen, at, reason, source, detail))
        )
        row_id = connection.execute(
            f"INSERT INTO {self.name} (kitchen, at, reason, source, detail, body, body_length, size)"  # noqa: S608 (own name)
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (kitchen, at, reason, source, detail, kept, len(body), size),
        ).lastrowid
        assert row_id is not None
        connection.execute(
            "INSERT INTO ring_counter (ring, kitchen, reason, count) VALUES (?, ?, ?, 1)"
            " ON CONFLICT DO UPDATE SET count = count + 1",
            (self.name, kitchen, reason),
        )
        rows, held = connection.execute(
            "INSERT INTO ring_fill (ring, rows, bytes) VALUES (?, 1, ?)"
            " ON CONFLICT DO UPDATE SET rows = rows + 1, bytes = bytes + excluded.bytes"
            " RETURNING rows, bytes",
            (self.name, size),
        ).fetchone()
        if rows > self.rows_most or held > self.bytes_most:
            self._let_go(connection, rows, held)
        return row_id

    def newest(self, connection: sqlite3.Connection, kitchen: str, most: int) -> list[RingRow]:
        """The newest `most` rows of `kitchen`, newest first."""
        return [
            RingRow(*row)
            for row in connection.execute(
                f"SELECT id, kitchen, at, reason, source, detail, body, body_length FROM {self.name}"  # noqa: S608 (own name)
                " WHERE kitchen = ? ORDER BY id DESC LIMIT ?",
                (kitchen, most),
            )
        ]

    def counters(self, connection: sqlite3.Connection, kitchen: str) -> dict[str, int]:
        """How many there ever were for each reason, kept or gone."""
        return dict(
            connection.execute(
                "SELECT reason, count FROM ring_counter WHERE ring = ? AND kitchen = ? ORDER BY reason",
                (self.name, kitchen),
            ).fetchall()
        )

    def _let_go(self, connection: sqlite3.Connection, rows: int, held: int) -> None:
        last = 0
        oldest_first = f"SELECT id, size FROM {self.name} ORDER BY id"  # noqa: S608 (own name)
        for row_id, size in connection.execute(oldest_first):
            if rows <= self.rows_most and held <= self.bytes_most:
                break
            last, rows, held = row_id, rows - 1, held - size
        connection.execute(f"DELETE FROM {self.name} WHERE id <= ?", (last,))  # noqa: S608 (own name)
        connection.execute("UPDATE ring_fill SET rows = ?, bytes = ? WHERE ring = ?", (rows, held, self.name))


def _storable(text: str) -> str:
    """`text` from outside, cut, without the half surrogates that no database takes."""
    return text[:TEXT_MOST_CHARACTERS].encode("utf-8", "replace").decode()


QUARANTINE = Ring("quarantine")
REFUSALS = Ring("refusal")
FAILED_LOGINS = Ring("failed_login")
INCIDENTS = Ring("incident")
