"""Recalls, inventories and incident reports as projections (Core §6.7-§6.9)."""

from typing import Final

from events.catalogue import InventoryData
from events.envelope import Event
from events.times import format_date_time, parse_date_time
from hub.entries import IncidentAccepted, IncidentQueued, RecallLearned
from hub.projections.fold import Fold, to_text

INVENTORY: Final = "cookwala.inventory.changed"


def recall_learned(fold: Fold, entry: RecallLearned) -> None:
    fold.run(
        "INSERT INTO recall (kitchen, hash, catalogue, document, signed_by) VALUES (?1, ?2, ?3, ?4, ?5) "
        "ON CONFLICT DO NOTHING",
        entry.hash,
        entry.catalogue,
        entry.document,
        to_text(entry.key),
    )


def inventory_changed(fold: Fold, device: str, event: Event) -> None:
    """What a device has in store now; of two reports the later by the device's own time counts."""
    data = event.data
    if not isinstance(data, InventoryData):
        return
    time = format_date_time(parse_date_time(event.envelope.time))
    storage = data.storage or ""
    row = fold.one(
        "SELECT time, event FROM inventory WHERE kitchen = ?1 AND device = ?2 AND storage = ?3",
        device,
        storage,
    )
    # Two of one instant are put in an order of their own, so that it does not matter which came first.
    if row is not None and (row[0], row[1]) >= (time, event.envelope.id):
        return
    fold.run(
        "INSERT INTO inventory (kitchen, device, storage, time, event, items) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET time = excluded.time, "
        "event = excluded.event, items = excluded.items",
        device,
        storage,
        time,
        event.envelope.id,
        to_text(data.items or []),
    )


def incident_queued(fold: Fold, entry: IncidentQueued) -> None:
    fold.run(
        "INSERT INTO incident_report (kitchen, id, document) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        entry.id,
        entry.document,
    )
    for catalogue in entry.catalogues:
        fold.run(
            "INSERT INTO incident_delivery (kitchen, id, catalogue, accepted) VALUES (?1, ?2, ?3, 0) "
            "ON CONFLICT DO NOTHING",
            entry.id,
            catalogue,
        )


def incident_accepted(fold: Fold, entry: IncidentAccepted) -> None:
    fold.run(
        "UPDATE incident_delivery SET accepted = 1 WHERE kitchen = ?1 AND id = ?2 AND catalogue = ?3",
        entry.id,
        entry.catalogue,
    )
