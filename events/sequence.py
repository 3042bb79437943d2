"""Where an event stands in its subject's order (DESIGN §4): a pure decision per (source, subject)."""

from dataclasses import dataclass
from typing import Literal

Place = Literal["apply", "late", "early", "new_boot"]
"""`apply`: the next one. `late`: known or overtaken, without effect. `early`: something before it is missing.
`new_boot`: the device counts anew, only its status tells what holds."""

FIRST_SEQ = 0


@dataclass(frozen=True, slots=True)
class Position:
    """The last number applied, and the device's boot under which it was given."""

    boot: str | None
    seq: int


def place(position: Position | None, boot: str | None, seq: int) -> Place:
    """Where the event numbered `seq` under `boot` stands after `position` (`None`: nothing applied yet)."""
    if position is not None and boot != position.boot:
        return "new_boot"
    expected = FIRST_SEQ if position is None else position.seq + 1
    if seq == expected:
        return "apply"
    return "early" if seq > expected else "late"
