"""What people said of being there: the last word of each, on the hub's monotonic clock (ruling P2).

A word is kept in memory only: after a restart nobody has said anything, but for an order that was taken
before: its start takes along the word that stood then, older by now. Whether a word is fresh enough is the
device's judgement, and no word but the answer to its own question lets it begin a step that needs somebody.
"""

from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from adapters.documents import PresenceWord
from events.seams import Clock
from events.times import format_date_time, parse_date_time


@dataclass(frozen=True, slots=True)
class _Said:
    wall: datetime
    monotonic: float


class Presence:
    """The last word of each person."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, _Said] = {}
        self._left: set[str] = set()

    def said(self, person: str) -> None:
        """`person` says now that she is there."""
        self._said[person] = _Said(self._clock.wall(), self._clock.monotonic())
        self._left.discard(person)

    def left(self, person: str) -> None:
        """`person` takes her word back, or is enrolled no more."""
        self._said.pop(person, None)
        self._left.add(person)

    def with_start(self, taken: PresenceWord | None) -> PresenceWord | None:
        """The newest word; where nobody said anything since a restart, the one an order was `taken` with."""
        newest = self.latest()
        if newest is not None or taken is None or taken.by in self._left:
            return newest
        age_s = (self._clock.wall() - parse_date_time(taken.said_at)).total_seconds()
        # The monotonic clock of that time is gone. A wall clock that was put back makes no word younger.
        return replace(taken, age_s=max(age_s, taken.age_s)) if age_s >= 0 else None

    def latest(self) -> PresenceWord | None:
        """The newest word with its age."""
        if not self._said:
            return None
        person, said = max(self._said.items(), key=lambda item: item[1].monotonic)
        return self._word(person, said, nonce=None)

    def answer(self, person: str, nonce: str) -> PresenceWord | None:
        """`person`'s last word as the answer to a device's question."""
        said = self._said.get(person)
        return None if said is None else self._word(person, said, nonce=nonce)

    def _word(self, person: str, said: _Said, nonce: str | None) -> PresenceWord:
        return PresenceWord(
            by=person,
            said_at=format_date_time(said.wall),
            age_s=max(0.0, self._clock.monotonic() - said.monotonic),
            nonce=nonce,
        )
