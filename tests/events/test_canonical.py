"""Canonical JSON and the document hash are RFC 8785 to the letter (Core §5, ruling D5, hard case 11)."""

import json
from pathlib import Path
from typing import Any

import pytest
from cookwala_samples import data, jcs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from events.canonical import (
    canonical,
    canonical_text,
    content_hash,
    digest,
    document_hash,
    read_document_hash,
    same_content,
)
from events.documents import DocumentError, parse
from tests.events.arbitrary_json import JSON, check_against_the_oracle

VECTORS = Path(__file__).parents[3] / "shared/reference/cookwala/conformance/hash.json"
BUNDLE: dict[str, Any] = data.load_bundle()

# Two ranges of doubles stay out, in which the independent canonicalizer does not print what ECMAScript prints
# (a test below holds us to that): whole ones from 2^53 to 10^21, and fractions from 10^-6 to 10^-4.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53 - 1), 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(
        lambda x: not (2**53 <= abs(x) < 1e21 or 1e-6 <= abs(x) < 1e-4)
    ),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("5.0", "5"),
        ("5", "5"),
        ("1e-07", "1e-7"),
        ("0.0000001", "1e-7"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e+21"),
        ("0.000001", "0.000001"),
        ("333333333.33333329", "333333333.3333333"),
        ("9007199254740991", "9007199254740991"),
        ("5e-324", "5e-324"),
    ],
)
def test_five_euros_hash_the_same_however_they_were_written(literal: str, text: str) -> None:
    assert canonical(parse(f'{{"amount":{literal}}}'.encode())) == f'{{"amount":{text}}}'.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (9007199254740992.0, "9007199254740992"),
        (3.627175281018853e16, "36271752810188530"),
        (295147905179352830000.0, "295147905179352830000"),
        (1e-05, "0.00001"),
        (1.5e-06, "0.0000015"),
        (9.5e-07, "9.5e-7"),
    ],
)
def test_doubles_are_printed_as_ecmascript_prints_them(value: float, text: str) -> None:
    assert canonical(value) == text.encode()


def test_keys_beyond_the_basic_plane_sort_by_utf16_units() -> None:
    assert canonical({"\ufb00": 1, "\U0001f600": 2, "z": 3, "é": 4}) == (
        '{"z":3,"é":4,"\U0001f600":2,"\ufb00":1}'.encode()
    )


def test_umlauts_stay_as_they_are() -> None:
    assert canonical({"ä": 5.0}) == '{"ä":5}'.encode()


@pytest.mark.parametrize("case", BUNDLE["expected"]["canonical"], ids=lambda case: case["text"][:20])
def test_the_published_canonical_texts_come_out_byte_for_byte(case: dict[str, Any]) -> None:
    assert canonical(case["value"]) == case["text"].encode()
    assert canonical(parse(json.dumps(case["value"]).encode())) == case["text"].encode()


@pytest.mark.parametrize("name", sorted(BUNDLE["recipes"]))
def test_the_published_recipes_have_their_published_hashes(name: str) -> None:
    recipe = BUNDLE["recipes"][name]
    assert document_hash(recipe) == BUNDLE["expected"]["hashes"][name]
    assert document_hash(parse(json.dumps(recipe, indent=2).encode())) == BUNDLE["expected"]["hashes"][name]


@pytest.mark.reference
def test_the_public_hash_vectors_hold() -> None:
    if not VECTORS.exists():
        pytest.skip(f"the public reference data is not there: {VECTORS}")
    vectors = json.loads(VECTORS.read_text())
    assert vectors
    for vector in vectors:
        assert document_hash(vector["input"]) == vector["expected"]["hash"], vector["id"]
        body = {k: v for k, v in vector["input"].items() if k not in ("hash", "signature")}
        assert canonical(body).decode() == vector["expected"]["canonical"], vector["id"]


@given(VALUES)
def test_every_value_comes_out_as_an_independent_canonicalizer_writes_it(value: Any) -> None:
    assert canonical(value) == jcs.canonical(value).encode()


@given(VALUES)
def test_canonical_bytes_are_a_fixed_point(value: Any) -> None:
    once = canonical(value)
    assert canonical(parse(once)) == once


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**53 + 1, "bad_number"),
        ({"a": [-(2**53) - 1]}, "bad_number"),
        (10**21, "bad_number"),
        (10**400, "bad_number"),
        (float("nan"), "bad_number"),
        (float("inf"), "bad_number"),
        ("\ud800", "bad_unicode"),
        ({"\udc00": 1}, "bad_unicode"),
        ({1: 2}, "invalid"),
        (b"bytes", "invalid"),
        ({1, 2}, "invalid"),
        (_nested(5_000), "too_deep"),
    ],
    ids=[
        "2^53+1",
        "-2^53-1",
        "1e21",
        "1e400",
        "nan",
        "inf",
        "surrogate",
        "surrogate key",
        "key",
        "bytes",
        "set",
        "deep",
    ],
)
def test_what_has_no_canonical_form_is_named(value: Any, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        canonical(value)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("literal", "passes"),
    [
        ("9007199254740991", True),
        ("9007199254740992", True),
        ("9007199254740993", False),
        ("-9007199254740992", True),
        ("-9007199254740993", False),
        ("36271752810188530", True),
        ("36271752810188529", False),
        ("18446744073709552000", True),
        ("18446744073709551615", False),
        ("100000000000000000000", True),
        ("1000000000000000000000", False),
    ],
)
def test_a_large_integer_passes_only_as_ecmascript_prints_a_double(literal: str, passes: bool) -> None:
    raw = f'{{"a":[{literal}],"b":1.5}}'.encode()
    if passes:
        assert canonical_text(raw) == canonical(parse(raw)) == raw
        return
    for attempt in (lambda: canonical_text(raw), lambda: canonical(parse(raw))):
        with pytest.raises(DocumentError) as caught:
            attempt()
        assert caught.value.reason == "bad_number"


@pytest.mark.parametrize("literal", ["1e400", "-1.5e999", "9" * 5000])
@pytest.mark.parametrize("before", ["", '"a":1,"a":2,', '"b":"\\ud800",'])
def test_a_number_beyond_all_doubles_is_named_alike_by_either_way(literal: str, before: str) -> None:
    raw = f'{{{before}"c":[{literal}]}}'.encode()
    named = []
    for attempt in (
        lambda: canonical_text(raw),
        lambda: read_document_hash(raw),
        lambda: canonical(parse(raw)),
    ):
        with pytest.raises(DocumentError) as caught:
            attempt()
        named.append((caught.value.reason, caught.value.path))
    assert named[0] == named[1] == named[2]
    assert named[0][0] in ("bad_number", "bad_unicode")


@settings(max_examples=1000, deadline=None)
@given(JSON, st.sampled_from((None, 1)), st.booleans())
@example('",1.0,"', None, True)
@example({'":2.0,"': ":1e16,", "1.0": [2.0, -0.0, 1e16, 1e21, 1e-6, 1e-7, 0.1]}, None, True)
@example({"\ufb00": 1, "\U0001f600": 2.0}, None, False)
@example({"a": "\U0001f600", "b": '\U0001f600":'}, None, False)
@example([1234567890123456.0, "1234567890123456", 0.1234567890123456], None, True)
@example(2.0, None, True)
def test_canonical_bytes_are_those_of_the_reference_package(value: Any, indent: Any, escaped: bool) -> None:
    check_against_the_oracle(value, json.dumps(value, indent=indent, ensure_ascii=escaped).encode())


def test_a_hash_from_the_wire_is_the_hash_of_what_was_read() -> None:
    for name, recipe in BUNDLE["recipes"].items():
        raw = json.dumps({"signature": {"x": 1.0}, **recipe}, indent=1).encode()
        assert read_document_hash(raw) == document_hash(parse(raw)) == BUNDLE["expected"]["hashes"][name]
    for raw, reason in ((b"[1]", "invalid"), (b'{"a":1,"a":1}', "duplicate_key"), (b"{", "not_json")):
        with pytest.raises(DocumentError) as caught:
            read_document_hash(raw)
        assert caught.value.reason == reason
    with pytest.raises(DocumentError, match="duplicate_key"):
        read_document_hash(b'{"hash":"a","hash":"b"}')


def test_hash_and_signature_are_left_out_at_the_top_only() -> None:
    bare = {"id": "r1", "inner": {"hash": "kept"}}
    assert document_hash({**bare, "hash": "x", "signature": {"sig": "y"}}) == document_hash(bare)
    assert document_hash({**bare, "inner": {}}) != document_hash(bare)
    assert digest(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.randoms())
def test_the_same_content_written_another_way_is_no_conflict(value: dict[str, Any], random: Any) -> None:
    members = list(value.items())
    random.shuffle(members)
    other = json.dumps(dict(members), indent=1, ensure_ascii=random.random() < 0.5).encode()
    assert same_content(json.dumps(value).encode(), other)


@given(VALUES, VALUES)
def test_content_is_the_same_exactly_when_its_canonical_bytes_are(one: Any, other: Any) -> None:
    raws = json.dumps(one).encode(), json.dumps(other).encode()
    assert same_content(*raws) == (jcs.canonical(one) == jcs.canonical(other))


def test_content_without_canonical_bytes_is_compared_as_it_stands() -> None:
    assert same_content(b'{"a":9007199254740993}', b'{"a":9007199254740993}')
    assert not same_content(b'{"a":9007199254740993}', b'{"a":9007199254740992}')
    assert content_hash(b'{"a":9007199254740993}') == digest(b'{"a":9007199254740993}')
    with pytest.raises(DocumentError):
        content_hash(b"{")
