"""Every kind of document: strict, complete, the same after a way through it (Core §2, §4; D2, D5–D7)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from events.canonical import canonical, canonical_text
from events.documents import DocumentError, from_plain, parse, read, write
from events.extensions import without_extensions
from events.texts import UNTRUSTED
from hub.document_kinds import EVENT, KINDS, kind_of
from hub.event_types import event_registry
from tests.documents.valid_documents import valid_documents

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
VALID = [(kind, one) for kind, many in valid_documents().items() for one in many]
NAMED = [one for one in VALID if one[0] not in ("Quantity", "Target", "Condition")]


def text_of(plain: Any) -> bytes:
    return json.dumps(plain, ensure_ascii=False).encode()


def test_there_is_a_valid_document_of_every_kind() -> None:
    assert {kind for kind, _ in VALID} == set(KINDS) - {EVENT}


@pytest.mark.parametrize(("kind", "plain"), NAMED)
def test_a_document_tells_its_kind(kind: str, plain: dict[str, Any]) -> None:
    assert kind_of(plain) == kind


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("Disclosure", {"digest": "sha256:" + "0a" * 32, "salt": "s" * 22, "value": None}),
        ("Condition", {"sensor": "cw.sense.lid", "eq": None}),
        ("Condition", {"not": {"vision": "cw.sense.burnt", "eq": None, "x-maker": 1}}),
    ],
)
def test_a_null_that_is_a_value_is_kept(kind: str, plain: dict[str, Any]) -> None:
    read_back = parse(write(read(KINDS[kind], text_of(plain))))
    assert read_back == without_extensions(plain, KINDS[kind])
    assert read_back != parse(write(read(KINDS[kind], text_of(_without_null(plain)))))


def _without_null(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    return {name: _without_null(child) for name, child in plain.items() if child is not None}


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(VALID), st.dictionaries(st.from_regex("x-[a-z]{1,4}", fullmatch=True), st.integers(0, 9))
)
def test_read_and_written_it_is_the_same_document_and_its_bytes_keep_x(
    valid: tuple[str, dict[str, Any]], extensions: dict[str, int]
) -> None:
    kind, plain = valid
    known = KINDS[kind]
    written = write(read(known, text_of(plain)))
    assert canonical_text(written) == canonical(without_extensions(plain, known))
    raw = text_of({**plain, **extensions})
    assert read(known, raw) == read(known, text_of(plain))
    assert parse(raw) == {**plain, **extensions}


@pytest.mark.reference
def test_every_public_example_is_read_and_comes_out_the_same() -> None:
    folders = ("cookwala/examples/core", "cookwala/examples/capabilities", "cookwala-0.2.0/examples/core")
    paths = [path for folder in folders for path in sorted((REFERENCE / folder).glob("*.json"))]
    if not paths:
        pytest.skip(f"the public examples are not there: {REFERENCE}")
    assert len(paths) == 13
    for path in paths:
        raw = path.read_bytes()
        kind = kind_of(parse(raw))
        assert kind is not None, path
        bare = without_extensions(parse(raw), KINDS[kind])
        assert canonical_text(write(read(KINDS[kind], raw))) == canonical(bare), path


@pytest.mark.parametrize(("kind", "plain"), VALID)
def test_no_optional_member_may_be_null(kind: str, plain: dict[str, Any]) -> None:
    shape = inspect.type_info(KINDS[kind])
    assert isinstance(shape, inspect.StructType)
    for member in shape.fields:
        if isinstance(member.type, inspect.AnyType) or member.encode_name.startswith("x-"):
            continue
        changed = {**plain, member.encode_name: None}
        for reader, given_form in ((read, text_of(changed)), (from_plain, changed)):
            with pytest.raises(DocumentError) as caught:
                reader(KINDS[kind], given_form)
            assert caught.value.reason == "invalid"
            if not member.required:
                assert caught.value.path == f"$.{member.encode_name}"


def test_a_null_deep_inside_is_found_and_one_where_any_value_may_stand_is_not() -> None:
    recipe = valid_documents()["Recipe"][0]
    recipe["process"]["nodes"][1]["params"] = {"anything": None}
    recipe["x-acme"] = None
    read(KINDS["Recipe"], text_of(recipe))
    recipe["process"]["nodes"][1]["skill"] = None
    with pytest.raises(DocumentError) as caught:
        read(KINDS["Recipe"], text_of(recipe))
    assert (caught.value.reason, caught.value.path) == ("invalid", "$.process.nodes[1].skill")


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("Quantity", {"value": 180, "unit": "degC", "tolerance": 0.1}),
        ("Quantity", {"value": 1, "unit": "kg", "tolerance": 1.1}),
        ("Quantity", {"value": 1, "unit": "kg", "tolerance": -0.1}),
        ("Quantity", {"value": 1, "unit": "kg", "tolerance": 0.1, "toleranceAbs": 1}),
        ("Quantity", {"value": 350, "unit": "degF"}),
        ("Quantity", {"value": 300, "unit": "K"}),
        ("Target", {"sensor": "cw.sense.core_temp", "value": 70, "unit": "degF"}),
        ("Target", {"sensor": "cw.sense.core_temp", "value": 70, "unit": "degC", "tolerance": -1}),
        ("Money", {"amount": "12.70", "currency": "EUX"}),
        ("Money", {"amount": "12.70", "currency": "DEM"}),
        ("Money", {"amount": "12.70", "currency": "eur"}),
        ("Money", {"amount": 12.7, "currency": "EUR"}),
        ("Money", {"amount": "12,70", "currency": "EUR"}),
        ("Money", {"amount": "1e3", "currency": "EUR"}),
        ("Disclosure", {"digest": "sha256:" + "0" * 64, "salt": "short"}),
        ("KeyRecord", {"kid": "k", "alg": "RS256", "publicKey": "A", "validFrom": "2026-01-01T00:00:00Z"}),
        ("KeyRecord", {"kid": "k", "alg": "EdDSA", "publicKey": "A", "validFrom": "2026-01-01T00:00:00"}),
    ],
)
def test_what_the_rules_forbid_is_refused(kind: str, plain: dict[str, Any]) -> None:
    with pytest.raises(DocumentError):
        read(KINDS[kind], text_of(plain))


def test_a_report_of_a_third_party_names_it_and_a_day_is_one_of_the_calendar() -> None:
    report = valid_documents()["ConformanceReport"][0]
    with pytest.raises(DocumentError):
        read(KINDS["ConformanceReport"], text_of({**report, "status": "verified"}))
    read(KINDS["ConformanceReport"], text_of({**report, "status": "verified", "verifier": "lab"}))
    incident = valid_documents()["IncidentReport"][0]
    for day in ("2026-02-29", "2026-13-01", "2026-02-28T12:00:00Z", "28.02.2026"):
        with pytest.raises(DocumentError):
            read(KINDS["IncidentReport"], text_of({**incident, "date": day}))


# --- free text (ruling D6) --------------------------------------------------------------------------------


class Bare(msgspec.Struct):
    """What the search below must find."""

    inner: "list[dict[str, str]] | None" = None


def bare_texts(kind: Any) -> set[str]:
    """Members that hold a text without a bound, a pattern or the mark of free text."""
    found: set[str] = set()
    seen: set[type] = set()
    waiting = [("", inspect.type_info(kind), False)]
    while waiting:
        place, shape, marked = waiting.pop()
        if isinstance(shape, inspect.Metadata):
            mark = (shape.extra_json_schema or {}).get(UNTRUSTED, False)
            waiting.append((place, shape.type, marked or mark))
        elif isinstance(shape, inspect.StrType):
            if not marked and shape.max_length is None and shape.pattern is None:
                found.add(place)
        else:
            waiting.extend(_inside(place, shape, seen))
    return found


def _inside(place: str, shape: inspect.Type, seen: set[type]) -> Iterator[tuple[str, inspect.Type, bool]]:
    if isinstance(shape, inspect.StructType) and shape.cls not in seen:
        seen.add(shape.cls)
        yield from ((f"{shape.cls.__name__}.{one.name}", one.type, False) for one in shape.fields)
    elif isinstance(shape, inspect.UnionType):
        yield from ((place, one, False) for one in shape.types)
    elif isinstance(shape, inspect.DictType):
        # an object of any members has any names
        if not isinstance(shape.value_type, inspect.AnyType):
            yield place, shape.key_type, False
        yield place, shape.value_type, False
    elif isinstance(shape, inspect.CollectionType):
        yield place, shape.item_type, False


def test_every_text_is_free_text_and_marked_or_has_a_form() -> None:
    assert bare_texts(Bare) == {"Bare.inner"}
    kinds = [*KINDS.values(), *(one.data for one in event_registry() if one.data is not None)]
    bare = set().union(*(bare_texts(kind) for kind in kinds))
    # read as a date-time by itself, with an error of its own
    assert bare - {"Envelope.time"} == set()
