"""Signatures of documents in both forms (rulings T3, T4)."""

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.canonical import canonical
from events.documents import DocumentError, from_plain, parse
from mandates import base64url
from mandates.documents import Alg, KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import Form, SignatureReason, Verdict, sign_document, verify_document

OWN = json.loads((Path(__file__).parent / "signature_vectors.json").read_text("utf-8"))
REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
FORMS: tuple[Form, Form] = ("header", "hash")
ALGS: tuple[Alg, Alg] = ("EdDSA", "ES256")
DOCUMENT = {
    "kind": "ExecutionLog",
    "id": "x-1",
    "name": "Käse-Spätzle",
    "steps": [{"node": "n1", "tempC": 92.5, "ok": True}, {"node": "n2", "tempC": 5, "note": None}],
}


def ring(records: list[dict[str, Any]]) -> KeyRing:
    return KeyRing(from_plain(KeyRecord, record) for record in records)


def signer(alg: Alg = "EdDSA") -> PrivateKey:
    return PrivateKey.from_seed(bytes(range(1, 33)), kid="person:anna#1", alg=alg)


def known(*keys: PrivateKey) -> KeyRing:
    return KeyRing(
        key.record(actor="person:anna", valid_from=datetime(2026, 1, 1, tzinfo=UTC)) for key in keys
    )


@pytest.mark.parametrize("vector", OWN["vectors"], ids=lambda vector: vector["id"])
def test_our_own_vectors_get_their_verdict(vector: dict[str, Any]) -> None:
    verdict = verify_document(vector["document"], ring(OWN["keys"]))
    assert {"ok": verdict.ok, "reason": verdict.reason, "form": verdict.form} == vector["expected"]


def test_our_own_vectors_show_every_reason() -> None:
    shown = {vector["expected"]["reason"] for vector in OWN["vectors"]}
    assert shown == set(get_args(SignatureReason))


@pytest.mark.reference
@pytest.mark.parametrize(("folder", "form"), [("cookwala", "header"), ("cookwala-0.2.0", "hash")])
def test_the_public_vectors_get_their_verdict(folder: str, form: Form) -> None:
    suite = REFERENCE / folder / "conformance" / "signature.json"
    if not suite.is_file():
        pytest.skip(f"the public vectors are not there: {suite}")
    checked = 0
    for vector in json.loads(suite.read_text("utf-8")):
        given_, expected = vector["input"], vector["expected"]
        if "seed" in given_:
            key = PrivateKey.from_seed(bytes.fromhex(given_["seed"]), kid="k")
            assert key.public_key() == expected["publicKey"]
            assert key.sign(bytes.fromhex(given_["messageHex"])).hex() == expected["signatureHex"]
        else:
            verdict = verify_document(given_["document"], ring(given_["keys"]))
            assert (verdict.ok, verdict.reason) == (expected["ok"], expected["reason"]), vector["id"]
            assert verdict.form == (form if expected["ok"] else None)
        checked += 1
    assert checked >= 5


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alg", ALGS)
def test_what_is_signed_verifies_in_the_form_it_was_signed_in(alg: Alg, form: Form) -> None:
    signed = sign_document(DOCUMENT, signer(alg), signed_at=AT, form=form)
    assert verify_document(signed, known(signer(alg))) == Verdict(True, "ok", form)
    assert {name: value for name, value in signed.items() if name != "signature"} == DOCUMENT
    assert signed["signature"]["signedAt"] == "2026-07-01T12:00:00.000Z"


def test_only_the_old_form_says_that_its_time_is_unprotected() -> None:
    keys = known(signer())
    old = verify_document(sign_document(DOCUMENT, signer(), signed_at=AT, form="hash"), keys)
    new = verify_document(sign_document(DOCUMENT, signer(), signed_at=AT, form="header"), keys)
    assert old.ok and old.signed_at_unprotected
    assert new.ok and not new.signed_at_unprotected
    assert not verify_document(DOCUMENT, keys).signed_at_unprotected


def test_signing_again_replaces_the_signature_and_leaves_the_document_alone() -> None:
    once = sign_document(DOCUMENT, signer(), signed_at=AT)
    kept = copy.deepcopy(once)
    twice = sign_document(once, signer("ES256"), signed_at=AT)
    assert once == kept
    assert twice["signature"]["alg"] == "ES256"
    assert verify_document(twice, known(signer("ES256"))).ok


def test_a_document_that_states_another_hash_is_not_signed() -> None:
    with pytest.raises(DocumentError, match="hash") as caught:
        sign_document({**DOCUMENT, "hash": "sha256:" + "0" * 64}, signer(), signed_at=AT)
    assert (caught.value.reason, caught.value.path) == ("invalid", "$.hash")


def test_a_number_spelled_otherwise_is_still_the_same_document() -> None:
    signed = sign_document({"kind": "Offer", "price": 5.0, "share": 1e-7}, signer(), signed_at=AT)
    text = json.dumps(signed).replace("5.0", "5").replace("1e-07", "0.0000001")
    assert verify_document(parse(text.encode()), known(signer())).ok


def verdict_on(raw: bytes, keys: KeyRing) -> tuple[Any, Verdict] | None:
    """The document and its verdict; None where the text is no document any more."""
    try:
        document = parse(raw)
    except DocumentError:
        return None
    return document, verify_document(document, keys)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alg", ALGS)
def test_no_flipped_bit_of_a_signed_text_verifies(alg: Alg, form: Form) -> None:
    signed = sign_document({**DOCUMENT, "x-note": "hob 2"}, signer(alg), signed_at=AT, form=form)
    raw = json.dumps(signed, ensure_ascii=False, separators=(",", ":")).encode()
    keys = known(signer(alg))
    unreadable = refused = 0
    for place in range(len(raw)):
        for bit in range(8):
            altered = bytearray(raw)
            altered[place] ^= 1 << bit
            read = verdict_on(bytes(altered), keys)
            if read is None:
                unreadable += 1
                continue
            document, verdict = read
            # The hash form leaves the time beside it open, and says so (T3); nothing else is left open.
            if verdict.ok and form == "hash" and verdict.signed_at_unprotected:
                document["signature"]["signedAt"] = signed["signature"]["signedAt"]
                assert document == signed, bytes(altered)
                continue
            assert not verdict.ok, bytes(altered)
            refused += 1
    assert unreadable > 500
    assert refused > 1500


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alg", ALGS)
def test_no_other_byte_in_any_place_of_a_small_document_verifies(alg: Alg, form: Form) -> None:
    signed = sign_document({"kind": "Offer", "n": 5, "é": [True]}, signer(alg), signed_at=AT, form=form)
    raw = json.dumps(signed, ensure_ascii=False, separators=(",", ":")).encode()
    keys = known(signer(alg))
    tried = 0
    for place in range(raw.index(b',"signature"')):
        for byte in set(range(256)) - {raw[place]}:
            read = verdict_on(raw[:place] + bytes([byte]) + raw[place + 1 :], keys)
            tried += 1
            assert read is None or not read[1].ok, (place, byte)
    assert tried > 5000


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alg", ALGS)
def test_no_cut_and_no_repeated_byte_verifies(alg: Alg, form: Form) -> None:
    signed = sign_document(DOCUMENT, signer(alg), signed_at=AT, form=form)
    raw = json.dumps(signed, ensure_ascii=False, separators=(",", ":")).encode()
    keys = known(signer(alg))
    for place in range(len(raw)):
        for altered in (raw[:place] + raw[place + 1 :], raw[:place] + raw[place : place + 1] + raw[place:]):
            read = verdict_on(altered, keys)
            if read is not None and read[1].ok:
                read[0]["signature"]["signedAt"] = signed["signature"]["signedAt"]
                assert form == "hash" and read[0] == signed, altered


REVOKED = datetime(2026, 6, 1, tzinfo=UTC)
BEFORE, SINCE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)


def revoked_ring(alg: Alg) -> KeyRing:
    (record,) = known(signer(alg))
    return KeyRing([msgspec.structs.replace(record, revoked_at="2026-06-01T00:00:00Z")])


@pytest.mark.parametrize("alg", ALGS)
@pytest.mark.parametrize(
    ("form", "signed_at", "first_seen", "reason", "second", "counts"),
    [
        ("hash", BEFORE, BEFORE, "ok", "seen_before_revocation", True),
        ("hash", BEFORE, SINCE, "ok", "seen_after_revocation", False),
        ("hash", BEFORE, None, "ok", None, True),
        ("hash", SINCE, BEFORE, "key_revoked", None, False),
        ("header", BEFORE, BEFORE, "ok", None, True),
        ("header", BEFORE, SINCE, "ok", None, True),
        ("header", SINCE, SINCE, "key_revoked", None, False),
    ],
)
def test_when_it_was_first_seen_is_a_second_result_of_the_old_form_and_only_ever_stricter(
    alg: Alg,
    form: Form,
    signed_at: datetime,
    first_seen: datetime | None,
    reason: str,
    second: str | None,
    counts: bool,
) -> None:
    signed = sign_document(DOCUMENT, signer(alg), signed_at=signed_at, form=form)
    verdict = verify_document(signed, revoked_ring(alg), first_seen=first_seen)
    assert (verdict.reason, verdict.first_seen, verdict.counts) == (reason, second, counts)
    offline = verify_document(signed, revoked_ring(alg))
    assert (offline.ok, offline.reason, offline.form) == (verdict.ok, verdict.reason, verdict.form)
    assert not (verdict.counts and not offline.counts)


def test_a_thief_who_dates_a_signature_back_gains_neither_authority_nor_evidence() -> None:
    stolen = sign_document(DOCUMENT, signer(), signed_at=datetime(2026, 9, 1, tzinfo=UTC), form="hash")
    stolen["signature"]["signedAt"] = "2026-05-01T00:00:00Z"
    verdict = verify_document(stolen, revoked_ring("EdDSA"), first_seen=datetime(2026, 9, 1, tzinfo=UTC))
    assert verdict.ok
    assert not verdict.counts
    assert verdict.caveats == ("signedAt_unprotected", "seen_after_revocation")


def test_a_header_signed_as_one_kind_is_no_signature_of_another() -> None:
    body = {"mission": "m-1", "seq": 0}
    event = sign_document(body, signer(), signed_at=AT, kind="Event")
    keys = known(signer())
    assert verify_document(event, keys, kind="Event").ok
    assert verify_document(event, keys, kind="Checkpoint").reason == "bad_signature"
    assert verify_document(event, keys).reason == "bad_signature"


@given(member=st.sampled_from(["alg", "kid", "signedAt"]), value=st.text(max_size=40), pick=st.integers(0, 4))
def test_in_the_header_form_no_other_alg_kid_or_time_verifies(member: str, value: str, pick: int) -> None:
    alias = PrivateKey.from_seed(signer().seed(), kid="person:anna#alias")
    likely = [
        "ES256",
        "person:anna#alias",
        "2026-07-01T12:00:00Z",
        "2026-07-01T12:00:00.000+00:00",
        value,
        value,
    ]
    signed = sign_document(DOCUMENT, signer(), signed_at=AT)
    before = signed["signature"][member]
    signed["signature"][member] = likely[pick]
    verdict = verify_document(signed, known(signer(), alias))
    assert verdict.ok == (likely[pick] == before)


def test_the_mirrored_es256_signature_is_the_one_stated_exception() -> None:
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    signed = sign_document(DOCUMENT, signer("ES256"), signed_at=AT)
    raw = base64url.decode(signed["signature"]["sig"])
    mirrored = raw[:32] + (order - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")
    signed["signature"]["sig"] = base64url.encode(mirrored)
    assert verify_document(signed, known(signer("ES256"))).ok


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["EdDSA", "ES256", "person:anna#1", "2026-07-01T12:00:00Z", "sha256:", "A" * 86]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["hash", "signature", "kind"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
no_json = st.sampled_from([object(), b"bytes", {1: 2}, {1, 2}, (1,), 10**5000, AT, Verdict(True, "ok")])


@settings(max_examples=400)
@given(
    place=st.sampled_from(
        ["kind", "id", "steps", "hash", "signature", "x-y", "+alg", "+kid", "+sig", "+signedAt", "+x-z"]
    ),
    value=plain_values | no_json,
    form=st.sampled_from(FORMS),
)
def test_no_hostile_value_anywhere_raises_or_verifies(place: str, value: object, form: Form) -> None:
    signed = sign_document(DOCUMENT, signer(), signed_at=AT, form=form)
    altered: dict[str, Any] = copy.deepcopy(signed)
    if place.startswith("+"):
        altered["signature"][place[1:]] = value
    else:
        altered[place] = value
    verdict = verify_document(altered, known(signer()))
    assert verdict.reason in get_args(SignatureReason)
    assert verdict.ok == (verdict.reason == "ok") == (verdict.form is not None)
    open_to_anyone = place == "+x-z" or (place == "+signedAt" and form == "hash")
    if verdict.ok and not open_to_anyone:
        assert canonical(altered) == canonical(signed)


@given(plain_values | no_json)
def test_anything_at_all_gets_a_verdict(value: object) -> None:
    assert not verify_document(value, known(signer())).ok


def test_a_document_without_bottom_or_end_gets_a_verdict() -> None:
    signed = sign_document(DOCUMENT, signer(), signed_at=AT)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    for endless in (deep, cycle):
        assert verify_document({**signed, "x-deep": endless}, known(signer())).reason == "bad_signature"
