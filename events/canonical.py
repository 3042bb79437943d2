"""Canonical JSON (RFC 8785) and the document hash (Core §5)."""

import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

from events.documents import DocumentError, parse


def canonical(value: Any) -> bytes:
    """`value` (plain JSON values) as RFC 8785 bytes.

    Raises:
        DocumentError: `bad_number` (not finite, or an integer that a double cannot carry), `bad_unicode`
            (half a surrogate pair), `too_deep`, or `invalid` for what is not JSON.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.IntegerDomainError, rfc8785.FloatDomainError) as error:
        raise DocumentError("bad_number", str(error)) from None
    except rfc8785.CanonicalizationError as error:
        reason = "bad_unicode" if "UTF-8" in str(error) else "invalid"
        raise DocumentError(reason, str(error)) from None
    except UnicodeEncodeError as error:
        raise DocumentError("bad_unicode", error.reason) from None
    except RecursionError:
        raise DocumentError("too_deep", "nested too deep to be written") from None


def document_hash(document: Mapping[str, Any]) -> str:
    """`sha256:<hex>` over the canonical bytes of `document` without its `hash` and `signature` members.

    Raises:
        DocumentError: as `canonical`.
    """
    body = {name: value for name, value in document.items() if name not in ("hash", "signature")}
    return digest(canonical(body))


def digest(raw: bytes) -> str:
    """`sha256:<hex>` of `raw`."""
    return f"sha256:{hashlib.sha256(raw).hexdigest()}"


def content_hash(raw: bytes) -> str:
    """`sha256:<hex>` of what `raw` says, however it is written: the hash of its canonical bytes.

    Text that has no canonical bytes (an integer beyond 2^53-1) is hashed as it stands.

    Raises:
        DocumentError: `raw` is not a readable document.
    """
    plain = parse(raw)
    try:
        return digest(canonical(plain))
    except DocumentError:
        return digest(raw)


def same_content(raw_a: bytes, raw_b: bytes) -> bool:
    """Whether two readable documents say the same; two events of one id that do not are a conflict.

    Raises:
        DocumentError: one of them is not a readable document.
    """
    return raw_a == raw_b or content_hash(raw_a) == content_hash(raw_b)
