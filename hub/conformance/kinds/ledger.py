"""`ledger`: whether an event log holds, alone or under its checkpoint; whether checkpoints fork (Core §5)."""

from collections.abc import Mapping
from typing import Any

from events.documents import Document, from_plain
from events.times import parse_date_time
from hub.records.log.ledger import LedgerVerdict, Mode, find_fork, verify_checkpoint, verify_events
from mandates.documents import DateTime, KeyRecord
from mandates.keys import KeyRing


class Ledger(Document, frozen=True):
    """A log with the keys known, and a checkpoint on it; or checkpoints alone. And when it was first seen."""

    events: tuple[Any, ...] = ()
    keys: tuple[KeyRecord, ...] = ()
    checkpoint: Any = None
    checkpoints: list[Any] | None = None
    mode: Mode = "full"
    payloads: dict[str, Any] | None = None
    roles: dict[str, str] | None = None
    first_seen: DateTime | None = None


def answer(given: Any) -> Mapping[str, Any]:
    """`{ok, reason, head, witnesses, caveats}` for a log, `{fork, reason, proven}` for checkpoints.

    Raises:
        DocumentError: neither.
        ValueError: two records of one kid.
    """
    ledger = from_plain(Ledger, given)
    keys = KeyRing(ledger.keys)
    first_seen = None if ledger.first_seen is None else parse_date_time(ledger.first_seen)
    if ledger.checkpoints is not None:
        fork = find_fork(ledger.checkpoints, keys, first_seen=first_seen)
        if fork is None:
            return {"fork": False, "reason": "ok", "proven": False}
        return {"fork": True, "reason": "fork_detected", "proven": fork.proven}
    if ledger.checkpoint is not None:
        return _told(
            verify_checkpoint(
                ledger.checkpoint,
                ledger.events,
                keys,
                mode=ledger.mode,
                payloads=ledger.payloads,
                roles=ledger.roles,
                first_seen=first_seen,
            )
        )
    return _told(
        verify_events(
            ledger.events,
            keys,
            mode=ledger.mode,
            payloads=ledger.payloads,
            roles=ledger.roles,
            first_seen=first_seen,
        )
    )


def _told(verdict: LedgerVerdict) -> Mapping[str, Any]:
    return {
        "ok": verdict.ok,
        "reason": verdict.reason,
        "head": verdict.head,
        "witnesses": list(verdict.witnesses),
        "caveats": list(verdict.caveats),
    }
