"""Mission logs for tests: sequenced, chained, signed and countersigned as they should be."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from events.canonical import document_hash
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import Form, sign_document

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
START = datetime(2026, 5, 1, 17, tzinfo=UTC)

HUB = PrivateKey.from_seed(bytes([41]) * 32, kid="hub:cellar#1")
HUB_NEXT = PrivateKey.from_seed(bytes([42]) * 32, kid="hub:cellar#2")
BAKER = PrivateKey.from_seed(bytes([43]) * 32, kid="baker#1", alg="ES256")
MILLER = PrivateKey.from_seed(bytes([44]) * 32, kid="miller#1")
RECORDS: list[KeyRecord] = [
    HUB.record(actor="hub:cellar", valid_from=SINCE),
    HUB_NEXT.record(actor="hub:cellar", valid_from=SINCE),
    BAKER.record(actor="baker", valid_from=SINCE),
    MILLER.record(actor="miller", valid_from=SINCE),
]
KEYS = KeyRing(RECORDS)

STEPS: list[dict[str, Any]] = [
    {"actor": "person:ida", "type": "created"},
    {"actor": "person:ida", "type": "state_changed", "transition": {"from": "draft", "to": "open"}},
    {"actor": "baker", "type": "contribution_offered", "payload": {"ref": "loaves", "n": 4}},
    {"actor": "person:ida", "type": "state_changed", "transition": {"from": "open", "to": "ready"}},
]


def stamp(place: int) -> str:
    return (START + timedelta(minutes=place)).isoformat().replace("+00:00", "Z")


def entry(
    place: int, prev: str, step: dict[str, Any], *, by: PrivateKey = HUB, form: Form = "header"
) -> dict[str, Any]:
    """One sequenced entry after the one of the hash `prev`."""
    body = {"mission": "m-bread", "seq": place, "at": stamp(place), "prev": prev, **step}
    return sign_document(
        {**body, "hash": document_hash(body)},
        by,
        signed_at=START + timedelta(minutes=place),
        form=form,
        kind="Event",
    )


def log(
    steps: Sequence[dict[str, Any]] = STEPS,
    *,
    by: Callable[[int], PrivateKey] = lambda place: HUB,
    form: Form = "header",
) -> list[dict[str, Any]]:
    """A whole log of `steps`."""
    entries: list[dict[str, Any]] = []
    for place, step in enumerate(steps):
        prev = entries[-1]["hash"] if entries else "genesis"
        entries.append(entry(place, prev, step, by=by(place), form=form))
    return entries


def checkpoint(
    entries: Sequence[dict[str, Any]],
    *,
    place: int | None = None,
    by: PrivateKey = HUB,
    sequencer: str = "hub:cellar",
    witnesses: Sequence[tuple[str, PrivateKey]] = (("baker", BAKER),),
    form: Form = "header",
    **members: Any,
) -> dict[str, Any]:
    """The sequencer's word of where `entries` stand, countersigned by `witnesses` (actor and key)."""
    place = len(entries) - 1 if place is None else place
    body = {
        "mission": "m-bread",
        "seq": place,
        "head": entries[place]["hash"],
        "at": stamp(60),
        "sequencer": sequencer,
        **members,
    }

    def signature(key: PrivateKey, minutes: int) -> Any:
        signed = sign_document(
            body, key, signed_at=START + timedelta(minutes=minutes), form=form, kind="Checkpoint"
        )
        return signed["signature"]

    return {
        **body,
        "signature": signature(by, 60),
        "witnesses": [
            {"actor": actor, "at": stamp(61), "signature": signature(key, 61)} for actor, key in witnesses
        ],
    }
