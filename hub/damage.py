"""Damage of the event log that a person has taken note of: it is not held against the next start."""

import sqlite3
from collections.abc import Iterable
from typing import Final

import msgspec

from hub.entries import DamageAccepted
from hub.records.log.chain import Finding

_KIND: Final = "damage.accepted"


def in_words(finding: Finding) -> str:
    """A finding as an entry keeps it."""
    place = "" if finding.seq is None else f" at {finding.seq}"
    return f"{finding.reason}{place}: {finding.detail}"


def unknown(connection: sqlite3.Connection, findings: Iterable[Finding]) -> list[Finding]:
    """Those of `findings` that nobody has taken note of yet."""
    noted: set[str] = set()
    rows = connection.execute(
        "SELECT payload.body FROM log JOIN payload USING (log_id, seq) WHERE log.kind = ?", (_KIND,)
    )
    for (body,) in rows:
        try:
            noted.update(msgspec.json.decode(body or b"", type=DamageAccepted).findings)
        except msgspec.MsgspecError:
            continue  # itself damaged: it vouches for nothing
    return [finding for finding in findings if in_words(finding) not in noted]
