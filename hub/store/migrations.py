"""Numbered schema files, applied once each and in order.

The number of the last one applied stands in the database itself (`PRAGMA user_version`), its name in `meta`.
"""

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

_FILE_NAME = re.compile(r"^(\d{4})_([a-z][a-z0-9_]*)\.sql$")


class SchemaTooNew(Exception):
    """The database was written by a newer program; an older one must not touch it."""

    def __init__(self, found: int, found_name: str, known: int) -> None:
        super().__init__(
            f"the database has schema {found:04d} ({found_name}), this program knows up to {known:04d}: "
            "install the newer version again, or restore a backup made before"
        )
        self.found = found
        self.found_name = found_name
        self.known = known


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: `number` counts from 1 without gaps."""

    number: int
    name: str
    sql: str


def available() -> tuple[Migration, ...]:
    """The migrations this program ships, in order.

    Raises:
        RuntimeError: the installed files are not numbered 1, 2, 3 …
    """
    found: list[Migration] = []
    for file in resources.files("hub.store").joinpath("schema").iterdir():
        match = _FILE_NAME.match(file.name)
        if match:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)) or not found:
        raise RuntimeError(f"the schema files are incomplete: {[migration.number for migration in found]}")
    return tuple(found)


def version(connection: sqlite3.Connection) -> int:
    """The number of the last migration applied; 0 for a new database."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """Bring the database to the last of `migrations`; each is one transaction together with its number.

    A process killed in the middle of one leaves the version before, from which the next start goes on.

    Returns:
        How many were applied.

    Raises:
        SchemaTooNew: the database is beyond the last of `migrations`.
        sqlite3.Error: one could not be applied; the database stays at the version before it.
    """
    at = version(connection)
    known = migrations[-1].number
    if at > known:
        raise SchemaTooNew(at, _name(connection), known)
    applied = 0
    for migration in migrations:
        if migration.number <= at:
            continue
        try:
            # executescript ends any open transaction first, so the transaction has to be part of the script
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{migration.sql}\n"
                f"REPLACE INTO meta (name, value) VALUES ('schema', '{migration.name}');\n"
                f"PRAGMA user_version = {migration.number:d};\nCOMMIT;"
            )
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        applied += 1
    return applied


def _name(connection: sqlite3.Connection) -> str:
    try:
        row = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    except sqlite3.DatabaseError:
        return "of another program"
    return str(row[0]) if row else "unnamed"
