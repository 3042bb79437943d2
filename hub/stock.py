"""What the devices of a kitchen say is in store, and whether an allergen block meets it (Core §6.7)."""

import sqlite3
from collections.abc import Sequence

import msgspec

from events.catalogue import InventoryItem
from hub.kitchen import Kitchen
from safety.allergens import why_blocked
from safety.documents import Recipe

_ITEMS: msgspec.json.Decoder[list[InventoryItem]] = msgspec.json.Decoder(list[InventoryItem])


def stock_of(connection: sqlite3.Connection, kitchen: str) -> dict[str, list[InventoryItem]]:
    """What is in store, by device; all of a device's storages together."""
    found: dict[str, list[InventoryItem]] = {}
    for device, items in connection.execute(
        "SELECT device, items FROM inventory WHERE kitchen = ? ORDER BY device, storage", (kitchen,)
    ):
        found.setdefault(device, []).extend(_ITEMS.decode(items))
    return found


def blocked_by(
    connection: sqlite3.Connection, kitchen: Kitchen, blocks: Sequence[str] | None, recipe: Recipe
) -> str | None:
    """In words, which of `blocks` the recipe or the store would break; None when none."""
    if not blocks:
        return None
    return why_blocked(blocks, recipe, stock_of(connection, kitchen.name), kitchen.allergens)
