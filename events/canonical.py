"""Canonical JSON (RFC 8785) and the document hash (Core §5)."""

import hashlib
from collections.abc import Mapping
from typing import Any

import rfc8785

from events.documents import DocumentError


def canonical(value: Any) -> bytes:
    """`value` (plain JSON values) as RFC 8785 bytes.

    Raises:
        DocumentError: `bad_number` or `invalid` for what RFC 8785 cannot write.
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.IntegerDomainError as error:
        raise DocumentError("bad_number", str(error)) from None
    except rfc8785.FloatDomainError as error:
        raise DocumentError("bad_number", str(error)) from None
    except rfc8785.CanonicalizationError as error:
        raise DocumentError("invalid", str(error)) from None


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
