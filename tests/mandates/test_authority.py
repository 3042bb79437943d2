"""On what authority an agent may ask: rulings T1 and T5 (their pure part) as tables of cases."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.canonical import canonical, document_hash
from events.documents import DocumentError, parse
from mandates.authority import (
    MAX_DETAIL,
    Enrolment,
    MandateReason,
    MandateRefusal,
    MandateVerdict,
    check_mandate,
)
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import Form, sign_document

SIGNED = datetime(2026, 7, 1, 12, tzinfo=UTC)
NOW = datetime(2026, 7, 2, 12, tzinfo=UTC)
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


def key(kid: str, number: int) -> PrivateKey:
    return PrivateKey.from_seed(bytes([number]) * 32, kid=kid)


ANNA = key("person:anna#1", 1)
ANNA_OLD = key("person:anna#old", 2)
BEN = key("person:ben#1", 3)
STRANGER = key("did:web:stranger.example#k1", 4)
HOB = key("demo-hob-robot#1", 5)
PLANNER = key("agent:planner#1", 6)
CLAIMED = key("demo-hob-robot#claims-anna", 7)
NOBODYS = key("nobody#1", 8)
EVE = key("person:anna#1", 9)
ANNA_SHORT = key("person:anna#short", 10)


def record(signer: PrivateKey, actor: str | None, **times: str) -> KeyRecord:
    return KeyRecord(
        kid=signer.kid,
        alg=signer.alg,
        public_key=signer.public_key(),
        actor=actor,
        **{"valid_from": "2026-01-01T00:00:00Z", **times},
    )


KEYS = KeyRing(
    [
        record(ANNA, "person:anna"),
        record(ANNA_OLD, "person:anna", revoked_at="2026-07-02T00:00:00Z"),
        record(ANNA_SHORT, "person:anna", valid_to="2026-07-02T11:59:59Z"),
        record(BEN, "person:ben"),
        record(STRANGER, "did:web:stranger.example"),
        record(HOB, "demo-hob-robot"),
        record(PLANNER, "agent:planner"),
        record(CLAIMED, "person:anna"),
        record(NOBODYS, None),
    ]
)
ENROLLED = {
    "person:anna": Enrolment("owner", frozenset({ANNA.kid, ANNA_OLD.kid, ANNA_SHORT.kid})),
    "person:ben": Enrolment("person", frozenset({BEN.kid})),
    "demo-hob-robot": Enrolment("device", frozenset({HOB.kid})),
    "agent:planner": Enrolment("agent", frozenset({PLANNER.kid})),
}
MANDATE: dict[str, Any] = {
    "principal": "person:anna",
    "agent": "agent:planner",
    "scopes": ["search_recipes", "start_cooking"],
    "expires": "2026-08-01T00:00:00Z",
}


def signed(
    by: PrivateKey = ANNA, *, at: datetime = SIGNED, form: Form = "header", **members: Any
) -> dict[str, Any]:
    return sign_document({**MANDATE, **members}, by, signed_at=at, form=form)


def edited(document: dict[str, Any], **members: Any) -> dict[str, Any]:
    """`document` with members of its signature set, or dropped where None."""
    signature = {**document["signature"], **members}
    return {
        **document,
        "signature": {name: value for name, value in signature.items() if value is not None},
    }


def ask(mandate: Any, **differently: Any) -> MandateVerdict:
    question: dict[str, Any] = {
        "requested_by": "agent:planner",
        "token_actor": "agent:planner",
        "now": NOW,
        "keys": KEYS,
        "enrolled": ENROLLED,
    }
    return check_mandate(mandate, **{**question, **differently})


NOT = "not_authorized"
SCOPE = "mandate_scope"
CASES: list[tuple[str, Any, dict[str, Any], MandateReason, MandateRefusal | None]] = [
    ("as it should be", signed(), {}, "ok", None),
    ("in the old form", signed(form="hash"), {}, "ok", None),
    ("granted by a person who is no owner", signed(BEN, principal="person:ben"), {}, "ok", None),
    ("for its own token", signed(), {"token_mandate": document_hash(MANDATE)}, "ok", None),
    # 202 refused, not_authorized: missing, unreadable, forged
    ("missing", None, {}, "mandate_missing", NOT),
    ("not an object", b"[]", {}, "mandate_unreadable", NOT),
    ("not JSON", b"{", {}, "mandate_unreadable", NOT),
    ("empty", b"", {}, "mandate_unreadable", NOT),
    ("a member twice", b'{"agent":"a","agent":"b"}', {}, "mandate_unreadable", NOT),
    ("too deep", b'{"x-a":' + b"[" * 5000 + b"]" * 5000 + b"}", {}, "mandate_unreadable", NOT),
    ("without scopes", signed(scopes=[]), {}, "mandate_unreadable", NOT),
    ("with a scope nobody knows", signed(scopes=["start_cooking", "fly"]), {}, "mandate_unreadable", NOT),
    ("with a member nobody knows", signed(scope="*"), {}, "mandate_unreadable", NOT),
    (
        "until a day that does not exist",
        signed(expires="2026-02-30T00:00:00Z"),
        {},
        "mandate_unreadable",
        NOT,
    ),
    ("until a local time", signed(expires="2026-08-01T00:00:00"), {}, "mandate_unreadable", NOT),
    ("signature with more in it", edited(signed(), scopes=["*"]), {}, "mandate_unreadable", NOT),
    ("unsigned", MANDATE, {}, "unsigned", NOT),
    ("signature without a time", edited(signed(), signedAt=None), {}, "unsigned_time", NOT),
    ("signature with a wrong time", edited(signed(), signedAt="noon"), {}, "invalid_timestamp", NOT),
    ("signed by a key nobody knows", edited(signed(), kid="person:eve#1"), {}, "unknown_key", NOT),
    ("signature of another algorithm", edited(signed(), alg="ES256"), {}, "alg_mismatch", NOT),
    ("forged: signed by Eve as Anna", signed(EVE), {}, "bad_signature", NOT),
    (
        "forged: another scope",
        {**signed(), "scopes": ["share_data"]},
        {},
        "bad_signature",
        NOT,
    ),
    ("forged: prolonged", {**signed(), "expires": "2027-08-01T00:00:00Z"}, {}, "bad_signature", NOT),
    (
        "signed before its key's time",
        signed(at=SINCE - timedelta(days=1)),
        {},
        "key_not_valid_at_signing_time",
        NOT,
    ),
    ("signed after its key was revoked", signed(ANNA_OLD, at=NOW), {}, "key_revoked", NOT),
    # 202 refused, not_authorized: genuine, but of someone who cannot grant it
    ("by the wrong owner", signed(BEN), {}, "wrong_owner", NOT),
    ("by a key that is nobody's", signed(NOBODYS), {}, "wrong_owner", NOT),
    ("by the agent itself for Anna", signed(PLANNER), {}, "wrong_owner", NOT),
    ("by a stranger's did:web key for Anna", signed(STRANGER), {}, "wrong_owner", NOT),
    (
        "by a did:web principal not enrolled",
        signed(STRANGER, principal="did:web:stranger.example"),
        {},
        "principal_not_enrolled",
        NOT,
    ),
    ("by a person whom the household removed", signed(), {"enrolled": {}}, "principal_not_enrolled", NOT),
    ("by a device's key for Anna", signed(HOB), {}, "device_key", NOT),
    ("by a device for itself", signed(HOB, principal="demo-hob-robot"), {}, "device_key", NOT),
    ("by an agent for itself", signed(PLANNER, principal="agent:planner"), {}, "role_may_not_grant", NOT),
    ("by a key that only a device says is Anna's", signed(CLAIMED), {}, "key_not_enrolled", NOT),
    ("by a key revoked since", signed(ANNA_OLD), {}, "key_not_valid_now", NOT),
    ("seen too late", signed(ANNA_OLD, form="hash"), {"first_seen": NOW}, "seen_after_revocation", NOT),
    ("seen in time", signed(ANNA_OLD, form="hash"), {"first_seen": SIGNED}, "key_not_valid_now", NOT),
    ("by a key whose time is over", signed(ANNA_SHORT), {}, "key_not_valid_now", NOT),
    ("another than the token's", signed(), {"token_mandate": "sha256:" + "0" * 64}, "other_mandate", NOT),
    # 202 refused, mandate_scope
    ("expired", signed(expires="2026-07-02T11:59:59Z"), {}, "mandate_expired", SCOPE),
    ("expiring this instant", signed(expires="2026-07-02T14:00:00+02:00"), {}, "mandate_expired", SCOPE),
    ("without start_cooking", signed(scopes=["plan_meals"]), {}, "outside_scope", SCOPE),
    ("for a scope it lacks", signed(), {"scope": "change_settings"}, "outside_scope", SCOPE),
    # 403
    ("another agent's mandate", signed(agent="agent:other"), {}, "agent_mismatch", None),
    ("another agent's token", signed(), {"token_actor": "agent:other"}, "agent_mismatch", None),
    ("another agent's request", signed(), {"requested_by": "agent:other"}, "agent_mismatch", None),
    (
        "another agent's request and token",
        signed(),
        {"requested_by": "agent:other", "token_actor": "agent:other"},
        "agent_mismatch",
        None,
    ),
    ("another agent's token and no mandate", None, {"token_actor": "agent:other"}, "agent_mismatch", None),
]


@pytest.mark.parametrize(
    ("name", "mandate", "differently", "reason", "refusal"), CASES, ids=[c[0] for c in CASES]
)
def test_a_mandate_gets_its_named_verdict(
    name: str, mandate: Any, differently: dict[str, Any], reason: str, refusal: str | None
) -> None:
    forms = [mandate] if not isinstance(mandate, dict) else [mandate, json.dumps(mandate, indent=2).encode()]
    for travelled in forms:
        verdict = ask(travelled, **differently)
        assert (verdict.reason, verdict.refusal) == (reason, refusal), verdict.detail
        assert verdict.ok == (reason == "ok")
        assert verdict.ok or verdict.detail


def reasons() -> Iterator[str]:
    for part in get_args(MandateReason):
        yield from get_args(part) or [part]


def test_the_table_shows_every_reason() -> None:
    assert {case[3] for case in CASES} == set(reasons())


def test_the_verdict_names_the_mandate_and_the_form_it_was_signed_in() -> None:
    verdict = ask(signed(form="hash"))
    assert (verdict.mandate_hash, verdict.form) == (document_hash(MANDATE), "hash")
    assert ask(signed()).form == "header"


def test_one_mandate_serves_many_requests_until_it_expires() -> None:
    mandate = signed()
    for hours in range(0, 24 * 29, 24):
        assert ask(mandate, now=NOW + timedelta(hours=hours)).ok
    assert ask(mandate, now=datetime(2026, 8, 1, tzinfo=UTC)).reason == "mandate_expired"


def test_a_detail_fits_into_a_refusal_whatever_was_sent() -> None:
    monster = "\N{FACE SCREAMING IN FEAR}" * 200
    verdicts = [
        ask(signed(agent=monster)),
        ask(signed(BEN, principal=monster)),
        ask(json.dumps({"z" * 100_000: 1}).encode()),
        ask(edited(signed(), kid="k" * 100_000)),
    ]
    assert [verdict.reason for verdict in verdicts] == [
        "agent_mismatch",
        "wrong_owner",
        "mandate_unreadable",
        "unknown_key",
    ]
    assert all(0 < len(verdict.detail) <= MAX_DETAIL for verdict in verdicts)


@settings(max_examples=300)
@given(
    member=st.sampled_from([*MANDATE, "signature", "spendCap", "confirmBefore", "x-a", "hash", "kind"]),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.binary(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
)
def test_no_hostile_member_raises_or_passes(member: str, value: Any) -> None:
    mandate = signed()
    verdict = ask({**mandate, member: value})
    assert verdict.reason in set(reasons())
    assert verdict.ok is (mandate.get(member, ...) == value)


@given(st.binary(max_size=60))
def test_bytes_at_random_are_refused(raw: bytes) -> None:
    assert ask(raw).refusal == "not_authorized"


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """A neighbour of a valid mandate: another layout, signing time, value or byte, or a part of it gone."""
    document = json.loads(raw)
    kind = chance.randrange(6)
    if kind == 0:
        members = list(document.items())
        chance.shuffle(members)
        return json.dumps(dict(members), indent=chance.choice([None, 1, 7])).encode()
    if kind == 1:
        at = f"2026-07-01T{chance.randrange(24):02}:00:00Z"
        return json.dumps(edited(document, signedAt=at)).encode()
    if kind == 2:
        name = chance.choice([*document, "x-note", "note"])
        document[name] = chance.choice(["person:ben", [], {}, 7, None, True, "2030-01-01T00:00:00Z"])
        return json.dumps(document).encode()
    if kind == 3:
        document.pop(chance.choice(list(document)))
        return json.dumps(document).encode()
    place = chance.randrange(len(raw))
    if kind == 4:
        return raw[:place] + bytes([chance.randrange(256)]) + raw[place + 1 :]
    return raw[:place] + raw[place + chance.randrange(1, 9) :]


def test_two_thousand_neighbours_of_a_mandate_pass_only_if_they_say_the_same() -> None:
    chance = random.Random(20260701)
    readable = accepted = 0
    seen: set[str] = set()
    for _ in range(2000):
        original = signed(form=chance.choice(["header", "hash"]))
        raw = mutated(json.dumps(original).encode(), chance)
        verdict = ask(raw)
        seen.add(verdict.reason)
        try:
            document = parse(raw)
        except DocumentError:
            assert verdict.reason == "mandate_unreadable"
            continue
        readable += 1
        if verdict.ok:
            accepted += 1
            content = {name: value for name, value in document.items() if name != "signature"}
            assert canonical(content) == canonical(MANDATE)
    assert readable >= 1000
    assert accepted >= 200
    assert seen >= {
        "ok",
        "mandate_unreadable",
        "agent_mismatch",
        "unsigned",
        "unsigned_time",
        "unknown_key",
        "alg_mismatch",
        "invalid_timestamp",
        "bad_signature",
    }
