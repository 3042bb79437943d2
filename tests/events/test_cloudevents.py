"""Two judges of our events that nobody here wrote: the CloudEvents SDK and the public event schema."""

import functools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing
from cloudevents.core.exceptions import CloudEventValidationError
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from referencing.jsonschema import DRAFT202012

from events.envelope import EventError, read_event, write_event
from events.registry import Registry
from events.times import parse_date_time
from tests.events.mutants import mutant
from tests.events.samples import ALL, FAULT, event, raw_of

SCHEMAS = Path(__file__).parents[3] / "shared/reference/cookwala/schemas"
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def written(draw: st.DrawFn) -> dict[str, Any]:
    """What `write_event` is asked for."""
    plain = draw(st.sampled_from(ALL))
    optional: dict[str, Any] = {
        "subject": TEXTS,
        "kitchen": TEXTS,
        "seq": st.integers(0, 2**53 - 1),
        "latency": st.sampled_from(("local_safety", "realtime", "interactive", "background")),
    }
    return {
        "event_id": draw(TEXTS),
        "source": draw(TEXTS),
        "event_type": plain["type"],
        "time": draw(st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))),
        "data": {**plain["data"], **draw(st.dictionaries(TEXTS.map("x-".__add__), VALUES, max_size=2))},
        **{name: draw(values) for name, values in optional.items() if draw(st.booleans())},
    }


@functools.cache
def public_schema() -> jsonschema.Draft202012Validator:
    """The public event schema; what it refers to and is not public resolves to an open schema."""
    if not SCHEMAS.exists():
        pytest.skip(f"the public reference data is not there: {SCHEMAS}")

    def retrieve(uri: str) -> referencing.Resource[Any]:
        found = SCHEMAS / uri.rpartition("/")[2]
        if found.exists():
            return DRAFT202012.create_resource(json.loads(found.read_text()))
        absent = {"$defs": {"TaskState": True, "Item": True}}
        return DRAFT202012.create_resource(absent)

    return jsonschema.Draft202012Validator(
        json.loads((SCHEMAS / "event.schema.json").read_text()),
        registry=referencing.Registry(retrieve=retrieve),
    )


@settings(max_examples=300, deadline=None)
@given(what=written())
def test_the_sdk_reads_what_we_write_as_we_do(what: dict[str, Any], registry: Registry) -> None:
    raw = write_event(registry, **what)
    theirs = JSONFormat().read(None, raw)
    ours = read_event(raw, registry).envelope
    assert theirs.get_data() == json.loads(bytes(ours.data)) == what["data"]
    assert (theirs.get_id(), theirs.get_source(), theirs.get_type()) == (ours.id, ours.source, ours.type)
    assert theirs.get_subject() == ours.subject == what.get("subject")
    assert theirs.get_time() == parse_date_time(ours.time)
    assert theirs.get_datacontenttype() == ours.datacontenttype
    for name in ("cookwalaseq", "cookwalakitchen", "cookwalapriority", "cookwalalatency"):
        assert theirs.get_extension(name) == getattr(ours, name)


@settings(max_examples=300, deadline=None)
@given(what=written())
def test_we_read_what_the_sdk_writes_as_it_does(what: dict[str, Any], registry: Registry) -> None:
    attributes = {
        "id": what["event_id"],
        "source": what["source"],
        "type": what["event_type"],
        "time": what["time"],
        "subject": what.get("subject"),
        "cookwalaseq": what.get("seq"),
        "cookwalapriority": "safety" if ".safety." in what["event_type"] else None,
    }
    theirs = CloudEvent(
        {name: value for name, value in attributes.items() if value is not None}, what["data"]
    )
    ours = read_event(JSONFormat().write(theirs), registry).envelope
    assert (ours.id, ours.source, ours.type) == (theirs.get_id(), theirs.get_source(), theirs.get_type())
    assert ours.subject == theirs.get_subject()
    assert parse_date_time(ours.time) == theirs.get_time()
    assert ours.cookwalaseq == theirs.get_extension("cookwalaseq")
    assert json.loads(bytes(ours.data)) == theirs.get_data()


@pytest.mark.parametrize(
    "change",
    [
        {"example-extension": "x"},
        {"cookwalaSeq": 1},
        {"id": 7},
        {"id": ""},
        {"source": {}},
        {"subject": 7},
        {"subject": ""},
        {"specversion": "0.3"},
        {"time": "2026-11-30T12:00:00"},
        {"datacontenttype": 1},
    ],
    ids=str,
)
def test_what_the_sdk_refuses_we_refuse(change: dict[str, Any], registry: Registry) -> None:
    raw = raw_of({**FAULT, **change})
    with pytest.raises((CloudEventValidationError, TypeError)):
        # Its reader picks the class by version; ours is 1.0 only.
        JSONFormat().read(lambda attributes, data: CloudEvent(attributes, data), raw)
    with pytest.raises(EventError):
        read_event(raw, registry)


@pytest.mark.reference
@settings(max_examples=200, deadline=None)
@given(what=written())
def test_whatever_we_write_validates_against_the_public_schema(
    what: dict[str, Any], registry: Registry
) -> None:
    public_schema().validate(json.loads(write_event(registry, **what)))


@pytest.mark.reference
def test_our_sample_events_validate_against_the_public_schema() -> None:
    for plain in ALL:
        public_schema().validate(plain)
    assert not public_schema().is_valid(event("cookwala.device.explode", {}))


@pytest.mark.reference
@settings(max_examples=600, deadline=None)
@given(plain=st.sampled_from(ALL), random=st.randoms(use_true_random=True))
def test_whatever_we_accept_the_public_schema_accepts(
    plain: dict[str, Any], random: Any, registry: Registry
) -> None:
    """We may be stricter than the schema, never laxer: mutants hold no `null` but in extension members."""
    raw = mutant(plain, random)
    try:
        read_event(raw, registry)
    except EventError:
        return
    public_schema().validate(json.loads(raw))
