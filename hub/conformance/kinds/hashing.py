"""`hash`: the canonical text of a document and its hash (Core §5)."""

from collections.abc import Mapping
from typing import Any

from events.canonical import canonical, document_hash
from events.documents import DocumentError


def answer(given: Any) -> Mapping[str, Any]:
    """`{canonical, hash}` of the document `given`, both without its `hash` and `signature`.

    Raises:
        DocumentError: no document.
    """
    if not isinstance(given, dict):
        raise DocumentError("invalid", "a document is an object")
    body = {name: value for name, value in given.items() if name not in ("hash", "signature")}
    return {"canonical": canonical(body).decode(), "hash": document_hash(given)}
