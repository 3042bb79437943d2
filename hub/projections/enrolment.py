"""People, agents' mandates, recipes and devices as projections."""

import msgspec

from hub.entries import (
    DeviceRegistered,
    DeviceRemoved,
    MandateRegistered,
    MandateRevoked,
    PersonEnrolled,
    PersonRemoved,
    RecipeAdded,
)
from hub.projections.fold import Fold, to_text
from mandates.documents import KeyRecord


class _PinnedKeys(msgspec.Struct):
    keys: list[KeyRecord] = msgspec.field(default=[], name="x-aboyeur-keys")


def person_enrolled(fold: Fold, entry: PersonEnrolled) -> None:
    fold.run(
        "INSERT INTO person (kitchen, id, role, keys) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT DO UPDATE SET role = excluded.role, keys = excluded.keys",
        entry.id,
        entry.role,
        to_text(entry.keys),
    )
    _shut_out(fold, entry.id)
    _token(fold, entry.token_hash, entry.id, entry.role)


def person_removed(fold: Fold, entry: PersonRemoved) -> None:
    fold.run("DELETE FROM person WHERE kitchen = ?1 AND id = ?2", entry.id)
    _shut_out(fold, entry.id)


def _shut_out(fold: Fold, person: str) -> None:
    """Neither the person's own tokens nor those of agents she gave a mandate open anything any more."""
    fold.run(
        "DELETE FROM token WHERE kitchen = ?1 AND actor = ?2 AND mandate IS NULL AND role <> 'device'",
        person,
    )
    fold.run(
        "DELETE FROM token WHERE kitchen = ?1 AND mandate IN "
        "(SELECT hash FROM mandate WHERE kitchen = ?1 AND principal = ?2)",
        person,
    )
    fold.run("UPDATE mandate SET revoked = 1 WHERE kitchen = ?1 AND principal = ?2", person)


def mandate_registered(fold: Fold, entry: MandateRegistered) -> None:
    fold.run(
        "INSERT INTO mandate (kitchen, hash, principal, agent, expires, document, revoked) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0) ON CONFLICT DO UPDATE SET revoked = 0",
        entry.hash,
        entry.principal,
        entry.agent,
        entry.expires,
        entry.document,
    )
    fold.run("DELETE FROM token WHERE kitchen = ?1 AND mandate = ?2", entry.hash)
    _token(fold, entry.token_hash, entry.agent, "agent", entry.hash)


def mandate_revoked(fold: Fold, entry: MandateRevoked) -> None:
    fold.run("UPDATE mandate SET revoked = 1 WHERE kitchen = ?1 AND hash = ?2", entry.hash)
    fold.run("DELETE FROM token WHERE kitchen = ?1 AND mandate = ?2", entry.hash)


def recipe_added(fold: Fold, entry: RecipeAdded) -> None:
    fold.run(
        "INSERT INTO recipe (kitchen, hash, id, document) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        entry.hash,
        entry.id,
        entry.document,
    )


def device_registered(fold: Fold, entry: DeviceRegistered) -> None:
    pinned = msgspec.json.decode(entry.capabilities, type=_PinnedKeys)
    fold.run(
        "INSERT INTO device (kitchen, name, url, broker_hash, salt, keys, capabilities, safety_limits, life) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'unknown')",
        entry.name,
        entry.url,
        entry.broker_hash,
        entry.salt,
        to_text(pinned.keys),
        entry.capabilities,
        entry.safety_limits,
    )
    _token(fold, entry.token_hash, entry.name, "device")


def device_removed(fold: Fold, entry: DeviceRemoved) -> None:
    fold.run("DELETE FROM device WHERE kitchen = ?1 AND name = ?2", entry.name)
    fold.run("DELETE FROM token WHERE kitchen = ?1 AND actor = ?2 AND role = 'device'", entry.name)
    fold.run("DELETE FROM condition WHERE kitchen = ?1 AND device = ?2", entry.name)
    fold.run("DELETE FROM question WHERE kitchen = ?1 AND device = ?2", entry.name)
    fold.run("DELETE FROM parked WHERE kitchen = ?1 AND device = ?2", entry.name)
    fold.run("DELETE FROM inventory WHERE kitchen = ?1 AND device = ?2", entry.name)
    # Another device of the same name counts anew.
    fold.run("DELETE FROM subject WHERE kitchen = ?1 AND device = ?2", entry.name)
    fold.run("DELETE FROM seen WHERE kitchen = ?1 AND device = ?2", entry.name)


def _token(fold: Fold, hashed: str, actor: str, role: str, mandate: str | None = None) -> None:
    fold.run(
        "INSERT INTO token (kitchen, hash, actor, role, mandate) VALUES (?1, ?2, ?3, ?4, ?5)",
        hashed,
        actor,
        role,
        mandate,
    )
