"""A schema step is applied once and whole, whatever happens in the middle of it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hub.store import migrations
from hub.store.database import open_writer
from hub.store.migrations import Migration, SchemaTooNew, available, migrate, version

NUMBERS = [migration.number for migration in available()]


def names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_a_new_database_gets_every_migration_once(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "hub.db")
    assert migrate(connection, available()) == len(NUMBERS)
    assert version(connection) == NUMBERS[-1]
    assert migrate(connection, available()) == 0
    assert {"log", "payload", "cursor", "meta", "quarantine", "refusal", "failed_login"} <= names(connection)


@pytest.mark.parametrize("number", NUMBERS[1:])
def test_each_migration_starts_from_the_one_before_and_keeps_the_log(tmp_path: Path, number: int) -> None:
    connection = open_writer(tmp_path / "hub.db")
    migrate(connection, available()[: number - 1])
    row = ("log-1", 1, "prev", "hash", "kind", "at", "digest", "home")
    connection.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.execute("INSERT INTO payload VALUES ('log-1', 1, x'00ff')")
    connection.execute("INSERT INTO cursor VALUES ('outbox', 7)")
    before = names(connection)
    assert migrate(connection, available()[:number]) == 1
    assert version(connection) == number
    assert connection.execute("SELECT * FROM log").fetchall() == [row]
    assert connection.execute("SELECT body FROM payload").fetchall() == [(b"\x00\xff",)]
    assert connection.execute("SELECT position FROM cursor WHERE name = 'outbox'").fetchall() == [(7,)]
    assert before <= names(connection)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize("number", NUMBERS)
def test_a_kill_at_any_statement_of_a_migration_leaves_the_version_before_and_a_startable_database(
    tmp_path: Path, ended: Callable[..., str], number: int
) -> None:
    script = """
        import os, signal, sys
        from pathlib import Path
        from hub.store.database import open_writer
        from hub.store.migrations import available, migrate, version
        folder, number = Path(sys.argv[1]), int(sys.argv[2])
        before, upto = available()[: number - 1], available()[:number]

        counting = open_writer(folder / "counted.db")
        if before:
            migrate(counting, before)
        statements = []
        counting.set_trace_callback(statements.append)
        migrate(counting, upto)
        begin = next(place for place, text in enumerate(statements) if "BEGIN" in text)
        counting.close()

        for kill_at in range(begin + 1, len(statements)):
            path = folder / f"killed-{kill_at}.db"
            child = os.fork()
            if child == 0:
                connection = open_writer(path)
                if before:
                    migrate(connection, before)
                seen = []
                def at(text):
                    if len(seen) == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    seen.append(text)
                connection.set_trace_callback(at)
                migrate(connection, upto)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert os.WIFSIGNALED(status), (kill_at, status)
            connection = open_writer(path)
            assert version(connection) == number - 1, (kill_at, version(connection))
            assert migrate(connection, available()) == len(available()) - number + 1
            connection.close()
        print(len(statements) - begin - 1)
    """
    assert int(ended(script, tmp_path, number)) >= 3


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "hub.db")
    known = available()
    migrate(connection, known)
    broken = Migration(
        known[-1].number + 1, "broken", "CREATE TABLE half (a); INSERT INTO nowhere VALUES (1);"
    )
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, [*known, broken])
    assert version(connection) == known[-1].number
    assert "half" not in names(connection)
    assert not connection.in_transaction


def test_a_newer_schema_is_refused_by_its_name_and_left_alone(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / "hub.db")
    known = available()
    migrate(
        connection,
        [*known, Migration(known[-1].number + 1, "moon_phases", "CREATE TABLE moon (phase TEXT);")],
    )
    with pytest.raises(SchemaTooNew, match="moon_phases") as refused:
        migrate(connection, known)
    assert refused.value.known == known[-1].number
    assert refused.value.found == known[-1].number + 1
    assert "moon" in names(connection)


def test_the_migrations_shipped_are_numbered_without_gaps() -> None:
    assert list(range(1, len(NUMBERS) + 1)) == NUMBERS
    assert migrations.available()[0].name == "log"
