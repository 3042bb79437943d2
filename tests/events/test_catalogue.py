"""Every public event type has its class, its data and its senders (DESIGN §4, ruling E2)."""

import json
from pathlib import Path

import pytest

from events.catalogue import DeviceData, Heartbeat, SafetyData, register_events
from events.documents import Document
from events.registry import ANYBODY, EventType, Registry

SCHEMA = Path(__file__).parents[3] / "shared/reference/cookwala/schemas/event.schema.json"


@pytest.mark.reference
def test_every_public_type_is_known_and_no_other(registry: Registry) -> None:
    if not SCHEMA.exists():
        pytest.skip(f"the public reference data is not there: {SCHEMA}")
    public = json.loads(SCHEMA.read_text())["$defs"]["EventType"]["anyOf"][0]["enum"]
    assert sorted(public) == sorted(event_type.name for event_type in registry)


@pytest.mark.reference
def test_data_is_closed_where_the_public_schema_closes_it(registry: Registry) -> None:
    if not SCHEMA.exists():
        pytest.skip(f"the public reference data is not there: {SCHEMA}")
    closing = [
        rule["if"]["properties"]["type"]["pattern"].strip("^").replace("\\", "")
        for rule in json.loads(SCHEMA.read_text())["allOf"]
    ]
    assert closing
    for event_type in registry:
        closed = event_type.data is not None and issubclass(event_type.data, Document)
        assert closed == event_type.name.startswith(tuple(closing)), event_type.name


NEVER_FROM_A_DEVICE = {
    "cookwala.human.presence",
    "cookwala.human.confirmation",
    "cookwala.human.override",
    "cookwala.handoff.acknowledged",
    "cookwala.lease.granted",
    "cookwala.recall.published",
    "cookwala.policy.evaluated",
    "cookwala.policy.acknowledged",
}


def test_exactly_the_ruled_types_never_come_from_a_device(registry: Registry) -> None:
    assert {one.name for one in registry if "device" not in one.senders} == NEVER_FROM_A_DEVICE
    assert all("hub" in one.senders for one in registry)


@pytest.mark.parametrize(
    ("name", "event_class"),
    [
        ("cookwala.execution.accepted", "sequenced"),
        ("cookwala.execution.state_changed", "sequenced"),
        ("cookwala.device.heartbeat", "telemetry"),
        ("cookwala.telemetry.reading", "telemetry"),
        ("cookwala.safety.smoke", "effect"),
        ("cookwala.safety.limit_fired", "effect"),
        ("cookwala.device.fault", "effect"),
        ("cookwala.device.online", "effect"),
        ("cookwala.human.presence", "effect"),
        ("cookwala.lease.requested", "effect"),
        ("cookwala.inventory.changed", "effect"),
        ("cookwala.notify.request", "effect"),
        ("cookwala.market.quote", "logged"),
        ("x-acme.anything", "logged"),
    ],
)
def test_a_type_is_treated_by_its_class(name: str, event_class: str, registry: Registry) -> None:
    known = registry.lookup(name)
    assert known is not None
    assert known.event_class == event_class


def test_only_executions_are_sequenced(registry: Registry) -> None:
    sequenced = {one.name for one in registry if one.event_class == "sequenced"}
    assert sequenced == {name for name in (one.name for one in registry) if ".execution." in name}
    assert len(sequenced) == 5


def test_the_nearest_data_type_is_taken(registry: Registry) -> None:
    def data(name: str) -> type | None:
        known = registry.lookup(name)
        assert known is not None
        return known.data

    assert data("cookwala.device.heartbeat") is Heartbeat
    assert data("cookwala.device.fault") is DeviceData
    assert data("cookwala.safety.cleared") is SafetyData
    assert data("cookwala.mission.closed") is None


@pytest.mark.parametrize(
    "name", ["x-", "x-acme", "x-acme.", "x-Acme.a", "x-acme.A", "x-acme.a\n", "y-acme.a", "x-a-1.b_2.c"]
)
def test_only_a_well_formed_vendor_type_is_taken_for_one(name: str, registry: Registry) -> None:
    known = registry.lookup(name)
    if name == "x-a-1.b_2.c":
        assert known == EventType(name, "logged", None, ANYBODY)
    else:
        assert known is None


def test_a_name_is_entered_once_and_never_a_vendors() -> None:
    made = Registry()
    register_events(made)
    with pytest.raises(ValueError, match="already"):
        register_events(made)
    with pytest.raises(ValueError, match="vendor"):
        made.register(EventType("x-acme.a", "effect", None, ANYBODY))
    assert Registry().lookup("cookwala.device.online") is None
