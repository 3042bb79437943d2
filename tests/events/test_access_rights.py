"""Who may publish and read what, decided without any broker."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from events import topics
from events.access_rights import Rights

RIGHTS = Rights("home", devices={"oven", "hob"}, readers={"display"})
USERS = ["hub", "oven", "hob", "display", "stranger", "", "#", "+", "hub/x"]

words = st.sampled_from(
    [
        "cookwala",
        "home",
        "other",
        "from",
        "to",
        "hub",
        "oven",
        "hob",
        "+",
        "#",
        "",
        "device",
        "$SYS",
        "$share",
        "-",
    ]
)
below_home = st.lists(words, min_size=1, max_size=6).map(
    lambda levels: "/".join(["cookwala", "home", *levels])
)
anywhere = st.lists(words, min_size=1, max_size=7).map("/".join)


@st.composite
def masked(draw: st.DrawFn) -> str:
    """A topic somebody uses, with wildcards put over parts of it."""
    name = draw(st.sampled_from(["oven", "hob", "hub"]))
    topic = draw(st.sampled_from([topics.from_device, topics.to_device]))("home", name, "execution", "e-1")
    levels = draw(st.sampled_from([topic, topics.public("home", "safety", "oven")])).split("/")
    levels = ["+" if draw(st.booleans()) and place > 1 else level for place, level in enumerate(levels)]
    cut = draw(st.integers(2, len(levels)))
    return "/".join([*levels[:cut], "#"] if draw(st.booleans()) else levels)


filters = st.one_of(below_home, anywhere, masked())
segments = st.sampled_from(["execution", "device", "alarm", "hob-1", "-", "%2B"])


@pytest.mark.parametrize(
    ("user", "topic", "may"),
    [
        ("hub", "cookwala/home/to/oven/grant/1", True),
        ("hub", "cookwala/home/to/hub/marker/n", True),
        ("hub", "cookwala/home/execution/e-1", True),
        ("hub", "cookwala/home/from/oven/execution/e-1", False),
        ("hub", "cookwala/other/execution/e-1", False),
        ("hub", "cookwala/home/to/oven", False),
        ("oven", "cookwala/home/from/oven/execution/e-1", True),
        ("oven", "cookwala/home/from/hob/execution/e-1", False),
        ("oven", "cookwala/home/to/hob/grant/1", False),
        ("oven", "cookwala/home/to/oven/grant/1", False),
        ("oven", "cookwala/home/execution/e-1", False),
        ("oven", "cookwala/home/from/oven", False),
        ("oven", "cookwala/home/from/oven/#", False),
        ("oven", "$SYS/broker", False),
        ("display", "cookwala/home/execution/e-1", False),
        ("display", "cookwala/home/from/display/a/b", False),
        ("stranger", "cookwala/home/from/stranger/a/b", False),
    ],
)
def test_each_user_publishes_only_in_its_own_place(user: str, topic: str, may: bool) -> None:
    assert RIGHTS.may_publish(user, topic) is may


@pytest.mark.parametrize(
    ("user", "filter_", "may"),
    [
        ("hub", topics.all_from_devices("home"), True),
        ("hub", "cookwala/home/from/#", True),
        ("hub", "cookwala/home/to/hub/#", True),
        ("hub", "cookwala/home/to/oven/#", False),
        ("hub", "cookwala/#", False),
        ("hub", "#", False),
        ("oven", "cookwala/home/to/oven/#", True),
        ("oven", "cookwala/home/to/hob/#", False),
        ("oven", "cookwala/home/to/+/#", False),
        ("oven", "cookwala/home/from/oven/#", False),
        ("oven", "cookwala/home/from/#", False),
        ("oven", "cookwala/+/from/#", False),
        ("oven", "cookwala/home/+/#", False),
        ("oven", "cookwala/home/#", False),
        ("oven", "cookwala/home/+/+", True),
        ("oven", "cookwala/home/safety/+", True),
        ("oven", "cookwala/home/safety/#", True),
        ("oven", "cookwala/other/safety/+", False),
        ("oven", "#", False),
        ("oven", "$SYS/#", False),
        ("oven", "$share/g/cookwala/home/from/#", False),
        ("oven", "cookwala/home/a#/b", False),
        ("display", "cookwala/home/+/+", True),
        ("display", "cookwala/home/to/display/#", False),
        ("stranger", "cookwala/home/+/+", False),
    ],
)
def test_each_user_reads_only_what_is_for_it(user: str, filter_: str, may: bool) -> None:
    assert RIGHTS.may_subscribe(user, filter_) is may


@settings(max_examples=1000)
@given(filter_=filters, whose=st.sampled_from(["hob", "hub", "fridge"]), category=segments, subject=segments)
def test_no_device_filter_ever_matches_what_another_device_says_or_is_told(
    filter_: str, whose: str, category: str, subject: str
) -> None:
    if RIGHTS.may_subscribe("oven", filter_):
        for topic in (
            topics.from_device("home", whose, category, subject),
            topics.to_device("home", whose, category, subject),
            topics.marker("home", "n"),
        ):
            assert not topic_matches_sub(filter_, topic)


@settings(max_examples=1000)
@given(filter_=filters, topic=filters, reader=st.sampled_from(USERS), writer=st.sampled_from(USERS))
def test_what_arrives_through_an_allowed_filter_may_also_be_read_by_its_topic(
    filter_: str, topic: str, reader: str, writer: str
) -> None:
    if (
        RIGHTS.may_publish(writer, topic)
        and RIGHTS.may_subscribe(reader, filter_)
        and topic_matches_sub(filter_, topic)
    ):
        assert RIGHTS.may_subscribe(reader, topic)


@given(user=st.sampled_from(USERS), topic=below_home)
def test_only_the_hub_publishes_on_the_public_layout(user: str, topic: str) -> None:
    if RIGHTS.may_publish(user, topic) and topic.split("/")[2] not in ("from", "to"):
        assert user == "hub"


@given(topic=filters)
def test_nobody_publishes_a_message_that_speaks_for_another_device(topic: str) -> None:
    writers = {user for user in USERS if RIGHTS.may_publish(user, topic)}
    assert len(writers) <= 1
    if topic.startswith("cookwala/home/from/"):
        assert writers <= {topic.split("/")[3]}


def test_a_kitchen_id_is_encoded_as_in_topics() -> None:
    rights = Rights("h:1", devices={"oven"})
    assert rights.may_publish("oven", topics.from_device("h:1", "oven", "device", None))
    assert rights.may_subscribe("oven", "cookwala/h%3A1/to/oven/#")
    assert Rights("-", devices={"oven"}).may_publish("oven", topics.from_device("-", "oven", "device", None))


def test_a_device_registered_later_has_its_rights_at_once() -> None:
    devices: set[str] = set()
    rights = Rights("home", devices)
    assert not rights.may_publish("oven", "cookwala/home/from/oven/device/-")
    devices.add("oven")
    assert rights.may_publish("oven", "cookwala/home/from/oven/device/-")
