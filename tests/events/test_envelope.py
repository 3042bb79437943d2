"""The envelope is strict in both content modes; every problem has its name (rulings D3, E1, E4, case 12)."""

import json
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.events import ExecutionData
from events.catalogue import Heartbeat, NotifyData, SafetyData
from events.documents import DocumentError
from events.envelope import (
    MAX_EVENT_BYTES,
    Event,
    EventError,
    is_binary,
    read_binary_event,
    read_event,
    write_event,
)
from events.registry import Registry
from tests.events.mutants import mutant
from tests.events.samples import (
    ALL,
    FAULT,
    HEARTBEAT,
    QUESTION,
    READINGS,
    SMOKE,
    STEP,
    VENDOR,
    event,
    raw_of,
)

REASONS = {
    *("too_large", "too_deep", "not_json", "bad_unicode", "bad_number", "duplicate_key"),
    *("unknown_field", "invalid", "bad_attribute_name", "attribute_not_string"),
    *("bad_time", "unknown_type", "bad_data"),
}


def refused(plain: Any, registry: Registry) -> EventError:
    with pytest.raises(EventError) as caught:
        read_event(plain if isinstance(plain, bytes) else raw_of(plain), registry)
    return caught.value


@pytest.mark.parametrize("plain", ALL, ids=lambda plain: plain["type"])
def test_valid_events_are_read_and_their_bytes_kept(plain: dict[str, Any], registry: Registry) -> None:
    raw = raw_of(plain)
    read = read_event(raw, registry)
    assert read.raw == raw
    assert read.event_type.name == read.envelope.type == plain["type"]
    for name, value in plain.items():
        if name != "data":
            assert getattr(read.envelope, name) == value
    assert msgspec.json.decode(read.envelope.data) == plain["data"]


def test_data_comes_as_the_registered_type(registry: Registry) -> None:
    heartbeat = read_event(raw_of(HEARTBEAT), registry).data
    assert heartbeat == Heartbeat(interval_s=10, x_boot="boot-1", counter=3)
    step = read_event(raw_of(STEP), registry).data
    assert isinstance(step, ExecutionData)
    assert (step.request, step.state, step.x_boot) == ("req-0001", "needs_human", "boot-1")
    assert step.human_needed is not None
    smoke = read_event(raw_of(SMOKE), registry).data
    assert isinstance(smoke, SafetyData)
    assert smoke.level == "alarm"
    question = read_event(raw_of(QUESTION), registry).data
    assert isinstance(question, NotifyData)
    assert question.x_nonce == "nonce-1"
    assert read_event(raw_of(VENDOR), registry).data == VENDOR["data"]


def test_without_a_subject_an_event_is_about_its_source(registry: Registry) -> None:
    assert read_event(raw_of(VENDOR), registry).subject == VENDOR["source"]
    assert read_event(raw_of(HEARTBEAT), registry).subject == "hob"


# Ruling E4 and hard case 12, as a table: what is changed in a valid event, and what it is called.
E4: list[tuple[str, dict[str, Any], str, str]] = [
    ("a hyphen in an attribute", {"example-extension": "x"}, "bad_attribute_name", "$.example-extension"),
    ("our own prefix in an attribute", {"x-aboyeur-boot": "b"}, "bad_attribute_name", "$.x-aboyeur-boot"),
    ("upper case in an attribute", {"cookwalaSeq": 1}, "bad_attribute_name", "$.cookwalaSeq"),
    ("an underscore in an attribute", {"data_schema": "x"}, "bad_attribute_name", "$.data_schema"),
    ("an umlaut in an attribute", {"küche": "x"}, "bad_attribute_name", "$.küche"),
    ("an attribute without a name", {"": "x"}, "bad_attribute_name", "$."),
    ("an attribute nobody knows", {"traceparent": "x"}, "unknown_field", "$.traceparent"),
    ("a number as id", {"id": 7}, "attribute_not_string", "$.id"),
    ("a number as subject", {"subject": 7}, "attribute_not_string", "$.subject"),
    ("a number as version", {"specversion": 1.0}, "attribute_not_string", "$.specversion"),
    ("a number as time", {"time": 1764504000}, "attribute_not_string", "$.time"),
    ("a boolean as kitchen", {"cookwalakitchen": True}, "attribute_not_string", "$.cookwalakitchen"),
    ("an object as source", {"source": {}}, "attribute_not_string", "$.source"),
    ("an explicit null", {"subject": b"null"}, "attribute_not_string", "$.subject"),
    ("a null priority", {"cookwalapriority": b"null"}, "attribute_not_string", "$.cookwalapriority"),
    ("a time without an offset", {"time": "2026-11-30T12:00:00"}, "bad_time", "$.time"),
    ("a date for a time", {"time": "2026-11-30"}, "bad_time", "$.time"),
    ("a day that does not exist", {"time": "2026-02-30T12:00:00Z"}, "bad_time", "$.time"),
    ("an empty time", {"time": ""}, "bad_time", "$.time"),
    ("a newline after the time", {"time": "2026-11-30T12:00:00Z\n"}, "bad_time", "$.time"),
    ("a sequence number as text", {"cookwalaseq": "4"}, "invalid", "$.cookwalaseq"),
    ("a broken sequence number", {"cookwalaseq": 4.5}, "invalid", "$.cookwalaseq"),
    ("a boolean sequence number", {"cookwalaseq": True}, "invalid", "$.cookwalaseq"),
    ("a null sequence number", {"cookwalaseq": b"null"}, "invalid", "$.cookwalaseq"),
    ("a negative sequence number", {"cookwalaseq": -1}, "invalid", "$.cookwalaseq"),
    ("an inexact sequence number", {"cookwalaseq": 2**53}, "invalid", "$.cookwalaseq"),
    ("an endless sequence number", {"cookwalaseq": 2**80}, "invalid", "$.cookwalaseq"),
    ("another version", {"specversion": "0.3"}, "invalid", "$.specversion"),
    ("another content type", {"datacontenttype": "text/plain"}, "invalid", "$.datacontenttype"),
    ("an unknown priority", {"cookwalapriority": "urgent"}, "invalid", "$.cookwalapriority"),
    ("an unknown latency", {"cookwalalatency": "fast"}, "invalid", "$.cookwalalatency"),
    ("an empty id", {"id": ""}, "invalid", "$.id"),
    ("an endless id", {"id": "x" * 257}, "invalid", "$.id"),
    ("an empty subject", {"subject": ""}, "invalid", "$.subject"),
    ("a control character", {"id": "a\x00b"}, "invalid", "$"),
    ("no id", {"id": None}, "invalid", "$"),
    ("no time", {"time": None}, "invalid", "$"),
    ("no data", {"data": None}, "invalid", "$"),
    ("an unknown type", {"type": "cookwala.device.explode"}, "unknown_type", "$.type"),
    ("a type of another standard", {"type": "com.example.made"}, "unknown_type", "$.type"),
    ("a type cut short", {"type": "cookwala.device"}, "unknown_type", "$.type"),
    ("a vendor's type in capitals", {"type": "x-Acme.glow"}, "unknown_type", "$.type"),
    ("a vendor's type without a name", {"type": "x-acme."}, "unknown_type", "$.type"),
    ("data as a list", {"data": []}, "bad_data", "$.data"),
    ("data as text", {"data": "{}"}, "bad_data", "$.data"),
    ("data that is null", {"data": b"null"}, "bad_data", "$.data"),
    ("data in base64", {"data_base64": "e30="}, "bad_data", "$.data_base64"),
]


@pytest.mark.parametrize(("what", "change", "reason", "path"), E4, ids=[case[0] for case in E4])
def test_what_is_wrong_with_an_envelope_is_named(
    what: str, change: dict[str, Any], reason: str, path: str, registry: Registry
) -> None:
    plain = {**FAULT, **change}
    members = {
        name: b"null" if value == b"null" else raw_of(value)
        for name, value in plain.items()
        if value is not None
    }
    raw = b"{" + b",".join(raw_of(name) + b":" + value for name, value in members.items()) + b"}"
    error = refused(raw, registry)
    assert (error.reason, error.path) == (reason, path), what


@pytest.mark.parametrize("plain", [[], "event", 1, None, [FAULT]])
def test_what_is_no_object_is_no_event(plain: Any, registry: Registry) -> None:
    assert refused(plain, registry).reason == "invalid"


DATA: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("interval too short", HEARTBEAT, {"intervalS": 0.5}, "bad_data", "$.data.intervalS"),
    ("interval too long", HEARTBEAT, {"intervalS": 301}, "bad_data", "$.data.intervalS"),
    ("interval as text", HEARTBEAT, {"intervalS": "10"}, "bad_data", "$.data.intervalS"),
    ("counter below zero", HEARTBEAT, {"counter": -1}, "bad_data", "$.data.counter"),
    ("boot as number", HEARTBEAT, {"x-aboyeur-boot": 4}, "bad_data", "$.data.x-aboyeur-boot"),
    ("no such state", STEP, {"state": "boiling"}, "bad_data", "$.data.state"),
    ("no such level", SMOKE, {"level": "panic"}, "bad_data", "$.data.level"),
    ("closed safety data", SMOKE, {"room": "hall"}, "unknown_field", "$.data"),
    (
        "closed actor",
        SMOKE,
        {"detectedBy": {"kind": "hub", "id": "h", "ip": "1"}},
        "unknown_field",
        "$.data.d",
    ),
    ("closed notification", QUESTION, {"colour": "red"}, "unknown_field", "$.data"),
    ("no language", QUESTION, {"message": {"x-en": "hi"}}, "bad_data", "$.data.message"),
    ("text for a list", QUESTION, {"audience": "role:household"}, "bad_data", "$.data.audience"),
    ("local expiry", QUESTION, {"expiresAt": "2026-11-30T12:01:00"}, "bad_data", "$.data.expiresAt"),
    ("closed telemetry", READINGS, {"extra": 1}, "unknown_field", "$.data"),
    (
        "closed reading",
        READINGS,
        {"readings": [{"sensor": "s", "value": 1, "r": 2}]},
        "unknown_field",
        "$.data.r",
    ),
]


@pytest.mark.parametrize(("what", "plain", "change", "reason", "path"), DATA, ids=[case[0] for case in DATA])
def test_data_is_as_strict_as_its_type(
    what: str, plain: dict[str, Any], change: dict[str, Any], reason: str, path: str, registry: Registry
) -> None:
    error = refused({**plain, "data": {**plain["data"], **change}}, registry)
    assert error.reason == reason
    assert error.path.startswith(path), what


@pytest.mark.parametrize("plain", ALL, ids=lambda plain: plain["type"])
def test_unknown_extension_members_of_data_are_read_over(plain: dict[str, Any], registry: Registry) -> None:
    extended = {**plain, "data": {**plain["data"], "x-unknown": {"x-deep": [1]}}}
    read, bare = read_event(raw_of(extended), registry), read_event(raw_of(plain), registry)
    if read.event_type.data is not None:
        assert read.data == bare.data
    assert b"x-unknown" in read.raw


def test_open_data_keeps_what_we_do_not_read_in_its_bytes(registry: Registry) -> None:
    assert b'"code": "E7"' in read_event(raw_of(FAULT), registry).raw


@pytest.mark.parametrize("priority", [None, "high", "normal", "low"])
def test_a_safety_event_without_safety_priority_is_refused(priority: str | None, registry: Registry) -> None:
    error = refused({n: v for n, v in {**SMOKE, "cookwalapriority": priority}.items() if v}, registry)
    assert (error.reason, error.path) == ("invalid", "$.cookwalapriority")


@pytest.mark.parametrize("priority", ["safety", "high", "normal", "low"])
@pytest.mark.parametrize("latency", ["local_safety", "realtime", "interactive", "background"])
def test_priority_and_latency_decide_nothing(priority: str, latency: str, registry: Registry) -> None:
    """Ruling E3: what an event is treated as comes from its type alone."""
    read = read_event(raw_of({**STEP, "cookwalapriority": priority, "cookwalalatency": latency}), registry)
    assert read.event_type == read_event(raw_of(STEP), registry).event_type
    assert read.data == read_event(raw_of(STEP), registry).data


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"id":"a","id":"b"}', "duplicate_key"),
        (raw_of(FAULT)[:-1] + b',"\\u0069d":"evt-2"}', "duplicate_key"),
        (raw_of(FAULT).replace(b'"E7"', b'{"a":1,"a":2}'), "duplicate_key"),
        (raw_of(FAULT).replace(b'"E7"', b"1e999"), "bad_number"),
        (raw_of(FAULT).replace(b'"E7"', b'"\\ud800"'), "bad_unicode"),
        (raw_of(FAULT).replace(b'"E7"', b'"\xff"'), "bad_unicode"),
        (raw_of(FAULT).replace(b'"E7"', b"[" * 63 + b"]" * 63), "too_deep"),
        (raw_of(FAULT).replace(b'"E7"', b"[" * 5000 + b"]" * 5000), "too_deep"),
        (raw_of(FAULT) + b" " * MAX_EVENT_BYTES, "too_large"),
        (b"\xef\xbb\xbf" + raw_of(FAULT), "not_json"),
        (b"", "not_json"),
    ],
)
def test_every_guard_of_documents_holds_for_events_too(raw: bytes, reason: str, registry: Registry) -> None:
    assert refused(raw, registry).reason == reason


def test_mutated_events_are_accepted_or_named_and_every_reason_is_seen(registry: Registry) -> None:
    outcomes: Counter[str | None] = Counter()
    parsed = 0

    @settings(max_examples=2500, derandomize=True, deadline=None, database=None)
    @given(st.sampled_from(ALL), st.randoms(use_true_random=True))
    def feed(plain: dict[str, Any], random: Any) -> None:
        nonlocal parsed
        raw = mutant(plain, random)
        try:
            json.loads(raw)
            parsed += 1
        except (ValueError, RecursionError):
            pass
        try:
            read_event(raw, registry)
        except DocumentError as error:
            assert isinstance(error, EventError)
            assert error.path.startswith("$")
            outcomes[error.reason] += 1
        else:
            outcomes[None] += 1

    feed()
    total = outcomes.total()
    assert total >= 1500
    assert parsed / total >= 0.5
    assert outcomes[None] / total >= 0.1
    assert {name for name in outcomes if name} == REASONS


# --- binary content mode --------------------------------------------------------------------------------


def binary(plain: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    attributes = {name: str(value) for name, value in plain.items() if name != "data"}
    return attributes, raw_of(plain["data"])


def refused_binary(attributes: dict[str, str], payload: bytes, registry: Registry) -> EventError:
    with pytest.raises(EventError) as caught:
        read_binary_event(attributes, payload, registry)
    return caught.value


@pytest.mark.parametrize("plain", ALL, ids=lambda plain: plain["type"])
def test_both_content_modes_say_the_same(plain: dict[str, Any], registry: Registry) -> None:
    attributes, payload = binary(plain)
    assert is_binary(attributes)
    from_binary = read_binary_event(attributes, payload, registry)
    structured = read_event(raw_of(plain), registry)
    assert from_binary.data == structured.data
    assert json.loads(from_binary.raw) == plain
    again = read_event(from_binary.raw, registry)
    assert again.data == structured.data
    assert again.envelope.cookwalaseq == structured.envelope.cookwalaseq == plain.get("cookwalaseq")


@pytest.mark.parametrize(
    "seq", ["", "4.0", "+4", "-1", "04", " 4", "4 ", "1e3", "٤", "0x4", "9" * 16, "9" * 5000]
)
def test_a_sequence_number_in_binary_mode_is_plain_decimal_text(seq: str, registry: Registry) -> None:
    attributes, payload = binary({**STEP, "cookwalaseq": seq})
    error = refused_binary(attributes, payload, registry)
    assert (error.reason, error.path) == ("invalid", "$.cookwalaseq")


def test_the_largest_exact_sequence_number_is_read_in_both_modes(registry: Registry) -> None:
    largest = {**STEP, "cookwalaseq": 2**53 - 1}
    assert read_event(raw_of(largest), registry).envelope.cookwalaseq == 2**53 - 1
    assert read_binary_event(*binary(largest), registry).envelope.cookwalaseq == 2**53 - 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"example-extension": "x"}, "bad_attribute_name"),
        ({"ID": "x"}, "bad_attribute_name"),
        ({"id#2": "x"}, "bad_attribute_name"),
        ({"data": "{}"}, "bad_attribute_name"),
        ({"data_base64": "e30="}, "bad_attribute_name"),
        ({"traceparent": "x"}, "unknown_field"),
        ({"time": "2026-11-30T12:00:00"}, "bad_time"),
        ({"subject": "\ud800"}, "bad_unicode"),
        ({"type": "cookwala.nothing"}, "unknown_type"),
    ],
)
def test_what_is_wrong_in_binary_mode_is_named(
    change: dict[str, str], reason: str, registry: Registry
) -> None:
    attributes, payload = binary(FAULT)
    assert refused_binary({**attributes, **change}, payload, registry).reason == reason


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not_json"),
        (b'{},"id":"another"', "not_json"),
        (b'{}}{"a":1', "not_json"),
        (b"{} {}", "not_json"),
        (b"[]", "bad_data"),
        (b"null", "bad_data"),
        (b'{"a":1,"a":2}', "duplicate_key"),
        (b'{"a":"\xff"}', "bad_unicode"),
        (b'{"a":' + b"[" * 64 + b"]" * 64 + b"}", "too_deep"),
        (b'{"x-aboyeur-boot":4}', "bad_data"),
        (b'"' + b"a" * MAX_EVENT_BYTES + b'"', "too_large"),
    ],
)
def test_a_payload_in_binary_mode_is_data_and_nothing_else(
    payload: bytes, reason: str, registry: Registry
) -> None:
    """A payload that would close the data and go on with attributes is not JSON of its own."""
    attributes, _ = binary(FAULT)
    assert refused_binary(attributes, payload, registry).reason == reason


def test_a_message_without_attributes_is_not_in_binary_mode() -> None:
    assert not is_binary({})
    assert not is_binary({"id": "1", "source": "s"})


# --- writing ---------------------------------------------------------------------------------------------

NOW = datetime(2026, 11, 30, 12, 0, 0, 250_000, tzinfo=UTC)


def written(registry: Registry, **changes: Any) -> bytes:
    arguments: dict[str, Any] = {
        "event_id": "evt-1",
        "source": "cookwala://home/hob",
        "event_type": "cookwala.device.heartbeat",
        "time": NOW,
        "data": Heartbeat(interval_s=10, x_boot="boot-1", counter=3),
        **changes,
    }
    return write_event(registry, **arguments)


def test_what_is_written_is_read_back_equal(registry: Registry) -> None:
    raw = written(registry, subject="hob", kitchen="home", seq=0, priority="low", latency="background")
    read: Event = read_event(raw, registry)
    assert read.data == Heartbeat(interval_s=10, x_boot="boot-1", counter=3)
    envelope = read.envelope
    assert (envelope.id, envelope.source, envelope.subject) == ("evt-1", "cookwala://home/hob", "hob")
    assert (envelope.cookwalakitchen, envelope.cookwalaseq) == ("home", 0)
    assert (envelope.cookwalapriority, envelope.cookwalalatency) == ("low", "background")
    assert envelope.time == "2026-11-30T12:00:00.250Z"
    assert envelope.datacontenttype == "application/json"


def test_a_safety_event_is_written_with_its_priority(registry: Registry) -> None:
    raw = written(registry, event_type="cookwala.safety.smoke", data=SafetyData(level="alarm", action="none"))
    assert read_event(raw, registry).envelope.cookwalapriority == "safety"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"event_id": ""}, "invalid"),
        ({"event_id": 7}, "attribute_not_string"),
        ({"event_id": "\ud800"}, "bad_unicode"),
        ({"seq": -1}, "invalid"),
        ({"seq": "1"}, "invalid"),
        ({"subject": "a\nb"}, "invalid"),
        ({"event_type": "cookwala.nothing"}, "unknown_type"),
        ({"data": {"intervalS": 0}}, "bad_data"),
        ({"data": {"a": "x" * MAX_EVENT_BYTES}}, "too_large"),
        ({"event_type": "cookwala.safety.co", "data": {"level": "alarm"}}, "bad_data"),
        ({"event_type": "cookwala.safety.co", "priority": "high"}, "invalid"),
    ],
)
def test_nothing_is_written_that_would_not_be_read(
    changes: dict[str, Any], reason: str, registry: Registry
) -> None:
    with pytest.raises(EventError) as caught:
        written(registry, **changes)
    assert caught.value.reason == reason


def test_a_time_without_an_offset_is_not_written(registry: Registry) -> None:
    with pytest.raises(ValueError, match="offset"):
        written(registry, time=datetime(2026, 11, 30, 12))


def test_a_vendors_event_is_written_and_read(registry: Registry) -> None:
    raw = written(registry, event_type="x-acme.glow", data={"colour": "red"})
    assert read_event(raw, registry).data == {"colour": "red"}
    assert event("x-acme.glow", {"colour": "red"})["type"] == read_event(raw, registry).envelope.type
