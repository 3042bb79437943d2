"""State never moves back in its number, and nothing is applied over a hole (hard case 2, DESIGN §4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.sequence import Position, place

SEQS = st.integers(0, 2**53 - 1)
BOOTS = st.sampled_from((None, "boot-1", "boot-2"))


@pytest.mark.parametrize(
    ("position", "boot", "seq", "expected"),
    [
        (None, "boot-1", 0, "apply"),
        (None, "boot-1", 1, "early"),
        (None, None, 0, "apply"),
        (Position("boot-1", 0), "boot-1", 0, "late"),
        (Position("boot-1", 0), "boot-1", 1, "apply"),
        (Position("boot-1", 0), "boot-1", 2, "early"),
        (Position("boot-1", 7), "boot-1", 3, "late"),
        (Position("boot-1", 7), "boot-2", 3, "new_boot"),
        (Position("boot-1", 7), "boot-2", 8, "new_boot"),
        (Position("boot-1", 7), "boot-2", 0, "new_boot"),
        (Position("boot-1", 7), None, 8, "new_boot"),
        (Position(None, 7), None, 8, "apply"),
    ],
)
def test_an_events_place_is_decided_by_table(
    position: Position | None, boot: str | None, seq: int, expected: str
) -> None:
    assert place(position, boot, seq) == expected


@given(SEQS, SEQS, BOOTS, BOOTS)
def test_within_a_boot_exactly_the_next_number_applies(last: int, seq: int, old: str, new: str) -> None:
    found = place(Position(old, last), new, seq)
    if old != new:
        assert found == "new_boot"
    else:
        assert (found == "apply") == (seq - last == 1)
        assert (found == "late") == (seq <= last)
        assert (found == "early") == (seq > last + 1)


@given(st.lists(st.integers(0, 12), max_size=60))
def test_whatever_order_events_come_in_they_are_applied_in_theirs(arrivals: list[int]) -> None:
    """Each number once, without a hole, from the first on; duplicates and overtaken ones change nothing."""
    position: Position | None = None
    applied: list[int] = []
    parked: set[int] = set()
    for seq in arrivals:
        waiting = [seq]
        while waiting:
            one = waiting.pop()
            decision = place(position, "boot-1", one)
            if decision == "apply":
                position = Position("boot-1", one)
                applied.append(one)
                if one + 1 in parked:
                    waiting.append(one + 1)
            elif decision == "early":
                parked.add(one)
    complete = 0
    while complete in arrivals:
        complete += 1
    assert applied == list(range(complete))
