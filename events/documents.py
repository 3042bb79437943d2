"""The strict base of every document that travels (Core §2; rulings D3, Q7).

A document is read in one pass: one strict msgspec decode, then three cheap guards (size, depth, repeated
member names) that take a slower, exact look only when they have a reason to. Unknown members are refused
with their path; `x-` members are allowed everywhere and survive in the raw bytes, which the caller keeps.
"""

import functools
import json
import re
from collections.abc import Hashable
from typing import Any, Final, NoReturn, TypeVar, cast

import msgspec

MAX_DOCUMENT_BYTES: Final = 1_048_576
MAX_DEPTH: Final = 64

T = TypeVar("T")


class DocumentError(ValueError):
    """A document that cannot be accepted.

    Attributes:
        reason: `too_large`, `too_deep`, `not_json`, `bad_unicode`, `bad_number`, `duplicate_key`,
            `unknown_field` or `invalid`.
        path: where, as `$.member[0].member`; `$` when the place is the whole document.
        detail: what was found and what was expected, in words.
    """

    def __init__(self, reason: str, detail: str, path: str = "$") -> None:
        super().__init__(f"{reason} at {path}: {detail}")
        self.reason = reason
        self.path = path
        self.detail = detail


class Document(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """Base of a strict document: closed, immutable, camelCase on the wire."""


class OpenDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of event data the public schema leaves open: our fields are read, the raw bytes keep the rest."""


def parse(raw: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """`raw` as plain JSON values, with every guard of `read` and no schema.

    Raises:
        DocumentError: see its reasons.
    """
    return _decode(raw, max_bytes, max_depth)


def read(kind: type[T], raw: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DEPTH) -> T:
    """`raw` as a `kind`, strictly.

    Raises:
        DocumentError: see its reasons.
    """
    try:
        value: T = _decoder(cast(Hashable, kind)).decode(_sized(raw, max_bytes))
    except RecursionError:
        raise DocumentError("too_deep", f"nested more than {max_depth} levels") from None
    except msgspec.ValidationError as error:
        if "unknown field `x-" not in str(error):
            # Which problem is named must not depend on what msgspec happened to see first.
            _decode(raw, max_bytes, max_depth)
            _refuse(error)
        plain = _decode(raw, max_bytes, max_depth)
        return from_plain(kind, plain)
    except msgspec.DecodeError as error:
        _refuse_json(raw, error)
    _guard(raw, max_depth)
    return value


def from_plain(kind: type[T], plain: Any) -> T:
    """Plain JSON values (already guarded by `parse`) as a `kind`, strictly; unknown `x-` members fall away.

    Raises:
        DocumentError: `unknown_field` or `invalid`.
    """
    try:
        return msgspec.convert(_without_extensions(plain, _declared_extensions(cast(Hashable, kind))), kind)
    except msgspec.ValidationError as error:
        _refuse(error)


def write(document: msgspec.Struct) -> bytes:
    """`document` as JSON, members in the order of its definition."""
    return msgspec.json.encode(document)


def _decode(raw: bytes, max_bytes: int, max_depth: int) -> Any:
    try:
        value = msgspec.json.decode(_sized(raw, max_bytes))
    except RecursionError:
        raise DocumentError("too_deep", f"nested more than {max_depth} levels") from None
    except msgspec.ValidationError as error:
        raise DocumentError("bad_number", str(error)) from None
    except msgspec.DecodeError as error:
        _refuse_json(raw, error)
    _guard(raw, max_depth)
    return value


def _sized(raw: bytes, max_bytes: int) -> bytes:
    if len(raw) > max_bytes:
        raise DocumentError("too_large", f"{len(raw)} bytes, at most {max_bytes} are read")
    return raw


_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _guard(raw: bytes, max_depth: int) -> None:
    """Refuse what msgspec lets pass: too deep, repeated member names. `raw` is well-formed JSON."""
    if raw.count(b"{") + raw.count(b"[") > max_depth:
        depth = deepest = 0
        for byte in _STRING.sub(b"", raw):
            if byte in b"{[":
                depth += 1
                deepest = max(deepest, depth)
            elif byte in b"}]":
                depth -= 1
        if deepest > max_depth:
            raise DocumentError("too_deep", f"nested {deepest} levels, at most {max_depth} are read")
    # A repeated name loses a member, and with it a colon, on the way through a decode and an encode.
    # An escaped colon would gain one, and so takes the slow way.
    escaped_colon = b"\\u003a" in raw or b"\\u003A" in raw
    if escaped_colon or msgspec.json.encode(msgspec.json.decode(raw)).count(b":") != raw.count(b":"):
        json.loads(raw, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for name, value in pairs:
        if name in seen:
            raise DocumentError("duplicate_key", f"member {name[:80]!r} stands twice in one object")
        seen[name] = value
    return seen


def _refuse_json(raw: bytes, error: msgspec.DecodeError) -> NoReturn:
    text = str(error)
    if "UTF-8" in text or "surrogate" in text or (_ESCAPED_SURROGATE.search(raw) and _lone_surrogate(raw)):
        raise DocumentError("bad_unicode", "not valid UTF-8, or half a surrogate pair") from None
    raise DocumentError("not_json", text) from None


def _lone_surrogate(raw: bytes) -> bool:
    try:
        json.dumps(json.loads(raw), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


_AT = re.compile(r" - at `(?P<path>.+)`$")


def _refuse(error: msgspec.ValidationError) -> NoReturn:
    text = str(error)
    match = _AT.search(text)
    path = match["path"] if match else "$"
    detail = text[: match.start()] if match else text
    if "out of range" in detail and detail.startswith("Number"):
        raise DocumentError("bad_number", detail, path) from None
    reason = "unknown_field" if "contains unknown field" in detail else "invalid"
    raise DocumentError(reason, detail, path) from None


@functools.cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(type[Any], kind))


@functools.cache
def _declared_extensions(kind: Hashable) -> frozenset[str]:
    """The `x-` members that `kind` and the types inside it name themselves."""
    schema = msgspec.json.schema(kind)
    names: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            properties = node.get("properties")
            if isinstance(properties, dict):
                names.update(name for name in properties if name.startswith("x-"))
            for child in node.values():
                walk(child)
        elif isinstance(node, list):
            for child in node:
                walk(child)

    walk(schema)
    return frozenset(names)


def _without_extensions(value: Any, keep: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_extensions(child, keep)
            for name, child in value.items()
            if not name.startswith("x-") or name in keep
        }
    if isinstance(value, list):
        return [_without_extensions(child, keep) for child in value]
    return value
