"""The check of the whole: the chain from its first row, and every projection made anew from the log.

Nothing is written: a difference is reported, never repaired.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from config.paths import DataFolder
from hub.records.log import chain, head
from hub.records.log.chain import Entry, Finding
from hub.store import migrations
from hub.store.database import StoreUnusable, open_reader, read_snapshot

__all__ = ["Difference", "Entry", "Report", "check"]

_CUT = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """A projection table that is not what the log gives.

    `row` counts from 1 in the order of the table's key; a row that one side lacks is None.
    """

    table: str
    row: int
    stored: str | None
    rebuilt: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """What the check found. `entries` were replayed; `erased` have no payload any more and could not be.

    `replay_failed` names the entry at which the projections could not go on, and why.
    """

    entries: int
    erased: int
    findings: tuple[Finding, ...]
    differences: tuple[Difference, ...]
    replay_failed: str | None

    @property
    def ok(self) -> bool:
        """The log is whole and the projections are what it gives."""
        return not self.findings and not self.differences and self.replay_failed is None


def check(path: Path, project: Callable[[sqlite3.Connection, Entry], None], tables: Sequence[str]) -> Report:
    """Verify the log in the database at `path` and compare its projection `tables` with the log replayed.

    Works beside a running hub (it sees one moment of it) and leaves every file as it is.

    Args:
        project: what the hub itself calls to bring the projections to the next entry.

    Raises:
        StoreUnusable: there is no such database, or it has another schema version than this program.
    """
    keeper = head.HeadFile(DataFolder(path.parent).head)
    findings: list[Finding] = []
    kept = None
    try:
        # before the snapshot: the log may only grow after it
        kept = keeper.read()
    except head.HeadUnreadable as error:
        findings.append(Finding("head_unreadable", None, str(error)))
    connection = open_reader(path)
    try:
        return read_snapshot(connection, lambda stored: _check(stored, project, tables, kept, findings))
    except sqlite3.DatabaseError as error:
        findings.append(Finding("unreadable", None, str(error)))
        return Report(0, 0, tuple(findings), (), None)
    finally:
        connection.close()


def _check(
    stored: sqlite3.Connection,
    project: Callable[[sqlite3.Connection, Entry], None],
    tables: Sequence[str],
    kept: chain.Head | None,
    findings: list[Finding],
) -> Report:
    known = migrations.available()
    found = migrations.version(stored)
    if found != known[-1].number:
        raise StoreUnusable(
            f"the database has schema {found:04d}, this program {known[-1].number:04d}: "
            "start the hub once, it brings an older database up to date"
        )
    row = stored.execute("SELECT value FROM meta WHERE name = 'log_id'").fetchone()
    rebuilt = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrations.migrate(rebuilt, known)
        rebuilt.execute("PRAGMA foreign_keys = ON")
        rebuilt.execute("BEGIN")
        replay = _Replay(rebuilt, project)
        erased = 0
        if row is not None:
            log_id = str(row[0])
            last = chain.chain_head(stored, log_id).seq
            findings.extend(head.compare(stored, log_id, kept))
            findings.extend(chain.verify(stored, log_id, 1, last, each=replay))
            findings.extend(chain.orphans(stored, log_id))
            erased = chain.count_erased(stored, log_id)
        elif kept is not None and kept.seq > 0:
            findings.append(Finding("log_shorter_than_head", kept.seq, "the database holds no log at all"))
        differences = [one for table in tables if (one := _compare(stored, rebuilt, table)) is not None]
    finally:
        rebuilt.close()
    return Report(replay.entries, erased, tuple(findings), tuple(differences), replay.failed)


class _Replay:
    """Feeds entries to the projections until one of them cannot be taken."""

    def __init__(
        self, connection: sqlite3.Connection, project: Callable[[sqlite3.Connection, Entry], None]
    ) -> None:
        self._connection = connection
        self._project = project
        self.entries = 0
        self.failed: str | None = None

    def __call__(self, entry: Entry) -> None:
        if self.failed is not None:
            return
        try:
            self._project(self._connection, entry)
        except Exception as error:  # noqa: BLE001 (an altered entry can make the projections raise anything; it is reported)
            self.failed = f"entry {entry.seq} ({entry.kind}): {type(error).__name__}: {error}"
            return
        self.entries += 1


def _compare(stored: sqlite3.Connection, rebuilt: sqlite3.Connection, table: str) -> Difference | None:
    pairs = zip_longest(_rows(stored, table), _rows(rebuilt, table))
    for number, (left, right) in enumerate(pairs, start=1):
        if left != right:
            return Difference(table, number, _shown(left), _shown(right))
    return None


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    columns = connection.execute(
        "SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (table,)
    ).fetchall()
    if not columns:
        raise StoreUnusable(f"there is no table {table!r}")
    names = [_quoted(name) for name, _ in columns]
    keys = [_quoted(name) for name, place in sorted(columns, key=lambda column: int(column[1])) if place]
    return connection.execute(
        f"SELECT {', '.join(names)} FROM {_quoted(table)} ORDER BY {', '.join(keys or names)}"  # noqa: S608 (quoted names)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _shown(row: tuple[Any, ...] | None) -> str | None:
    if row is None:
        return None
    text = repr(row)
    return text if len(text) <= _CUT else text[:_CUT] + "…"
