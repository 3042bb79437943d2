"""What is turned away is kept in bounds; how often it happened is never forgotten."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hub.store import migrations
from hub.store.rings import BODY_MOST_BYTES, FAILED_LOGINS, QUARANTINE, REFUSALS, Ring


def put(
    connection: sqlite3.Connection, ring: Ring, number: int = 0, *, reason: str = "invalid", **more
) -> int:
    return ring.add(
        connection,
        kitchen="home",
        at="2026-03-01T12:00:00.000Z",
        reason=reason,
        source=f"device-{number}",
        **more,
    )


@pytest.mark.parametrize("ring", [QUARANTINE, REFUSALS, FAILED_LOGINS], ids=lambda ring: ring.name)
def test_ten_thousand_rows_stay_and_every_one_is_counted(connection: sqlite3.Connection, ring: Ring) -> None:
    connection.execute("BEGIN")
    for number in range(10_050):
        put(connection, ring, number)
    connection.execute("COMMIT")
    assert connection.execute(f"SELECT count(*), min(id) FROM {ring.name}").fetchone() == (10_000, 51)
    assert ring.counters(connection, "home") == {"invalid": 10_050}
    assert ring.newest(connection, "home", 1)[0].source == "device-10049"


def test_bytes_are_bounded_to_64_mib(connection: sqlite3.Connection) -> None:
    assert (QUARANTINE.rows_most, QUARANTINE.bytes_most) == (10_000, 64 * 1024 * 1024)
    connection.execute("BEGIN")
    for number in range(1_100):
        put(connection, QUARANTINE, number, body=b"x" * 100_000)
    connection.execute("COMMIT")
    rows, held = connection.execute("SELECT count(*), sum(length(body)) FROM quarantine").fetchone()
    assert held <= 64 * 1024 * 1024
    assert rows > 1_000
    assert QUARANTINE.counters(connection, "home") == {"invalid": 1_100}


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 400), max_size=40))
def test_a_ring_never_holds_more_than_its_bounds_and_the_newest_stay(sizes: list[int]) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrations.migrate(connection, migrations.available())
    ring = Ring("refusal", rows_most=7, bytes_most=1_500)
    given_ids = []
    for size in sizes:
        given_ids.append(put(connection, ring, body=b"x" * size))
        rows, held = connection.execute("SELECT count(*), coalesce(sum(size), 0) FROM refusal").fetchone()
        assert rows <= 7
        assert held <= 1_500
        assert (rows, held) == connection.execute("SELECT rows, bytes FROM ring_fill").fetchone()
        assert [row.id for row in ring.newest(connection, "home", 10)] == given_ids[::-1][:rows]
        assert rows == len(given_ids) or rows == 7 or held + 600 > 1_500
    assert sum(ring.counters(connection, "home").values()) == len(sizes)
    connection.close()


def test_a_long_body_is_cut_and_says_how_long_it_was(connection: sqlite3.Connection) -> None:
    put(connection, QUARANTINE, body=b"y" * 1_000_000, detail="d" * 5_000)
    row = QUARANTINE.newest(connection, "home", 1)[0]
    assert row.body == b"y" * BODY_MOST_BYTES
    assert row.body_length == 1_000_000
    assert row.detail == "d" * 1_000


def test_text_no_database_takes_is_kept_as_far_as_it_goes(connection: sqlite3.Connection) -> None:
    put(connection, QUARANTINE, detail="half \ud800 pair\x00")
    assert QUARANTINE.newest(connection, "home", 1)[0].detail == "half ? pair\x00"


def test_kitchens_and_rings_are_counted_apart(connection: sqlite3.Connection) -> None:
    put(connection, QUARANTINE, reason="foreign_source")
    put(connection, QUARANTINE, reason="invalid")
    put(connection, REFUSALS, reason="mandate_scope")
    QUARANTINE.add(connection, kitchen="away", at="t", reason="invalid", source="oven")
    assert QUARANTINE.counters(connection, "home") == {"foreign_source": 1, "invalid": 1}
    assert QUARANTINE.counters(connection, "away") == {"invalid": 1}
    assert REFUSALS.counters(connection, "home") == {"mandate_scope": 1}
    assert [row.kitchen for row in QUARANTINE.newest(connection, "away", 5)] == ["away"]
