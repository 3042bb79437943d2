"""Canonical JSON (RFC 8785) and the document hash (Core §5; ruling D5).

msgspec's sorted encoder writes RFC 8785 but for three things: doubles that are whole or need an exponent, the
order of names with characters beyond the basic plane, and integers that no double carries. Its text is looked
through for the three. Such doubles are written by `rfc8785` one by one and put into the text; a document with
one of the other two is written by `rfc8785` as a whole. `rfc8785` is the oracle of the tests, too.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import rfc8785

from events.documents import DocumentError, decode, guard_names, parse

LARGEST_INTEGER: Final = 2**53 - 1
"""The largest integer up to which every integer is a double."""


def canonical(value: Any) -> bytes:
    """`value` (plain JSON values) as RFC 8785 bytes.

    An integer beyond 2^53-1 passes where its digits are exactly those that ECMAScript prints for a double.

    Raises:
        DocumentError: `bad_number` (not finite, or an integer that no double is printed as), `bad_unicode`
            (half a surrogate pair), `too_deep`, or `invalid` for what is not JSON.
    """
    try:
        text = msgspec.json.encode(value, order="sorted")
        # The encoder also writes what is not JSON (sets, bytes, dates, NaN): that does not come back equal.
        if msgspec.json.decode(text) == value:
            return _exact(text)
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # what is wrong is named by the one that decides
    return _decided(value)


def canonical_text(raw: bytes) -> bytes:
    """The RFC 8785 bytes of the document in `raw`, as it came over the wire: `canonical(parse(raw))`, faster.

    Raises:
        DocumentError: `raw` is not a readable document, or as `canonical`.
    """
    return _written(raw)


def document_hash(document: Mapping[str, Any]) -> str:
    """`sha256:<hex>` over the canonical bytes of `document` without its `hash` and `signature` members.

    Raises:
        DocumentError: as `canonical`.
    """
    return digest(canonical({name: value for name, value in document.items() if name not in _UNHASHED}))


def read_document_hash(raw: bytes) -> str:
    """`document_hash(parse(raw))` of a document as it came over the wire, faster.

    Raises:
        DocumentError: `raw` is not a readable document, no JSON object, or as `canonical`.
    """
    return digest(_written(raw, _UNHASHED))


def digest(raw: bytes) -> str:
    """`sha256:<hex>` of `raw`."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def content_hash(raw: bytes) -> str:
    """`sha256:<hex>` of what `raw` says, however it is written: the hash of its canonical bytes.

    Text that has no canonical bytes (an integer beyond 2^53-1) is hashed as it stands.

    Raises:
        DocumentError: `raw` is not a readable document.
    """
    try:
        return digest(_written(raw))
    except DocumentError:
        parse(raw)
        return digest(raw)


def same_content(raw_a: bytes, raw_b: bytes) -> bool:
    """Whether two readable documents say the same; two events of one id that do not are a conflict.

    Raises:
        DocumentError: one of them is not a readable document.
    """
    return raw_a == raw_b or content_hash(raw_a) == content_hash(raw_b)


_UNHASHED: Final = ("hash", "signature")


def _double(text: str) -> float | int | msgspec.Raw:
    """A number with a fraction or an exponent, as something the encoder writes the way ECMAScript does."""
    value = float(text)
    if value.is_integer():
        if -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
            return int(value)
    elif 1e-5 <= value < 1e16 or -1e16 < value <= -1e-5:
        return value
    return msgspec.Raw(_ecmascript(value))


_NUMBERS_AS_WRITTEN: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(float_hook=_double)


def _ecmascript(value: float) -> bytes:
    try:
        return rfc8785.dumps(value)
    except rfc8785.FloatDomainError as error:
        raise DocumentError("bad_number", str(error)) from None


def _written(raw: bytes, without: tuple[str, ...] = ()) -> bytes:
    """Canonical bytes of the document in `raw`; with `without` it is an object and lacks those members."""
    try:
        plain = decode(_NUMBERS_AS_WRITTEN, raw)
    except DocumentError:
        parse(raw)  # what a hook raises loses its name on the way through the decoder
        raise
    if without and not isinstance(plain, dict):
        raise DocumentError("invalid", "a document is a JSON object")
    left_out = {name: plain.pop(name) for name in without if name in plain}
    text = msgspec.json.encode(plain, order="sorted")
    guard_names(raw, text, msgspec.json.encode(left_out))
    if _has_long_integer(text) or _has_rare_name(text):
        again = parse(raw)
        return _decided({k: v for k, v in again.items() if k not in without} if without else again)
    return text


def _exact(text: bytes) -> bytes:
    """Canonical bytes from what the sorted encoder wrote of plain JSON values."""
    if _has_other_double(text):
        plain = _NUMBERS_AS_WRITTEN.decode(text)
        rewritten = msgspec.json.encode(plain, order="sorted")
    else:
        rewritten = text
    if _has_long_integer(rewritten) or _has_rare_name(text):
        return _decided(msgspec.json.decode(text))
    return rewritten


# --- looking through what the encoder wrote: cheap byte searches first, exact ones where they found something

_DIGITS_TO_ZERO: Final = bytes.maketrans(b"123456789", b"0" * 9)
_LONG: Final = b"0" * 16
# In the encoder's text a number stands at the start or behind one of `[ , :`. A string may look the same:
# then the slow way is taken for nothing, which costs time and never changes the result.
_LONG_INTEGER: Final = re.compile(rb"(?:^|[\[,:])-?[0-9]{16,}(?![0-9.eE])")
_EXPONENTS: Final = (b"0e0", b"0e-")
_WHOLE: Final = (b".0,", b".0}", b".0]")
_RARE_LEADS: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
# One whole string, and the colon if it is a name. Possessive: no string is ever looked at twice.
_STRING: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)"(:?)')


def _has_long_integer(text: bytes) -> bool:
    """Whether an integer may lie beyond 2^53-1, which has 16 digits."""
    return _LONG in text.translate(_DIGITS_TO_ZERO) and _LONG_INTEGER.search(text) is not None


def _has_other_double(text: bytes) -> bool:
    """Whether a double may be written in another form than ECMAScript's."""
    if any(end in text for end in _WHOLE) or text.endswith(b".0"):
        return True
    digits = text.translate(_DIGITS_TO_ZERO)
    return any(exponent in digits for exponent in _EXPONENTS)


def _has_rare_name(text: bytes) -> bool:
    """Whether a name holds a character beyond the basic plane, where UTF-8 and UTF-16 sort differently."""
    if text.isascii() or not any(lead in text for lead in _RARE_LEADS):
        return False
    return any(colon and any(lead in name for lead in _RARE_LEADS) for name, colon in _STRING.findall(text))


# --- the one that decides ---------------------------------------------------------------------------------


def _decided(value: Any) -> bytes:
    try:
        return rfc8785.dumps(_with_doubles(value))
    except (rfc8785.IntegerDomainError, rfc8785.FloatDomainError) as error:
        raise DocumentError("bad_number", str(error)) from None
    except rfc8785.CanonicalizationError as error:
        reason = "bad_unicode" if "UTF-8" in str(error) else "invalid"
        raise DocumentError(reason, str(error)) from None
    except UnicodeEncodeError as error:
        raise DocumentError("bad_unicode", error.reason) from None
    except RecursionError:
        raise DocumentError("too_deep", "nested too deep to be written") from None


def _with_doubles(value: Any) -> Any:
    """`value` with each integer beyond 2^53-1 that is what ECMAScript prints for a double as that double."""
    if isinstance(value, dict):
        return {name: _with_doubles(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_with_doubles(child) for child in value]
    if isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        # the longest that ECMAScript prints without an exponent has 21 digits
        if abs(value) < 10**21 and rfc8785.dumps(float(value)) == str(value).encode():
            return float(value)
        raise DocumentError("bad_number", "an integer beyond 2^53-1 that is not how a double is printed")
    return value
