"""`disclosure`: whether a salt and a value are what a digest was made of (Core §5)."""

from collections.abc import Mapping
from typing import Any

from events.documents import DocumentError
from mandates.disclosure import verify_disclosure


def answer(given: Any) -> Mapping[str, Any]:
    """`{ok, reason}` of `{digest, salt, value}`.

    Raises:
        DocumentError: the input lacks one of them.
    """
    if not isinstance(given, dict) or not {"digest", "salt", "value"} <= given.keys():
        raise DocumentError("invalid", "the input holds digest, salt and value")
    reason = verify_disclosure(given["digest"], given["salt"], given["value"])
    return {"ok": reason == "ok", "reason": reason}
