"""The strict base of every document that travels (Core §2; rulings D3, Q7).

A document is read by one strict msgspec decode behind cheap guards of its text (size, depth, repeated member
names), which take a slower, exact look only when they have a reason to. Unknown members are refused with
their path; `x-` members are allowed everywhere and survive in the raw bytes, which the caller keeps.
"""

import functools
import json
import re
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Final, NoReturn, TypeVar, cast

import msgspec

from events.extensions import without_extensions
from events.nulls import forbidden_null

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

    json_schema: ClassVar[Mapping[str, Any]] = {}
    """What the type's own rules (its `__post_init__`) say in JSON Schema, for the bundle."""


class OpenDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of event data the public schema leaves open: our fields are read, the raw bytes keep the rest."""

    json_schema: ClassVar[Mapping[str, Any]] = {}
    """As `Document.json_schema`."""


def parse(raw: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """`raw` as plain JSON values, with every guard of `read` and no schema.

    Raises:
        DocumentError: `too_large`, `too_deep`, `not_json`, `bad_unicode`, `bad_number` or `duplicate_key`.
    """
    plain = decode(_PLAIN, raw, max_bytes=max_bytes, max_depth=max_depth)
    guard_names(raw, msgspec.json.encode(plain))
    return plain


def decode(
    decoder: msgspec.json.Decoder[Any],
    raw: bytes,
    *,
    max_bytes: int = MAX_DOCUMENT_BYTES,
    max_depth: int = MAX_DEPTH,
) -> Any:
    """`raw` as `decoder` reads it, with every guard of `parse` but `guard_names`, which the caller owes.

    Raises:
        DocumentError: as `parse`, without `duplicate_key`.
    """
    if len(raw) > max_bytes:
        raise DocumentError("too_large", f"{len(raw)} bytes, at most {max_bytes} are read")
    try:
        plain = decoder.decode(raw)
    except RecursionError:
        raise DocumentError("too_deep", f"nested more than {max_depth} levels") from None
    except msgspec.ValidationError as error:
        _refuse(error)
    except msgspec.DecodeError as error:
        _refuse_json(raw, error)
    _guard_depth(raw, max_depth)
    return plain


def read(kind: type[T], raw: bytes, *, max_bytes: int = MAX_DOCUMENT_BYTES, max_depth: int = MAX_DEPTH) -> T:
    """`raw` as a `kind`, strictly.

    What is wrong with the text itself is named before what is wrong with its members.

    Raises:
        DocumentError: see its reasons.
    """
    parse(raw, max_bytes=max_bytes, max_depth=max_depth)
    return read_part(kind, raw)


def read_part(kind: type[T], raw: bytes | msgspec.Raw) -> T:
    """`raw`, text that `parse` has passed or a part of such text, as a `kind`, strictly.

    Raises:
        DocumentError: `unknown_field`, `bad_number` or `invalid`.
    """
    try:
        value: T = _decoder(cast(Hashable, kind)).decode(raw)
    except msgspec.ValidationError as error:
        if "unknown field `x-" in str(error):
            return from_plain(kind, msgspec.json.decode(raw))
        _refuse(error)
    if b"null" in bytes(raw):
        _refuse_null(kind, msgspec.json.decode(raw))
    return value


def from_plain(kind: type[T], plain: Any) -> T:
    """Plain JSON values (already guarded by `parse`) as a `kind`, strictly; unknown `x-` members fall away.

    Raises:
        DocumentError: `unknown_field`, `bad_number` or `invalid`.
    """
    try:
        value = msgspec.convert(without_extensions(plain, kind), kind)
    except msgspec.ValidationError as error:
        _refuse(error)
    _refuse_null(kind, plain)
    return value


def write(document: msgspec.Struct) -> bytes:
    """`document` as JSON, members in the order of its definition."""
    return msgspec.json.encode(document)


_PLAIN: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STRING = re.compile(rb'"[^"]*"')
_BRACES = bytes.maketrans(b"[]", b"{}")
_NO_BRACKET = bytes(set(range(256)) - set(b'[]{}"'))
_ESCAPED_COLON = re.compile(rb"\\u003[aA]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def guard_names(raw: bytes, *written: bytes) -> None:
    """Refuse well-formed JSON in which an object names a member twice.

    `written` is all that was read from `raw`, written again: every member once, every string as it was.

    Raises:
        DocumentError: `duplicate_key`.
    """
    # A repeated name loses a member, and with it a colon, on the way through a decode and an encode; a colon
    # inside a string comes out as it went in. Only an escaped one would be gained, so it takes the exact way.
    if not (b"\\" in raw and _ESCAPED_COLON.search(raw)):
        colons = sum(text.count(b":") for text in written)
        if colons == raw.count(b":"):
            return
    json.loads(raw.decode(), object_pairs_hook=_unique, parse_int=str, parse_float=str)


def _guard_depth(raw: bytes, max_depth: int) -> None:
    """Refuse well-formed JSON that is nested too deep; it is looked at closely only if need be."""
    # (a long text has more brackets than that: counting them would only take time)
    if len(raw) < 4096 and raw.count(b"{") + raw.count(b"[") <= max_depth:
        return
    # Whatever stands in a container at a level is indented by as many spaces, and no string holds a newline;
    # only an empty container does not show its own level.
    if b"\n" + b" " * max_depth not in msgspec.json.format(raw, indent=1):
        return
    unescaped = _ESCAPE.sub(b"", raw) if b"\\" in raw else raw
    braces = _STRING.sub(b"", unescaped.translate(_BRACES, delete=_NO_BRACKET))
    # Every round takes the innermost objects and lists away, and with them one level off the deepest place.
    for _ in range(max_depth):
        braces = braces.replace(b"{}", b"")
    if braces:
        raise DocumentError("too_deep", f"nested more than {max_depth} levels")


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


def _refuse_null(kind: Any, plain: Any) -> None:
    path = forbidden_null(plain, kind)
    if path is not None:
        raise DocumentError("invalid", "null, where a member without a value is left out", path)


_BEYOND_ALL_NUMBERS: Final = ("Number out of range", "Integer value out of range")
"""What msgspec says of a number that it has no type for; a type's own rules may use such words, too."""
_AT = re.compile(r" - at (?:`key` in )?`(?P<path>[^`]+)`$")


def _refuse(error: msgspec.ValidationError) -> NoReturn:
    text = str(error)
    match = _AT.search(text)
    path = match["path"] if match else "$"
    detail = text[: match.start()] if match else text
    if detail in _BEYOND_ALL_NUMBERS:
        raise DocumentError("bad_number", detail, path) from None
    reason = "unknown_field" if "contains unknown field" in detail else "invalid"
    raise DocumentError(reason, detail, path) from None


@functools.cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(cast(type[Any], kind))
