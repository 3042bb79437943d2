"""Who may say what (ruling E2), as a table: one line is one thing a publisher tries."""

from typing import Any

import pytest

from events.admission import Publisher, admit
from events.envelope import read_event
from events.registry import Registry
from events.topics import FromTopic, category_of, from_device, parse_from
from tests.events.samples import ALL, HOME, QUESTION, SMOKE, STEP, event, raw_of

HOB = Publisher("hob", HOME)
SAFETY = {"data": SMOKE["data"], "cookwalapriority": "safety"}


def verdict(
    registry: Registry,
    plain: dict[str, Any],
    publisher: Publisher = HOB,
    kitchen: str = "home",
    **topic: Any,
) -> str | None:
    """What is said to an event on the topic that fits it, save for the levels given."""
    fitting = {
        "kitchen": "home",
        "device": publisher.device,
        "category": category_of(plain["type"]),
        "subject": plain.get("subject"),
    }
    read = read_event(raw_of(plain), registry)
    refused = admit(read, publisher, kitchen, registry, topic=FromTopic(**{**fitting, **topic}))
    if refused is not None:
        assert refused.detail
    return refused.reason if refused else None


@pytest.mark.parametrize("plain", ALL, ids=lambda plain: plain["type"])
def test_a_device_may_say_what_is_its_own(plain: dict[str, Any], registry: Registry) -> None:
    assert verdict(registry, plain) is None


ONLINE = event("cookwala.device.online", {}, subject="hob")
E2: list[tuple[str, dict[str, Any], dict[str, Any], str | None]] = [
    ("another device's source", {**ONLINE, "source": "cookwala://home/oven"}, {}, "foreign_source"),
    ("the hub's source", {**ONLINE, "source": "cookwala://home/hub"}, {}, "foreign_source"),
    ("its source in another kitchen", {**ONLINE, "source": "cookwala://away/hob"}, {}, "foreign_source"),
    ("its source, written otherwise", {**ONLINE, "source": "cookwala://home/HOB"}, {}, "foreign_source"),
    ("its source with a tail", {**ONLINE, "source": HOME + "/"}, {}, "foreign_source"),
    ("another device online", {**ONLINE, "subject": "oven"}, {}, "foreign_subject"),
    ("another device's address online", {**ONLINE, "subject": "cookwala://home/oven"}, {}, "foreign_subject"),
    ("itself, by its address", {**ONLINE, "subject": HOME}, {}, None),
    ("itself, by no subject", {k: v for k, v in ONLINE.items() if k != "subject"}, {}, None),
    ("another device's fault", event("cookwala.device.fault", {}, subject="oven"), {}, "foreign_subject"),
    ("another device's life", event("cookwala.device.heartbeat", {}, subject="oven"), {}, "foreign_subject"),
    ("an alarm about another device", {**SMOKE, "subject": "cookwala://home/oven"}, {}, "foreign_subject"),
    ("an alarm about a place", {**SMOKE, "subject": "counter-left"}, {}, None),
    ("a step of any execution", {**STEP, "subject": "exe-77"}, {}, None),
    ("its kitchen, named", {**ONLINE, "cookwalakitchen": "home"}, {}, None),
    ("another kitchen, named", {**ONLINE, "cookwalakitchen": "away"}, {}, "wrong_kitchen"),
    ("another kitchen's topic", ONLINE, {"kitchen": "away"}, "wrong_kitchen"),
    ("another device's topic", ONLINE, {"device": "oven"}, "wrong_topic"),
    ("the topic of another category", ONLINE, {"category": "safety"}, "wrong_topic"),
    ("the topic of another subject", ONLINE, {"subject": "oven"}, "wrong_topic"),
    ("the topic of no subject", ONLINE, {"subject": None}, "wrong_topic"),
    ("a person's presence", event("cookwala.human.presence", {}), {}, "forbidden_type"),
    ("a person's confirmation", event("cookwala.human.confirmation", {}), {}, "forbidden_type"),
    ("a person's override", event("cookwala.human.override", {}), {}, "forbidden_type"),
    ("an acknowledged handoff", event("cookwala.handoff.acknowledged", {}), {}, "forbidden_type"),
    ("a lease granted to itself", event("cookwala.lease.granted", {}), {}, "forbidden_type"),
    ("a recall", event("cookwala.recall.published", {}), {}, "forbidden_type"),
    ("a policy evaluated", event("cookwala.policy.evaluated", {}), {}, "forbidden_type"),
    ("a policy acknowledged", event("cookwala.policy.acknowledged", {}), {}, "forbidden_type"),
    ("a lease asked for", event("cookwala.lease.requested", {}), {}, None),
    ("a lease given back", event("cookwala.lease.released", {}), {}, None),
    ("a handoff refused", event("cookwala.handoff.refused", {}), {}, None),
    ("an alarm", SMOKE, {}, None),
    ("the end of an alarm", event("cookwala.safety.cleared", **SAFETY), {}, None),
    ("a question", QUESTION, {}, None),
    ("a vendor's own", event("x-acme.glow", {}), {}, None),
    ("a vendor's human", event("x-acme.human.presence", {}), {}, None),
]


@pytest.mark.parametrize(("what", "plain", "topic", "reason"), E2, ids=[case[0] for case in E2])
def test_what_a_device_may_say(
    what: str, plain: dict[str, Any], topic: dict[str, Any], reason: str | None, registry: Registry
) -> None:
    assert verdict(registry, plain, **topic) == reason, what


def test_priority_and_latency_admit_nobody(registry: Registry) -> None:
    """Ruling E3."""
    granted = event("cookwala.lease.granted", {}, cookwalapriority="safety", cookwalalatency="local_safety")
    assert verdict(registry, granted) == "forbidden_type"


@pytest.mark.parametrize(
    ("role", "event_type", "reason"),
    [
        ("hub", "cookwala.lease.granted", None),
        ("hub", "cookwala.human.presence", None),
        ("hub", "cookwala.recall.published", None),
        ("person", "cookwala.human.presence", None),
        ("person", "cookwala.handoff.acknowledged", None),
        ("person", "cookwala.lease.granted", "forbidden_type"),
        ("person", "cookwala.device.online", "forbidden_type"),
        ("person", "cookwala.recall.published", "forbidden_type"),
    ],
)
def test_hub_and_people_say_what_devices_may_not(
    role: Any, event_type: str, reason: str | None, registry: Registry
) -> None:
    assert verdict(registry, event(event_type, {}), Publisher("hob", HOME, role)) == reason


def test_a_type_that_this_registry_does_not_know_is_forbidden(registry: Registry) -> None:
    read = read_event(raw_of(ONLINE), registry)
    topic = parse_from(from_device("home", "hob", "device", "hob"))
    assert topic is not None
    refused = admit(read, HOB, "home", Registry(), topic=topic)
    assert refused is not None
    assert refused.reason == "forbidden_type"
