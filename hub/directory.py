"""Who and what is enrolled, in memory: people, tokens, keys, devices, recipes; read anew after a change."""

import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from events.documents import DocumentError, read
from hub.entries import Role
from mandates.authority import Enrolment
from mandates.documents import KeyRecord
from mandates.keys import KeyRing
from mandates.tokens import Actor, token_hash
from safety.choice import Appliance
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.feed_documents import Recall
from safety.recalls import RecallBook

T = TypeVar("T")
_LOG: Final = logging.getLogger("aboyeur.directory")
_KEYS: Final = msgspec.json.Decoder(list[KeyRecord])


@dataclass(frozen=True, slots=True)
class DeviceEntry:
    """A registered device, with what was pinned when it was registered."""

    name: str
    url: str
    salt: str
    broker_hash: str
    keys: tuple[KeyRecord, ...]
    capabilities: Capabilities | None
    safety_limits: SafetyLimits | None
    capabilities_text: str
    safety_limits_text: str
    life: str
    interval_s: float | None = None
    """Of its heartbeats, as it said last; `None` where it never did."""

    @classmethod
    def stranger(cls, name: str, url: str) -> "DeviceEntry":
        """A device of which only the address is known yet."""
        return cls(name, url, "", "", (), None, None, "", "", "unknown")

    @property
    def deduplicates_starts(self) -> bool:
        """Whether the device knows a start's key again for a day and across a reboot (DESIGN §4)."""
        return self.capabilities is not None and (self.capabilities.x_start_dedup_h or 0) >= 24


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """A recipe revision, read."""

    hash: str
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class RecallEntry:
    """A recall that was verified when it came.

    Attributes:
        catalogue: the base address it came from.
        text: the very document.
        key: what it was verified with.
    """

    catalogue: str
    recall: Recall
    text: str
    key: KeyRecord


@dataclass(frozen=True, slots=True)
class Directory:
    """One state of everything enrolled."""

    actors: Mapping[str, Actor] = field(default_factory=dict)
    """By the hash of the token."""
    people: Mapping[str, Role] = field(default_factory=dict)
    enrolled: Mapping[str, Enrolment] = field(default_factory=dict)
    keys: KeyRing = field(default_factory=KeyRing)
    devices: Mapping[str, DeviceEntry] = field(default_factory=dict)
    recipes: Mapping[str, RecipeEntry] = field(default_factory=dict)
    recalls: Mapping[str, RecallEntry] = field(default_factory=dict)
    """By the document's hash."""
    recall_book: RecallBook = field(default_factory=RecallBook)

    def actor(self, secret: str) -> Actor | None:
        """Whom a bearer token speaks for."""
        # Looked up by its hash: how long that takes tells nothing about a token.
        return self.actors.get(token_hash(secret))

    def appliances(self) -> list[Appliance]:
        """The devices as candidates for a dish, all of them free."""
        return [
            Appliance(
                name=device.name,
                capabilities=device.capabilities,
                busy=False,
                limits=device.safety_limits,
            )
            for device in self.devices.values()
            if device.capabilities is not None and device.safety_limits is not None
        ]


def read_directory(connection: sqlite3.Connection, kitchen: str, known: Directory | None = None) -> Directory:
    """Everything enrolled in `kitchen`; documents that `known` has are not parsed again.

    A document that cannot be read any more is left out and reported: a device then keeps its address, so that
    it can still be stopped, but is asked for nothing.
    """
    people: dict[str, Role] = {}
    enrolled: dict[str, Enrolment] = {}
    records: dict[str, KeyRecord] = {}
    for person, role, keys in connection.execute(
        "SELECT id, role, CAST(keys AS BLOB) FROM person WHERE kitchen = ? ORDER BY id", (kitchen,)
    ):
        own = _read_keys(keys, person)
        people[person] = role
        enrolled[person] = Enrolment(role, frozenset(record.kid for record in own))
        records.update((record.kid, record) for record in own)
    devices: dict[str, DeviceEntry] = {}
    for name, url, salt, broker_hash, keys, capabilities, limits, life, interval_s in connection.execute(
        # Documents as bytes: one that is no text any more must not take the other rows along.
        "SELECT name, url, salt, broker_hash, CAST(keys AS BLOB), CAST(capabilities AS BLOB), "
        "CAST(safety_limits AS BLOB), life, interval_s FROM device WHERE kitchen = ? ORDER BY name",
        (kitchen,),
    ):
        own = _read_keys(keys, name)
        before = known.devices.get(name) if known is not None else None
        if (
            before is not None
            and before.capabilities_text.encode() == capabilities
            and before.safety_limits_text.encode() == limits
        ):
            parsed = before.capabilities, before.safety_limits
        else:
            parsed = (
                _read(Capabilities, capabilities, f"the capabilities of {name}"),
                _read(SafetyLimits, limits, f"the safety limits of {name}"),
            )
        devices[name] = DeviceEntry(
            name=name,
            url=url,
            salt=salt,
            broker_hash=broker_hash,
            keys=tuple(own),
            capabilities=parsed[0],
            safety_limits=parsed[1],
            capabilities_text=capabilities.decode(errors="replace"),
            safety_limits_text=limits.decode(errors="replace"),
            life=life,
            interval_s=interval_s,
        )
        enrolled[name] = Enrolment("device", frozenset(record.kid for record in own))
        # A device cannot take a kid that a person has: the person's record stands.
        for record in own:
            records.setdefault(record.kid, record)
    actors = {
        hashed: Actor(actor, role, mandate)
        for hashed, actor, role, mandate in connection.execute(
            "SELECT hash, actor, role, mandate FROM token WHERE kitchen = ?", (kitchen,)
        )
    }
    recipes: dict[str, RecipeEntry | None] = {}
    for (hashed,) in connection.execute(
        "SELECT hash FROM recipe WHERE kitchen = ? ORDER BY hash", (kitchen,)
    ).fetchall():
        entry = known.recipes.get(hashed) if known is not None else None
        recipes[hashed] = entry or _read_recipe(connection, kitchen, hashed)
    readable = {hashed: entry for hashed, entry in recipes.items() if entry is not None}
    recalls = read_recalls(connection, kitchen, known)
    book = (
        known.recall_book
        if known is not None and known.recalls.keys() == recalls.keys()
        else RecallBook(entry.recall for entry in recalls.values())
    )
    return Directory(actors, people, enrolled, KeyRing(records.values()), devices, readable, recalls, book)


def read_recalls(
    connection: sqlite3.Connection, kitchen: str, known: Directory | None = None
) -> dict[str, RecallEntry]:
    """Every recall kept for `kitchen`, by hash; one that `known` has is not parsed again."""
    found: dict[str, RecallEntry] = {}
    for (hashed,) in connection.execute(
        "SELECT hash FROM recall WHERE kitchen = ? ORDER BY hash", (kitchen,)
    ).fetchall():
        entry = known.recalls.get(hashed) if known is not None else None
        if entry is None:
            entry = _read_recall(connection, kitchen, hashed)
        if entry is not None:
            found[hashed] = entry
    return found


def _read_recall(connection: sqlite3.Connection, kitchen: str, hashed: str) -> RecallEntry | None:
    catalogue, document, key = connection.execute(
        "SELECT catalogue, CAST(document AS BLOB), CAST(signed_by AS BLOB) FROM recall "
        "WHERE kitchen = ? AND hash = ?",
        (kitchen, hashed),
    ).fetchone()
    recall = _read(Recall, document, f"the recall {hashed}")
    record = _read(KeyRecord, key, f"the key of the recall {hashed}")
    if recall is None or record is None:
        return None
    return RecallEntry(catalogue, recall, document.decode(), record)


def _read_recipe(connection: sqlite3.Connection, kitchen: str, hashed: str) -> RecipeEntry | None:
    row = connection.execute(
        "SELECT CAST(document AS BLOB) FROM recipe WHERE kitchen = ? AND hash = ?", (kitchen, hashed)
    ).fetchone()
    recipe = _read(Recipe, row[0], f"the recipe {hashed}")
    return None if recipe is None else RecipeEntry(hashed, recipe)


def _read(kind: type[T], raw: bytes, what: str) -> T | None:
    try:
        return read(kind, raw)
    except DocumentError as error:
        _LOG.error("%s cannot be read any more, see `aboyeur rebuild --check`: %s", what, error)
        return None


def _read_keys(raw: bytes, whose: str) -> list[KeyRecord]:
    try:
        return _KEYS.decode(raw)
    except msgspec.DecodeError as error:
        _LOG.error("the keys of %s cannot be read any more, see `aboyeur rebuild --check`: %s", whose, error)
        return []
