"""Who may ask for what: an agent under a mandate of a person enrolled here (Core §6.5; rulings T1, T5).

A signature shows who wrote a mandate. Authority needs more: that the signer is the mandate's principal, that
this household knows the principal in a role that may grant, by that very key, and that the key is good now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from events.canonical import canonical, document_hash
from events.documents import DocumentError, from_plain, parse
from mandates.documents import AgentMandate, KeyRecord, Scope
from mandates.keys import KeyRing, read_time, standing
from mandates.signature import Form, SignatureReason, verify_document

Role = Literal["owner", "person", "agent", "device"]
MAY_GRANT: Final[frozenset[Role]] = frozenset({"owner", "person"})

MAX_DETAIL: Final = 500
"""Characters; the bound of a refusal's `detail` in Core's status."""

MandateRefusal = Literal["not_authorized", "mandate_scope"]
"""Core's refusal reasons that a mandate can give."""
MandateReason = (
    SignatureReason
    | Literal[
        "agent_mismatch",
        "mandate_missing",
        "mandate_unreadable",
        "device_key",
        "wrong_owner",
        "principal_not_enrolled",
        "role_may_not_grant",
        "key_not_enrolled",
        "key_not_valid_now",
        "seen_after_revocation",
        "other_mandate",
        "mandate_expired",
        "outside_scope",
    ]
)


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What this household knows of one actor: the role, and the keys that were enrolled for it by kid.

    A ring also holds keys that others published (a device's capabilities, say), and a record's `actor` is
    only its publisher's word; the kids here are the household's own.
    """

    role: Role
    kids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MandateVerdict:
    """Whether a request may be made on a mandate.

    Attributes:
        ok: whether it may.
        reason: `ok`, or the first thing found wrong, by name.
        refusal: Core's reason for a refused execution. None when `ok`, and for `agent_mismatch`, which is no
            refused execution but a caller who is not who the request says (403 at the API).
        detail: for people: what was found; short enough for a status' refusal.
        mandate_hash: the hash of the mandate's content, once it could be read.
        form: the form of signature it holds in, once it holds.
    """

    ok: bool
    reason: MandateReason
    refusal: MandateRefusal | None
    detail: str = ""
    mandate_hash: str | None = None
    form: Form | None = None


def check_mandate(
    mandate_raw: bytes | Mapping[str, Any] | None,
    *,
    requested_by: str,
    token_actor: str,
    scope: Scope = "start_cooking",
    now: datetime,
    keys: KeyRing,
    enrolled: Mapping[str, Enrolment],
    token_mandate: str | None = None,
    first_seen: datetime | None = None,
) -> MandateVerdict:
    """Whether the agent `token_actor` may ask for something of `scope` at the moment `now` (aware).

    Args:
        mandate_raw: the request's mandate as it travelled, or as `events.documents.parse` gave it; None where
            the request has none.
        requested_by: whom the request names.
        token_actor: whom the caller's token belongs to.
        scope: what the request needs.
        now: wall time.
        keys: the public keys known here.
        enrolled: the actors of this household by id.
        token_mandate: the hash of the mandate that the caller's token was given for, if it was for one.
        first_seen: when the household first saw this mandate (aware), where that is known. Only ever denies.
    """
    if requested_by != token_actor:
        return _mismatch(f"the token is {token_actor!a}'s, the request {requested_by!a}'s")
    if mandate_raw is None:
        return _refused("mandate_missing", "an agent asks only under a mandate")
    try:
        plain = _plain(mandate_raw)
        content_hash = document_hash(plain)
        mandate = from_plain(
            AgentMandate, {name: value for name, value in plain.items() if name != "signature"}
        )
    except DocumentError as error:
        return _refused("mandate_unreadable", str(error))
    if mandate.agent != token_actor:
        return _mismatch(f"the mandate is {mandate.agent!a}'s, the token {token_actor!a}'s")
    verdict = verify_document(plain, keys, first_seen=first_seen)
    if not verdict.ok:
        return _refused(verdict.reason, verdict.detail, content_hash)
    if not verdict.counts:
        return _refused(
            "seen_after_revocation",
            f"it first came here at {first_seen}, when the key that signed it was revoked",
            content_hash,
            verdict.form,
        )
    try:
        signature = from_plain(AgentMandate, plain).signature
    except DocumentError as error:
        return _refused("mandate_unreadable", str(error), content_hash)
    record = None if signature is None else keys.get(signature.kid)
    if record is None:
        return _refused("unsigned", "the mandate bears no signature", content_hash)
    fault = _authority(mandate, record, now, enrolled)
    if fault is not None:
        return _refused(*fault, content_hash, verdict.form)
    if token_mandate is not None and token_mandate != content_hash:
        return _refused(
            "other_mandate", f"the token was given for {token_mandate}", content_hash, verdict.form
        )
    fault = _reach(mandate, scope, now)
    if fault is not None:
        return _refused(*fault, content_hash, verdict.form)
    return MandateVerdict(True, "ok", None, mandate_hash=content_hash, form=verdict.form)


_Fault = tuple[MandateReason, str]


def _authority(
    mandate: AgentMandate, record: KeyRecord, now: datetime, enrolled: Mapping[str, Enrolment]
) -> _Fault | None:
    """What is wrong with the signer, given that the signature holds."""
    actor = record.actor
    signer = None if actor is None else enrolled.get(actor)
    if signer is not None and signer.role == "device":
        return "device_key", f"{record.kid} is the key of the device {actor}; devices grant nothing"
    if actor != mandate.principal:
        return "wrong_owner", f"{record.kid} is the key of {actor}, the mandate {mandate.principal!a}'s"
    if signer is None:
        return "principal_not_enrolled", f"{actor} is not enrolled here"
    if signer.role not in MAY_GRANT:
        return "role_may_not_grant", f"{actor} is enrolled as {signer.role}; only people grant mandates"
    if record.kid not in signer.kids:
        return "key_not_enrolled", f"{record.kid} was never enrolled here as a key of {actor}"
    worth = standing(record, now)
    if worth != "valid":
        return "key_not_valid_now", f"{record.kid} was good when it signed and is {worth} now"
    return None


def _reach(mandate: AgentMandate, scope: Scope, now: datetime) -> _Fault | None:
    """What is wrong with how far a genuine mandate goes."""
    expires = read_time(mandate.expires)
    if expires is None:
        return "mandate_unreadable", f"expires is no time that can be reckoned with: {mandate.expires}"
    if now >= expires:
        return "mandate_expired", f"it expired at {mandate.expires}"
    if scope not in mandate.scopes:
        return "outside_scope", f"it lacks {scope}; it has {', '.join(mandate.scopes)}"
    return None


def _plain(mandate_raw: bytes | Mapping[str, Any]) -> dict[str, Any]:
    """The mandate as plain values, past every guard on size, depth and repeated names."""
    if isinstance(mandate_raw, Mapping):
        try:
            mandate_raw = canonical(mandate_raw)
        except RecursionError:
            raise DocumentError("too_deep", "nested beyond what can be written") from None
    value = parse(mandate_raw)
    if not isinstance(value, dict):
        raise DocumentError("invalid", "a mandate is an object")
    return value


def _mismatch(detail: str) -> MandateVerdict:
    return MandateVerdict(False, "agent_mismatch", None, detail[:MAX_DETAIL])


def _refused(
    reason: MandateReason, detail: str, mandate_hash: str | None = None, form: Form | None = None
) -> MandateVerdict:
    refusal: MandateRefusal = (
        "mandate_scope" if reason in ("mandate_expired", "outside_scope") else "not_authorized"
    )
    return MandateVerdict(False, reason, refusal, detail[:MAX_DETAIL], mandate_hash, form)
