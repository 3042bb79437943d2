"""What a hub has before its store is open: a look at what is open, and a store that is still to come."""

import logging
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from hub.directory import DeviceEntry, Directory, read_directory
from hub.executions.model import Execution
from hub.kitchen import Kitchen
from hub.projections.executions import read_execution
from hub.recorder import STARTING_S
from hub.store.database import Store, StoreFailed, StoreUnusable, open_reader

_LOG = logging.getLogger("aboyeur.starting")
T = TypeVar("T")


class OpeningStore:
    """A store that callers may use before it is open; they wait a little for it."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._opened = anyio.Event()

    def opened(self, store: Store) -> None:
        """The store is open."""
        self._store = store
        self._opened.set()

    def give_up(self) -> None:
        """It will not be opened: whoever waits for it is told now."""
        self._opened.set()

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `Store.run`, once it is open."""
        return await (await self._ready()).run(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `Store.read`, once it is open.

        Raises:
            StoreFailed: it is still starting, or cannot be read at the moment.
        """
        store = await self._ready()
        try:
            return await store.read(work)
        except sqlite3.Error as error:
            raise StoreFailed(f"the store cannot be read: {error}") from error

    async def _ready(self) -> Store:
        with anyio.move_on_after(STARTING_S):
            await self._opened.wait()
        if self._store is None:
            raise StoreFailed("the hub is still starting")
        return self._store


def open_executions(connection: sqlite3.Connection, kitchen: str) -> list[Execution]:
    """The executions of `kitchen` that are not final; one that cannot be read any more is reported."""
    found = []
    for execution, body in connection.execute(
        # As bytes: one that is no text any more must not take the others along.
        "SELECT id, CAST(body AS BLOB) FROM execution WHERE kitchen = ? AND open = 1",
        (kitchen,),
    ):
        try:
            found.append(read_execution(body))
        except msgspec.DecodeError as error:
            _LOG.error("%s cannot be read any more, see `aboyeur rebuild --check`: %s", execution, error)
    return found


def preload(path: Path, kitchen: Kitchen) -> None:
    """Look into the database as it lies there, so that stops find their devices at once.

    What cannot be read yet (no database, an older schema, damage) is left to the opening of the store, which
    reports it.
    """
    try:
        connection = open_reader(path)
    except StoreUnusable as error:
        _LOG.info("nothing to look at before the start: %s", error)
        return
    try:
        # Each by itself: what an older schema lacks for the one must not take the other along.
        for look in (_look_for_work, _look_for_addresses, _look_for_the_rest):
            try:
                look(connection, kitchen)
            except (sqlite3.Error, ValueError) as error:
                _LOG.warning("the store cannot be looked into before it is opened: %s", error)
    finally:
        connection.close()


def _look_for_work(connection: sqlite3.Connection, kitchen: Kitchen) -> None:
    for execution in open_executions(connection, kitchen.name):
        kitchen.open_work.changed(0, execution)


def _look_for_addresses(connection: sqlite3.Connection, kitchen: Kitchen) -> None:
    """All that a stop needs of a device; these columns are there in every schema."""
    rows = connection.execute("SELECT name, url, salt FROM device WHERE kitchen = ?", (kitchen.name,))
    devices = {name: replace(DeviceEntry.stranger(name, url), salt=salt) for name, url, salt in rows}
    kitchen.directory = Directory(devices=devices)


def _look_for_the_rest(connection: sqlite3.Connection, kitchen: Kitchen) -> None:
    kitchen.directory = read_directory(connection, kitchen.name)
