"""Texts that try to give orders are written down beside what they came with (Core §6.4; ruling Q5).

Into a ring, in the very transaction that takes the document: nothing is refused and nothing decided by it.
"""

from typing import Any

from hub.recorder import Recording
from hub.store.rings import INCIDENTS
from safety.untrusted_text import DOCUMENT_MOST, INCIDENT, look_through


def note_orders_in(recording: Recording, plain: Any, where: str, *, most: int = DOCUMENT_MOST) -> None:
    """Record every text of a document (plain JSON values) that seems to give orders; `where` names it."""
    for found in look_through(plain, most=most):
        recording.turn_away(
            INCIDENTS, INCIDENT, where, f"{found.path}: {found.sign}", found.text.encode("utf-8", "replace")
        )
