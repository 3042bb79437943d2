"""A topic says exactly one thing, and only names that were encoded can stand in it (DESIGN §7)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from events.topics import (
    FromTopic,
    all_from_devices,
    all_to_device,
    category_of,
    from_device,
    marker,
    parse_from,
    parse_marker,
    public,
    to_device,
)

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)


@given(NAMES, NAMES, NAMES, st.none() | NAMES)
@example("home", "hob", "device", None)
@example("home", "hob", "device", "-")
@example("home", "hob", "device", "%2D")
@example("a/b", "+", "#", "$SYS/\x00")
def test_whatever_the_names_a_topic_is_read_back(
    kitchen: str, device: str, category: str, subject: str | None
) -> None:
    topic = from_device(kitchen, device, category, subject)
    assert parse_from(topic) == FromTopic(kitchen, device, category, subject)
    assert topic.count("/") == 5
    assert not set(topic) & set("+#\x00")


@given(NAMES, NAMES)
def test_two_names_never_share_a_topic(one: str, other: str) -> None:
    assert (from_device("k", "d", "c", one) == from_device("k", "d", "c", other)) == (one == other)
    assert from_device("k", "d", "c", one) != from_device("k", "d", "c", None)


def test_topics_have_the_documented_form() -> None:
    subject = "req:7/ä"
    assert from_device("home", "hob", "execution", "e-1") == "cookwala/home/from/hob/execution/e-1"
    assert from_device("home", "hob", "device", None) == "cookwala/home/from/hob/device/-"
    assert to_device("home", "hob", "lease", subject) == "cookwala/home/to/hob/lease/req%3A7%2F%C3%A4"
    assert public("home", "safety", None) == "cookwala/home/safety/-"
    assert marker("home", "n-1") == "cookwala/home/to/hub/marker/n-1"
    assert all_from_devices("home") == "cookwala/home/from/#"
    assert all_to_device("home", "hob") == "cookwala/home/to/hob/#"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "cookwala",
        "cookwala/home/from/hob/device",
        "cookwala/home/from/hob/device/-/more",
        "cookwala/home/to/hob/device/-",
        "other/home/from/hob/device/-",
        "cookwala//from/hob/device/-",
        "cookwala/home/from//device/-",
        "cookwala/home/from/hob//-",
        "cookwala/home/from/hob/device/",
        "cookwala/-/from/hob/device/-",
        "cookwala/home/from/-/device/-",
        "cookwala/home/from/hob/device/%2d",
        "cookwala/home/from/hob/device/%68ob",
        "cookwala/home/from/hob/device/%",
        "cookwala/home/from/hob/device/%FF",
        "cookwala/home/from/hob/device/ä",
        "/cookwala/home/from/hob/device/-",
    ],
)
def test_any_other_way_to_write_a_topic_says_nothing(topic: str) -> None:
    """One meaning, one spelling: what a broker compares as text can never be got round by encoding."""
    assert parse_from(topic) is None


@given(st.text(max_size=40))
def test_any_text_is_a_topic_or_says_nothing(text: str) -> None:
    parsed = parse_from(text)
    assert (
        parsed is None
        or from_device(*(parsed.kitchen, parsed.device), parsed.category, parsed.subject) == text
    )


def test_a_category_is_the_second_segment_of_the_type() -> None:
    assert category_of("cookwala.device.heartbeat") == "device"
    assert category_of("cookwala.safety.limit_fired") == "safety"
    assert category_of("x-acme.glow.red") == "glow"
    assert category_of("x-acme.glow") == "glow"


@given(NAMES, NAMES)
def test_a_hub_knows_its_own_marker_and_no_other(kitchen: str, nonce: str) -> None:
    assert parse_marker(marker(kitchen, nonce), kitchen) == nonce
    assert parse_marker(marker(kitchen + "2", nonce), kitchen) is None
    assert parse_marker(to_device(kitchen, "hub", "other", nonce), kitchen) is None
    assert parse_marker(from_device(kitchen, "hub", "marker", nonce), kitchen) is None


@pytest.mark.parametrize("topic", ["", "n", "cookwala/home/to/hub/marker/", "cookwala/home/to/hub/marker/-"])
def test_a_marker_carries_a_nonce(topic: str) -> None:
    assert parse_marker(topic, "home") is None
