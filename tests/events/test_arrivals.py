"""What waits to be read: bounded where it may be lost, complete where it may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import events.arrivals
from events.arrivals import Arrivals
from events.transport import Delivery


def delivery(number: int, qos: int, size: int = 4) -> Delivery:
    return Delivery("t", b"%0*d" % (size, number), qos, False, {}, number if qos else 0)


@given(
    kinds=st.lists(st.sampled_from([0, 1]), max_size=60),
    bound=st.integers(1, 20),
    most=st.integers(1, 10),
)
def test_order_is_kept_certain_ones_stay_and_the_oldest_others_go(
    kinds: list[int], bound: int, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events.arrivals, "MOST_QOS0_QUEUED", bound)
        arrivals = Arrivals()
        sent = [delivery(number, qos) for number, qos in enumerate(kinds, 1)]
        dropped = sum(arrivals.add(one) for one in sent)
        fleeting = [one for one in sent if not one.qos]
        kept = fleeting[-bound:]
        taken: list[Delivery] = []
        while arrivals:
            batch = arrivals.take(most)
            assert 0 < len(batch) <= most
            taken += batch
    assert taken == [one for one in sent if one.qos or one in kept]
    assert dropped == len(fleeting) - len(kept)
    assert arrivals.take(1) == []


def test_large_fleeting_messages_are_bounded_by_their_bytes() -> None:
    arrivals = Arrivals()
    size = 256 * 1024
    fit = events.arrivals.MOST_QOS0_QUEUED_BYTES // (size + 1)
    dropped = sum(arrivals.add(delivery(number, 0, size)) for number in range(fit + 10))
    assert (dropped, len(arrivals)) == (10, fit)


def test_room_taken_is_given_back() -> None:
    arrivals = Arrivals()
    for _ in range(5):
        assert sum(arrivals.add(delivery(n, 0, 1024 * 1024)) for n in range(10)) == 0
        assert len(arrivals.take(10)) == 10


def test_a_message_that_could_never_fit_leaves_nothing_behind() -> None:
    arrivals = Arrivals()
    assert arrivals.add(delivery(1, 0, events.arrivals.MOST_QOS0_QUEUED_BYTES + 1)) == 1
    assert arrivals.add(delivery(2, 0)) == 0
    assert arrivals.take(9) == [delivery(2, 0)]
