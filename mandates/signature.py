"""Signatures of documents, in both forms that travel (Core §5; rulings T3, T4).

*hash*: over the ASCII text of the document hash. It says nothing of kid, algorithm and time, so whoever holds
the document may write another `signedAt` beside it; the verdict says so.
*header*: over the canonical JSON of `{alg, hash, kid, signedAt}` and the document's `kind` where it has one
(or the kind its reader knows it by: entries of a log say `Event` there and have no such member).

Documents are plain JSON values as `events.documents.parse` gives them. Verifying answers every input with a
verdict: what cannot be read is not valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from events.canonical import canonical, document_hash
from events.documents import DocumentError
from events.times import format_date_time
from mandates import base64url
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, PrivateKey, Standing, read_time, revoked_by, standing, verifies

Form = Literal["hash", "header"]
SignatureReason = Literal[
    "ok",
    "unsigned",
    "unsigned_time",
    "unknown_key",
    "alg_mismatch",
    "invalid_timestamp",
    "key_not_valid_at_signing_time",
    "key_revoked",
    "bad_signature",
]
FirstSeen = Literal["seen_before_revocation", "seen_after_revocation"]
Caveat = Literal["signedAt_unprotected", "seen_after_revocation"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a document's signature is worth.

    Attributes:
        ok: whether it holds, judged by the time it says it was made.
        reason: `ok`, or the first thing found wrong, in the order of `SignatureReason`.
        form: the form it holds in; None when it does not hold.
        detail: for people: what was found.
        first_seen: the second result, of a signature that holds in the hash form and whose reader told when
            the document was first seen; None elsewhere. It takes from what the signature is good for and
            changes nothing about `ok`.
    """

    ok: bool
    reason: SignatureReason
    form: Form | None = None
    detail: str = ""
    first_seen: FirstSeen | None = None

    @property
    def signed_at_unprotected(self) -> bool:
        """Whether the signature leaves `signedAt` open to anyone's pen (the hash form)."""
        return self.form == "hash"

    @property
    def counts(self) -> bool:
        """Whether it is good for authority and evidence: it holds, and was not first seen too late."""
        return self.ok and self.first_seen != "seen_after_revocation"

    @property
    def caveats(self) -> tuple[Caveat, ...]:
        """What is to be said beside the reason, by name."""
        named: list[Caveat] = ["signedAt_unprotected"] if self.signed_at_unprotected else []
        if self.first_seen == "seen_after_revocation":
            named.append("seen_after_revocation")
        return tuple(named)


def sign_document(
    document: Mapping[str, Any],
    key: PrivateKey,
    *,
    signed_at: datetime,
    form: Form = "header",
    kind: str | None = None,
) -> dict[str, Any]:
    """`document` with a new `signature` member by `key`; one it had before is replaced.

    Args:
        document: plain JSON values.
        key: who signs.
        signed_at: aware.
        form: the seed's (`hash`) or the later one.
        kind: what the header names as the kind; None: the document's own `kind` member.

    Raises:
        DocumentError: no canonical JSON, or its `hash` member is not its hash.
    """
    hash_text = document_hash(document)
    if document.get("hash", hash_text) != hash_text:
        raise DocumentError(
            "invalid", f"the document's hash is {hash_text}, the member says otherwise", "$.hash"
        )
    at = format_date_time(signed_at)
    header = _header(document, kind, hash_text, alg=key.alg, kid=key.kid, signed_at=at)
    message = _message(form, hash_text, header)
    signature = {
        "alg": key.alg,
        "kid": key.kid,
        "signedAt": at,
        "sig": base64url.encode(key.sign(message)),
    }
    return {**document, "signature": signature}


def verify_document(
    document: object, keys: KeyRing, *, kind: str | None = None, first_seen: datetime | None = None
) -> Verdict:
    """Whether `document` carries a signature of a key in `keys` that was good when it says it was signed.

    The key is judged before the signature, so a signature of a revoked key is called that whatever it holds.

    Args:
        document: plain JSON values, or anything at all.
        keys: the records known here.
        kind: what the header must name as the kind; None: the document's own `kind` member.
        first_seen: when the reader first saw the document (aware), where that is known. A key's thief can
            write any `signedAt` into the hash form; he cannot have shown it before he had the key.
    """
    signature = document.get("signature") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(signature, Mapping):
        return _no("unsigned", "the document bears no signature")
    signed_at = signature.get("signedAt")
    if signed_at is None or signed_at == "":
        return _no("unsigned_time", "the signature does not say when it was made")
    kid = signature.get("kid")
    record = keys.get(kid) if isinstance(kid, str) else None
    if record is None:
        return _no("unknown_key", f"no key {_shown(kid)} is known here")
    if signature.get("alg") != record.alg:
        return _no(
            "alg_mismatch", f"{record.kid} is an {record.alg} key, found {_shown(signature.get('alg'))}"
        )
    at = read_time(signed_at) if isinstance(signed_at, str) else None
    if not isinstance(signed_at, str) or at is None:
        return _no("invalid_timestamp", f"signedAt is no RFC 3339 time with offset: {_shown(signed_at)}")
    worth = standing(record, at)
    if worth != "valid":
        return _no(_OF_STANDING[worth], f"{record.kid}, signed at {signed_at}")
    verdict = _compare(document, signature.get("sig"), record, signed_at, kind)
    if not verdict.signed_at_unprotected or first_seen is None:
        return verdict
    late = revoked_by(record, first_seen)
    return replace(verdict, first_seen="seen_after_revocation" if late else "seen_before_revocation")


_OF_STANDING: Final[Mapping[Standing, SignatureReason]] = {
    "outside_window": "key_not_valid_at_signing_time",
    "revoked": "key_revoked",
    "unreadable": "invalid_timestamp",
}


def _compare(
    document: Mapping[Any, Any], sig: object, record: KeyRecord, signed_at: str, kind: str | None
) -> Verdict:
    if not isinstance(sig, str):
        return _no("bad_signature", "sig is not a text")
    try:
        raw = base64url.decode(sig)
    except ValueError as error:
        return _no("bad_signature", f"sig: {error}")
    try:
        hash_text = document_hash(document)
        header = _header(document, kind, hash_text, alg=record.alg, kid=record.kid, signed_at=signed_at)
        forms: tuple[Form, ...] = ("header", "hash")
        messages = {form: _message(form, hash_text, header) for form in forms}
    except DocumentError as error:
        return _no("bad_signature", f"the document has no canonical JSON: {error}")
    except (RecursionError, TypeError, ValueError, AttributeError) as error:
        # Values that no JSON text could have given: foreign types, cycles, halves of surrogate pairs.
        return _no("bad_signature", f"the document is not JSON: {type(error).__name__}")
    # The member is outside the hash, so only this comparison guards it.
    if "hash" in document and document["hash"] != hash_text:
        return _no("bad_signature", f"the document's hash is {hash_text}, found {_shown(document['hash'])}")
    for form, message in messages.items():
        if verifies(record, message, raw):
            return Verdict(True, "ok", form)
    return _no("bad_signature", f"{record.kid} did not sign {hash_text}")


def _message(form: Form, hash_text: str, header: Mapping[str, str]) -> bytes:
    return hash_text.encode("ascii") if form == "hash" else canonical(header)


def _header(
    document: Mapping[str, Any], kind: str | None, hash_text: str, *, alg: str, kid: str, signed_at: str
) -> dict[str, str]:
    header = {"alg": alg, "hash": hash_text, "kid": kid, "signedAt": signed_at}
    named = document.get("kind") if kind is None else kind
    if isinstance(named, str) and named:
        header["kind"] = named
    return header


def _no(reason: SignatureReason, detail: str) -> Verdict:
    return Verdict(False, reason, None, detail)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return ascii(value[:120])
    return f"a {type(value).__name__}" if value is not None else "nothing"
