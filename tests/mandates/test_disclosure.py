"""Selective disclosure: what is concealed stays so, what is revealed is what was signed (Core §5)."""

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.canonical import canonical, digest, document_hash
from events.documents import DocumentError
from events.seams import SystemIds
from mandates.disclosure import (
    DisclosureError,
    Opening,
    conceal,
    disclosure_digest,
    disclosures,
    reveal,
    signed_form,
    verify_disclosure,
)
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import sign_document, verify_document

KEY = PrivateKey.from_seed(bytes([9]) * 32, kid="person:ida#1")
KEYS = KeyRing([KEY.record(actor="person:ida", valid_from=datetime(2026, 1, 1, tzinfo=UTC))])
AT = datetime(2026, 7, 1, tzinfo=UTC)
ORDER: dict[str, Any] = {
    "kind": "Order",
    "guests": [{"name": "Ida", "diet": "low salt"}, {"name": "Omar", "diet": "halal"}],
    "note": "at 7",
    "a/b": {"~": 1},
}


class CountedIds:
    """Salts one after the other."""

    def __init__(self, *salts: str) -> None:
        self._salts = iter(salts) if salts else (f"salt-{n:039}" for n in itertools.count())

    def new(self, prefix: str) -> str:
        return f"{prefix}-1"

    def secret(self) -> str:
        return next(self._salts)


def test_the_digest_is_over_the_canonical_pair() -> None:
    salt = "AAECAwQFBgcICQoLDA0ODw"
    assert disclosure_digest(salt, {"b": 1.0, "a": "ä"}) == digest(
        '["AAECAwQFBgcICQoLDA0ODw",{"a":"ä","b":1}]'.encode()
    )


def test_a_signature_over_digests_holds_for_every_choice_of_what_is_revealed() -> None:
    made = conceal(ORDER, ["/guests/0/diet", "/guests/1", "/a~1b/~0"], SystemIds())
    assert "halal" not in json.dumps(made.document) and "low salt" not in json.dumps(made.document)
    signed = sign_document(made.document, KEY, signed_at=AT)
    for many in range(len(made.openings) + 1):
        for chosen in itertools.combinations(made.openings, many):
            shown = reveal(signed, chosen)
            assert signed_form(shown) == signed
            assert verify_document(signed_form(shown), KEYS).ok
            found = disclosures(shown)
            assert all(one.ok for one in found)
            assert {one.path for one in found if one.opened} == {opening.path for opening in chosen}
            assert len(found) == 3


def test_a_revealed_value_that_was_changed_is_found() -> None:
    made = conceal(ORDER, ["/guests/1/diet"], SystemIds())
    shown = reveal(sign_document(made.document, KEY, signed_at=AT), made.openings)
    shown["guests"][1]["diet"]["value"] = "none"
    # The signature covers the digest only, which is why each opening is checked as well.
    assert verify_document(signed_form(shown), KEYS).ok
    assert [(one.path, one.reason) for one in disclosures(shown)] == [("/guests/1/diet", "digest_mismatch")]
    shown["guests"][1]["diet"]["digest"] = disclosure_digest(shown["guests"][1]["diet"]["salt"], "none")
    assert disclosures(shown)[0].ok
    assert verify_document(signed_form(shown), KEYS).reason == "bad_signature"


def test_every_value_has_a_salt_of_its_own() -> None:
    made = conceal(ORDER, ["/guests/0/name", "/guests/1/name", "/note"], SystemIds())
    salts = {opening.salt for opening in made.openings}
    assert len(salts) == 3
    # 43 characters of base64url: 256 bits
    assert all(len(salt) >= 43 for salt in salts)
    again = conceal(ORDER, ["/note"], SystemIds(), used=salts)
    assert again.openings[0].salt not in salts


@pytest.mark.parametrize(
    ("ids", "used"),
    [
        (CountedIds("A" * 43, "A" * 43), ()),
        (CountedIds("A" * 43, "B" * 43), ("B" * 43,)),
        (CountedIds("A" * 21, "B" * 21), ()),
    ],
)
def test_a_source_of_chance_that_repeats_itself_or_is_too_short_makes_nothing(
    ids: CountedIds, used: tuple[str, ...]
) -> None:
    with pytest.raises(DisclosureError, match="salt"):
        conceal(ORDER, ["/note", "/guests"], ids, used=used)


def test_one_salt_beside_two_values_is_found_by_who_reads_them() -> None:
    salt = "B" * 22
    document = {
        name: {"digest": disclosure_digest(salt, name), "salt": salt, "value": name} for name in ("x", "y")
    }
    assert [one.reason for one in disclosures(document)] == ["ok", "salt_reused"]


@pytest.mark.parametrize(
    ("claimed", "salt", "value", "reason"),
    [
        (disclosure_digest("B" * 22, 1), "B" * 22, 1, "ok"),
        (disclosure_digest("B" * 22, 1), "B" * 22, 1.0, "ok"),
        (disclosure_digest("B" * 22, 1), "B" * 22, "1", "digest_mismatch"),
        (disclosure_digest("B" * 22, 1), "C" * 22, 1, "digest_mismatch"),
        (disclosure_digest("B" * 21, 1), "B" * 21, 1, "short_salt"),
        (disclosure_digest("ä" * 30, 1), "ä" * 30, 1, "short_salt"),
        (disclosure_digest("B" * 22, 1).upper(), "B" * 22, 1, "unreadable"),
        (None, "B" * 22, 1, "unreadable"),
        ("sha256:" + "0" * 64, 7, 1, "unreadable"),
        ("sha256:" + "0" * 64, "B" * 22, float("inf"), "unreadable"),
        ("sha256:" + "0" * 64, "B" * 22, {1, 2}, "unreadable"),
    ],
)
def test_an_opening_gets_a_named_verdict(claimed: object, salt: object, value: object, reason: str) -> None:
    assert verify_disclosure(claimed, salt, value) == reason


@pytest.mark.parametrize(
    ("document", "paths", "word"),
    [
        (ORDER, [], "nothing"),
        (ORDER, ["note"], "no path"),
        (ORDER, ["/no~2te"], "no path"),
        (ORDER, ["/nothing"], "nothing stands"),
        (ORDER, ["/guests/2"], "nothing stands"),
        (ORDER, ["/guests/00"], "nothing stands"),
        (ORDER, ["/note/x"], "nothing stands"),
        (ORDER, ["/note", "/note"], "twice"),
        (ORDER, ["/guests/0/name", "/guests"], "inside"),
        (ORDER, ["/kind"], "cannot be concealed"),
        ({**ORDER, "signature": {}}, ["/note"], "signed"),
    ],
)
def test_what_cannot_be_concealed_is_refused_in_words(
    document: dict[str, Any], paths: list[str], word: str
) -> None:
    with pytest.raises(DisclosureError, match=word):
        conceal(document, paths, SystemIds())


def test_an_opening_opens_nothing_but_its_own_digest() -> None:
    made = conceal(ORDER, ["/note", "/guests/0/name"], SystemIds())
    note, name = made.openings
    with pytest.raises(DisclosureError, match="another digest"):
        reveal(made.document, [Opening("/guests/0/name", note.digest, note.salt, note.value)])
    with pytest.raises(DisclosureError, match="digest_mismatch"):
        reveal(made.document, [Opening("/note", note.digest, name.salt, note.value)])
    with pytest.raises(DisclosureError, match="another digest"):
        reveal(ORDER, [note])


def test_concealing_leaves_the_document_alone_and_makes_its_hash_fit() -> None:
    before = json.dumps(ORDER)
    made = conceal({**ORDER, "hash": document_hash(ORDER)}, ["/note"], SystemIds())
    assert json.dumps(ORDER) == before
    assert made.document["hash"] == document_hash(made.document) != document_hash(ORDER)
    with pytest.raises(DocumentError):
        conceal({"n": float("nan")}, ["/n"], SystemIds())


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(document=st.dictionaries(st.text(max_size=4), values, min_size=1, max_size=4), pick=st.data())
def test_revealing_all_gives_back_every_value(document: dict[str, Any], pick: st.DataObject) -> None:
    names = [name for name in document if name not in ("hash", "signature", "kind")]
    if not names or "signature" in document:
        return
    name = pick.draw(st.sampled_from(names))
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    made = conceal(document, [path], SystemIds())
    shown = reveal(made.document, made.openings)
    assert canonical(shown[name]["value"]) == canonical(document[name])
    assert signed_form(shown)[name] == {"digest": made.openings[0].digest}


@given(values)
def test_any_document_can_be_looked_through(value: Any) -> None:
    disclosures({"x": value})
    signed_form({"x": value})
