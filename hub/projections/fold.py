"""One entry's place in the fold, and what every part of it shares."""

import sqlite3
from dataclasses import dataclass
from typing import Any

import msgspec

from events.registry import Registry
from hub.executions.model import Execution


@dataclass(frozen=True, slots=True)
class Fold:
    """The entry being folded: into which tables, whose kitchen, which place, which time.

    Attributes:
        connection: inside the transaction that also holds the log row.
        kitchen: the kitchen's id.
        seq: the entry's place in the log.
        at: when it was committed, RFC 3339.
        registry: the event types, to read events again.
        touched: where the executions that change are noted, each with the place of its last entry.
    """

    connection: sqlite3.Connection
    kitchen: str
    seq: int
    at: str
    registry: Registry
    touched: dict[str, tuple[int, Execution]]

    def run(self, statement: str, *values: Any) -> None:
        """Run one statement; `?1` is the kitchen."""
        self.connection.execute(statement, (self.kitchen, *values))

    def one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a query; `?1` is the kitchen."""
        row: tuple[Any, ...] | None = self.connection.execute(query, (self.kitchen, *values)).fetchone()
        return row

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query; `?1` is the kitchen."""
        return self.connection.execute(query, (self.kitchen, *values)).fetchall()


def to_text(value: Any) -> str:
    """A value as the JSON text that a projection holds."""
    return msgspec.json.encode(value).decode()
