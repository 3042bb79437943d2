"""Our own JSON Schema (2020-12) of every document, made from the types (Core §2; rulings D6, D7).

Nothing in it is to be fetched: all that it refers to stands in it. Objects are closed but for `x-` members,
free text is marked, and the same types always give the same bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from events.documents import Document, OpenDocument
from events.registry import Registry
from events.times import DATE_TIME_PATTERN
from hub.document_kinds import EVENT, KINDS
from hub.event_types import event_registry

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
BUNDLE_ID: Final = "urn:aboyeur:schema:core-0.2"

_ENVELOPE: Final = "Envelope"
_VENDOR_TYPE: Final = r"^x-[a-z0-9-]+\.[a-z0-9_.]+$"


def bundle() -> dict[str, Any]:
    """The schema of every kind of document under `$defs`; one of them holds."""
    registry = event_registry()
    kinds = list(KINDS.values())
    data = [one.data for one in registry if one.data is not None]
    _, components = msgspec.json.schema_components([*kinds, *dict.fromkeys(data)])
    structs = _structs((*kinds, *data))
    defs = {name: _finished(schema, structs.get(name)) for name, schema in components.items()}
    defs[EVENT] = _event(registry)
    return {
        "$schema": DIALECT,
        "$id": BUNDLE_ID,
        "title": "The documents of Cookwala Core 0.2 as Aboyeur reads them",
        "anyOf": [{"$ref": f"#/$defs/{kind}"} for kind in KINDS],
        "$defs": defs,
    }


def bundle_bytes() -> bytes:
    """The bundle as indented JSON; the same bytes for the same types."""
    return msgspec.json.format(msgspec.json.encode(bundle(), order="sorted"), indent=1) + b"\n"


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of one kind, with all it refers to.

    Raises:
        KeyError: there is no such kind.
    """
    if kind not in KINDS:
        raise KeyError(kind)
    whole = bundle()
    del whole["anyOf"]
    return {**whole, "$ref": f"#/$defs/{kind}"}


def _structs(types: tuple[Any, ...]) -> dict[str, inspect.StructType]:
    """Every Struct that `types` hold, by its name, which no other may have."""
    found: dict[str, inspect.StructType] = {}
    waiting: list[Any] = [inspect.type_info(one) for one in types]
    while waiting:
        shape = waiting.pop()
        if isinstance(shape, inspect.StructType):
            name = shape.cls.__name__
            if name in found:
                if found[name].cls is not shape.cls:
                    raise ValueError(f"two types are called {name}")
                continue
            found[name] = shape
        waiting.extend(_parts(shape))
    return found


def _parts(shape: inspect.Type) -> Iterator[inspect.Type]:
    match shape:
        case inspect.StructType():
            yield from (member.type for member in shape.fields)
        case inspect.Metadata():
            yield shape.type
        case inspect.UnionType():
            yield from shape.types
        case inspect.DictType():
            yield from (shape.key_type, shape.value_type)
        case inspect.CollectionType():
            yield shape.item_type


def _finished(schema: dict[str, Any], struct: inspect.StructType | None) -> dict[str, Any]:
    """The schema of one type, with what msgspec does not say of it."""
    if struct is None:
        return schema
    closed = schema.get("additionalProperties") is False
    properties = {name: _present(one, closed) for name, one in schema.get("properties", {}).items()}
    finished = {**schema, "properties": properties}
    if closed and struct.cls.__name__ != _ENVELOPE:
        # the attributes of an event are closed by CloudEvents itself
        finished["patternProperties"] = {"^x-": {}}
    if issubclass(struct.cls, Document | OpenDocument):
        _add(finished, struct.cls.json_schema)
    return finished


def _present(member: dict[str, Any], closed: bool) -> dict[str, Any]:
    """A member where it is present: the `null` that a closed Struct has for its absence is no value of it."""
    present = {key: value for key, value in member.items() if key != "default"}
    if not closed:
        return present
    arms = [arm for arm in present.get("anyOf", ()) if arm != {"type": "null"}]
    if len(arms) == 1:
        return {**{key: value for key, value in present.items() if key != "anyOf"}, **arms[0]}
    return {**present, "anyOf": arms} if arms else present


def _add(schema: dict[str, Any], rules: Mapping[str, Any]) -> None:
    for key, rule in rules.items():
        if key != "properties":
            schema[key] = rule
            continue
        for name, more in rule.items():
            schema["properties"][name] = {**schema["properties"][name], **more}


def _event(registry: Registry) -> dict[str, Any]:
    """An event: its envelope, and by its type its data."""
    by_data: dict[str, list[str]] = {}
    for one in registry:
        if one.data is not None:
            by_data.setdefault(one.data.__name__, []).append(one.name)
    names = sorted(one.name for one in registry)
    return {
        "$ref": f"#/$defs/{_ENVELOPE}",
        "properties": {
            "type": {"anyOf": [{"enum": names}, {"pattern": _VENDOR_TYPE}]},
            "time": {"pattern": DATE_TIME_PATTERN},
            "data": {"type": "object"},
        },
        "allOf": [
            {
                "if": {"properties": {"type": {"pattern": r"^cookwala\.safety\."}}},
                "then": {
                    "properties": {"cookwalapriority": {"const": "safety"}},
                    "required": ["cookwalapriority"],
                },
            },
            *(
                {
                    "if": {"properties": {"type": {"enum": sorted(types)}}},
                    "then": {"properties": {"data": {"$ref": f"#/$defs/{data}"}}},
                }
                for data, types in sorted(by_data.items())
            ),
        ],
    }
