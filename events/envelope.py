"""The CloudEvents 1.0 envelope, read strictly in structured and in binary content mode (rulings D3, E4).

The envelope is closed: an attribute that this module does not name is refused, and so is a `null`. `data`
is read as the type the registry names; where that is an open one, `Event.raw` keeps the rest.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Raw

from events.documents import DocumentError, parse, read_part
from events.registry import EventType, Registry
from events.times import format_date_time, parse_date_time

MAX_EVENT_BYTES: Final = 65_536
"""The size up to which CloudEvents asks intermediaries to carry an event."""

MAX_SEQ: Final = 2**53 - 1
"""The largest integer that every JSON reader carries exactly."""

Priority = Literal["safety", "high", "normal", "low"]
Latency = Literal["local_safety", "realtime", "interactive", "background"]
Text = Annotated[str, Meta(min_length=1, max_length=256)]
LongText = Annotated[str, Meta(min_length=1, max_length=1024)]
Seq = Annotated[int, Meta(ge=0, le=MAX_SEQ)]


class EventError(DocumentError):
    """An event that cannot be accepted.

    Attributes:
        reason: one of `DocumentError`'s, or `bad_attribute_name`, `attribute_not_string`, `bad_time`,
            `unknown_type`, `bad_data`.
    """


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The attributes of an event and, undecoded, its data. Priority and latency never decide (ruling E3)."""

    specversion: Literal["1.0"]
    id: Text
    source: LongText
    type: Text
    time: str
    data: Raw
    subject: Text | None = None
    datacontenttype: Literal["application/json"] | None = None
    dataschema: LongText | None = None
    cookwalapriority: Priority | None = None
    cookwalakitchen: Text | None = None
    cookwalasession: Text | None = None
    cookwalasig: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None
    cookwalaseq: Seq | None = None
    cookwalalatency: Latency | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event that was read.

    Attributes:
        envelope: its attributes.
        data: a Struct of the registered type, or a `dict` where the type leaves data open.
        raw: the whole event as structured JSON; from structured mode, byte for byte as it came.
        event_type: the registry's entry for its type.
    """

    envelope: Envelope
    data: Any
    raw: bytes
    event_type: EventType

    @property
    def subject(self) -> str:
        """What the event is about: its subject, else its source (ruling E1)."""
        return self.envelope.subject or self.envelope.source


def read_event(raw: bytes, registry: Registry) -> Event:
    """An event in structured content mode.

    Raises:
        EventError: see its reasons.
    """
    if len(raw) > MAX_EVENT_BYTES:
        raise EventError("too_large", f"{len(raw)} bytes, at most {MAX_EVENT_BYTES} are read")
    # White space around the object says nothing, and would not survive a way through the log.
    raw = raw.strip(b" \t\r\n")
    try:
        plain = parse(raw, max_bytes=MAX_EVENT_BYTES)
        envelope = _envelope(raw, plain)
        event_type = _event_type(envelope, registry)
        return Event(envelope, _data(envelope, plain, event_type), raw, event_type)
    except EventError:
        raise
    except DocumentError as error:
        raise EventError(error.reason, error.detail, error.path) from None


def is_binary(attributes: Mapping[str, str]) -> bool:
    """Whether MQTT 5 user properties say that the message is an event in binary content mode."""
    return "specversion" in attributes


def read_binary_event(attributes: Mapping[str, str], payload: bytes, registry: Registry) -> Event:
    """An event in binary content mode: attributes as text, `payload` is its data.

    `Event.raw` is the same event in structured mode.

    Raises:
        EventError: see its reasons.
    """
    members: dict[str, Any] = dict(attributes)
    try:
        parse(payload, max_bytes=MAX_EVENT_BYTES)
        for name in ("data", "data_base64"):
            if name in members:
                raise EventError("bad_attribute_name", "data travels in the payload", f"$.{name}")
        seq = attributes.get("cookwalaseq")
        if seq is not None:
            if not _DECIMAL.fullmatch(seq):
                raise EventError("invalid", "expected a whole number in plain decimal", "$.cookwalaseq")
            members["cookwalaseq"] = int(seq)
        try:
            raw = msgspec.json.encode({**members, "data": Raw(payload)})
        except UnicodeEncodeError as error:
            raise EventError("bad_unicode", error.reason) from None
    except EventError:
        raise
    except DocumentError as error:
        raise EventError(error.reason, error.detail, error.path.replace("$", "$.data", 1)) from None
    return read_event(raw, registry)


def write_event(
    registry: Registry,
    *,
    event_id: str,
    source: str,
    event_type: str,
    time: datetime,
    data: msgspec.Struct | Mapping[str, Any],
    subject: str | None = None,
    kitchen: str | None = None,
    seq: int | None = None,
    priority: Priority | None = None,
    latency: Latency | None = None,
) -> bytes:
    """An event in structured content mode, as strict as what is read. Safety events get their priority.

    Raises:
        EventError: it would not be readable here.
        ValueError: `time` has no offset.
    """
    if priority is None and event_type.startswith(_SAFETY):
        priority = "safety"
    envelope = Envelope(
        specversion="1.0",
        id=event_id,
        source=source,
        type=event_type,
        time=format_date_time(time),
        data=Raw(msgspec.json.encode(data)),
        subject=subject,
        datacontenttype="application/json",
        cookwalapriority=priority,
        cookwalakitchen=kitchen,
        cookwalaseq=seq,
        cookwalalatency=latency,
    )
    try:
        raw = msgspec.json.encode(envelope)
    except UnicodeEncodeError as error:
        raise EventError("bad_unicode", error.reason) from None
    read_event(raw, registry)
    return raw


_SAFETY: Final = "cookwala.safety."
_DECIMAL = re.compile(r"0|[1-9][0-9]{0,15}")
_ATTRIBUTE_NAME = re.compile(r"[a-z0-9]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_TEXT: Final = frozenset(("data", "cookwalaseq"))
_ENVELOPE = msgspec.json.Decoder(Envelope)


def _envelope(raw: bytes, plain: Any) -> Envelope:
    try:
        envelope = _ENVELOPE.decode(raw)
    except msgspec.ValidationError:
        _name_problem(plain)
        # What is left are missing attributes and values outside their range: msgspec's own words say it best.
        envelope = read_part(Envelope, raw)
    # An optional attribute that says `null` is indistinguishable from an absent one in the Struct.
    if b"null" in raw:
        _name_problem(plain)
    for value in (envelope.id, envelope.source, envelope.type, envelope.subject, envelope.cookwalakitchen):
        if value is not None and not value.isprintable() and _CONTROL.search(value):
            raise EventError("invalid", "an attribute holds a control character")
    try:
        parse_date_time(envelope.time)
    except ValueError as error:
        raise EventError("bad_time", str(error), "$.time") from None
    if envelope.type.startswith(_SAFETY) and envelope.cookwalapriority != "safety":
        raise EventError("invalid", "a safety event carries the priority `safety`", "$.cookwalapriority")
    return envelope


def _name_problem(plain: Any) -> None:
    """Name what is wrong with an envelope's attributes, in an order that does not depend on theirs."""
    if not isinstance(plain, dict):
        raise EventError("invalid", "an event is a JSON object")
    for name in sorted(plain):
        path = f"$.{name[:80]}"
        if name == "data_base64":
            raise EventError("bad_data", "data is a JSON object, not base64 text", path)
        if not _ATTRIBUTE_NAME.fullmatch(name):
            raise EventError(
                "bad_attribute_name", "an attribute's name is lower-case letters and digits", path
            )
        if name not in Envelope.__struct_encode_fields__:
            raise EventError("unknown_field", "no such attribute", path)
    for name in sorted(plain.keys() - _NOT_TEXT):
        if not isinstance(plain[name], str):
            raise EventError("attribute_not_string", "an attribute is text", f"$.{name}")
    if "cookwalaseq" in plain and type(plain["cookwalaseq"]) is not int:
        raise EventError("invalid", "expected a JSON integer", "$.cookwalaseq")


def _event_type(envelope: Envelope, registry: Registry) -> EventType:
    event_type = registry.lookup(envelope.type)
    if event_type is None:
        raise EventError("unknown_type", f"no event type is called {envelope.type[:80]!r}", "$.type")
    return event_type


def _data(envelope: Envelope, plain: Mapping[str, Any], event_type: EventType) -> Any:
    data = plain["data"]
    if not isinstance(data, dict):
        raise EventError("bad_data", "data is a JSON object", "$.data")
    if event_type.data is None:
        return data
    try:
        return read_part(event_type.data, envelope.data)
    except DocumentError as error:
        reason = error.reason if error.reason == "unknown_field" else "bad_data"
        raise EventError(reason, error.detail, error.path.replace("$", "$.data", 1)) from None
