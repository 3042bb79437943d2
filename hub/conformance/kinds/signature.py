"""`signature`: whether a document's signature holds; or the signature of a key over bytes (Core §5)."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from events.documents import Document, DocumentError, from_plain
from events.times import parse_date_time
from mandates.documents import Alg, DateTime, KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import verify_document


class Signed(Document, frozen=True):
    """A document, the keys known, and when it was first seen where that matters."""

    document: Any
    keys: list[KeyRecord]
    kind: str | None = None
    first_seen: DateTime | None = None


class Signing(Document, frozen=True):
    """A private key as its seed (hex), and the bytes it signs (hex)."""

    seed: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
    message_hex: Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$(?!\n)")]
    alg: Alg = "EdDSA"


def answer(given: Any) -> Mapping[str, Any]:
    """`{ok, reason, form, caveats}` for a document, `{publicKey, signatureHex}` for a seed.

    Raises:
        DocumentError: neither.
        ValueError: no key, or two records of one kid.
    """
    if isinstance(given, dict) and "seed" in given:
        signing = from_plain(Signing, given)
        key = PrivateKey.from_seed(bytes.fromhex(signing.seed), kid="vector", alg=signing.alg)
        signature = key.sign(bytes.fromhex(signing.message_hex))
        return {"publicKey": key.public_key(), "signatureHex": signature.hex()}
    if not isinstance(given, dict):
        raise DocumentError("invalid", "the input is no object")
    # The document itself is judged as it is: what is wrong with it is the verdict, not an unreadable vector.
    signed = from_plain(Signed, {**given, "document": None})
    verdict = verify_document(
        given.get("document"),
        KeyRing(signed.keys),
        kind=signed.kind,
        first_seen=None if signed.first_seen is None else parse_date_time(signed.first_seen),
    )
    return {
        "ok": verdict.ok,
        "reason": verdict.reason,
        "form": verdict.form,
        "caveats": list(verdict.caveats),
    }
