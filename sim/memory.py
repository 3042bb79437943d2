"""What a device remembers through a reboot: one small SQLite file beside it (Core §7; rulings X3, P2).

Starts are remembered under their idempotency key for two days, stops of unknown requests for one. Every
change is one synced transaction that returns after it is on the disk, or raises `MemoryUnavailable`: a
device may not say what it could forget.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from adapters.documents import ExecutionStatus
from events import documents

REMEMBERED_STARTS: Final = timedelta(hours=48)
BARRED: Final = timedelta(hours=24)
MAX_BARS: Final = 10_000
MAX_STARTS: Final = 20_000
MAX_WAITING: Final = 20_000

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS device (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS execution (
    id TEXT PRIMARY KEY,
    request TEXT NOT NULL,
    key TEXT NOT NULL UNIQUE,
    body TEXT NOT NULL,
    recipe TEXT NOT NULL,
    recipe_hash TEXT NOT NULL,
    began_s REAL NOT NULL,
    final INTEGER NOT NULL,
    status BLOB NOT NULL,
    log BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS execution_request ON execution (request);
CREATE TABLE IF NOT EXISTS bar (ref TEXT PRIMARY KEY, until_s REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS recall (hash TEXT PRIMARY KEY, document BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS recall_key (kid TEXT PRIMARY KEY, record BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS waiting (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    category TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
"""


class MemoryFull(Exception):
    """The device has promised to remember as much as it can; it takes nothing new."""


class MemoryUnavailable(Exception):
    """Nothing could be written: the disk is full, or somebody holds the file. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that the broker has not confirmed yet."""

    number: int
    category: str
    subject: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An event to be kept until the broker has confirmed it."""

    category: str
    subject: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Kept:
    """An execution as it is remembered. `body` is the digest of the request that began it."""

    status: ExecutionStatus
    key: str
    body: str
    recipe: str
    recipe_hash: str
    began_at: datetime
    log: bytes | None


class DeviceMemory:
    """The memory of one device, in `path`. Not for two processes at once."""

    def __init__(self, path: Path, *, patience_s: float = 1.0) -> None:
        """
        Args:
            patience_s: how long a write waits for somebody else's lock on the file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(
            path, isolation_level=None, timeout=patience_s, check_same_thread=False
        )
        path.chmod(0o600)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._database.close()

    def durability(self) -> tuple[str, int]:
        """The journal mode and the `synchronous` level this connection really has."""
        (mode,) = self._database.execute("PRAGMA journal_mode").fetchone()
        (level,) = self._database.execute("PRAGMA synchronous").fetchone()
        return str(mode), int(level)

    def next_boot(self) -> int:
        """Count one more start of this device; the first is 1."""
        with self._transaction():
            self._database.execute(
                "INSERT INTO device VALUES ('boot', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
            )
            row = self._database.execute("SELECT value FROM device WHERE name = 'boot'").fetchone()
        return int(row[0])

    def kitchen(self) -> str | None:
        """The kitchen this device was last paired with."""
        row = self._database.execute("SELECT value FROM device WHERE name = 'kitchen'").fetchone()
        return None if row is None else str(row[0])

    def join(self, kitchen: str) -> None:
        """Remember the kitchen the device is paired with."""
        with self._transaction():
            self._database.execute(
                "INSERT INTO device VALUES ('kitchen', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (kitchen,),
            )

    def begin(self, kept: Kept, final: bool, events: Iterable[Outgoing]) -> None:
        """Remember a new execution together with the events that report it.

        Raises:
            MemoryFull: too many starts are younger than the promised time.
        """
        now_s = kept.began_at.timestamp()
        with self._transaction():
            self._database.execute(
                "DELETE FROM execution WHERE final = 1 AND began_s < ?",
                (now_s - REMEMBERED_STARTS.total_seconds(),),
            )
            (count,) = self._database.execute("SELECT count(*) FROM execution").fetchone()
            if count >= MAX_STARTS:
                raise MemoryFull(f"{count} starts are remembered")
            self._database.execute(
                "INSERT INTO execution VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    kept.status.id,
                    kept.status.request,
                    kept.key,
                    kept.body,
                    kept.recipe,
                    kept.recipe_hash,
                    now_s,
                    int(final),
                    documents.write(kept.status),
                    kept.log,
                ),
            )
            self._keep(events)

    def change(
        self, status: ExecutionStatus, final: bool, log: bytes | None, events: Iterable[Outgoing]
    ) -> None:
        """Remember a change of an execution together with the events that report it."""
        with self._transaction():
            self._database.execute(
                "UPDATE execution SET status = ?, final = ?, log = coalesce(?, log) WHERE id = ?",
                (documents.write(status), int(final), log, status.id),
            )
            self._keep(events)

    def by_key(self, key: str) -> Kept | None:
        """The execution that was begun under this idempotency key."""
        return self._one("key = ?", key)

    def by_ref(self, ref: str) -> Kept | None:
        """The execution with this id, else the newest one of the request with this id."""
        return self._one("id = ?", ref) or self.by_request(ref)

    def by_request(self, request: str) -> Kept | None:
        """The newest execution of the request with this id."""
        return self._one("request = ?", request)

    def open(self) -> list[Kept]:
        """Every execution that is not final, oldest first."""
        return [
            _kept(row) for row in self._database.execute(f"{_SELECT} WHERE final = 0 ORDER BY began_s, rowid")
        ]

    def bar(self, ref: str, at: datetime) -> None:
        """Let nothing start under this request id for a day.

        Beyond `MAX_BARS` nothing is written, because then every start is barred: forgetting the oldest bar
        would let somebody who can reach the device undo a stop.
        """
        now_s = at.timestamp()
        with self._transaction():
            self._database.execute("DELETE FROM bar WHERE until_s <= ?", (now_s,))
            if self.bar_count() < MAX_BARS:
                self._database.execute(
                    "INSERT INTO bar VALUES (?, ?) ON CONFLICT (ref) DO UPDATE SET until_s = "
                    "excluded.until_s",
                    (ref, now_s + BARRED.total_seconds()),
                )

    def barred(self, ref: str, at: datetime) -> bool:
        """Whether a start under this request id must not happen."""
        now_s = at.timestamp()
        row = self._database.execute("SELECT until_s FROM bar WHERE ref = ?", (ref,)).fetchone()
        if row is not None and row[0] > now_s:
            return True
        (live,) = self._database.execute("SELECT count(*) FROM bar WHERE until_s > ?", (now_s,)).fetchone()
        return int(live) >= MAX_BARS

    def recalls(self) -> dict[str, bytes]:
        """Every recall that was learned, by hash."""
        return dict(self._database.execute("SELECT hash, document FROM recall ORDER BY hash").fetchall())

    def recall_keys(self) -> dict[str, bytes]:
        """The key records that recalls were verified with, by kid."""
        return dict(self._database.execute("SELECT kid, record FROM recall_key ORDER BY kid").fetchall())

    def learn_recalls(self, recalls: Mapping[str, bytes], keys: Mapping[str, bytes]) -> None:
        """Keep recalls and the keys of their signatures; what is known already stays as it is."""
        with self._transaction():
            self._database.executemany("INSERT OR IGNORE INTO recall VALUES (?, ?)", list(recalls.items()))
            self._database.executemany("INSERT OR IGNORE INTO recall_key VALUES (?, ?)", list(keys.items()))

    def stock(self) -> bytes:
        """What is in store in this device, as JSON."""
        row = self._database.execute("SELECT value FROM device WHERE name = 'stock'").fetchone()
        return b"[]" if row is None else bytes(row[0])

    def put_in_store(self, items: bytes) -> None:
        """Remember what is in store now, as JSON."""
        with self._transaction():
            self._database.execute(
                "INSERT INTO device VALUES ('stock', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (items,),
            )

    def say(self, events: Iterable[Outgoing]) -> None:
        """Keep events until the broker has confirmed them.

        When more wait than the bound, the oldest are dropped: the hub heals the hole by reading the device.
        """
        with self._transaction():
            self._keep(events)

    def waiting(self, most: int) -> list[Waiting]:
        """The oldest events the broker has not confirmed, in the order they happened."""
        rows = self._database.execute(
            "SELECT number, category, subject, payload FROM waiting ORDER BY number LIMIT ?", (most,)
        )
        return [Waiting(*row) for row in rows]

    def confirmed(self, number: int) -> None:
        """The broker has it: forget the event."""
        with self._transaction():
            self._database.execute("DELETE FROM waiting WHERE number = ?", (number,))

    def _keep(self, events: Iterable[Outgoing]) -> None:
        self._database.executemany(
            "INSERT INTO waiting (category, subject, payload) VALUES (?, ?, ?)",
            [(event.category, event.subject, event.payload) for event in events],
        )
        self._database.execute(
            "DELETE FROM waiting WHERE number <= (SELECT max(number) FROM waiting) - ?", (MAX_WAITING,)
        )

    def bar_count(self) -> int:
        """How many bars are written down; at most `MAX_BARS`."""
        return int(self._database.execute("SELECT count(*) FROM bar").fetchone()[0])

    def _one(self, where: str, value: str) -> Kept | None:
        # `where` is one of the three constants above, never anybody's text.
        row = self._database.execute(
            f"{_SELECT} WHERE {where} ORDER BY rowid DESC LIMIT 1", (value,)
        ).fetchone()
        return None if row is None else _kept(row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise MemoryUnavailable(str(error)) from error
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")


_SELECT: Final = "SELECT status, key, body, recipe, recipe_hash, began_s, log FROM execution"


def _kept(row: tuple[bytes, str, str, str, str, float, bytes | None]) -> Kept:
    status, key, body, recipe, recipe_hash, began_s, log = row
    began_at = datetime.fromtimestamp(began_s, UTC)
    return Kept(documents.read(ExecutionStatus, status), key, body, recipe, recipe_hash, began_at, log)
