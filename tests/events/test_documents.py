"""The strict base of documents: every guard is exact, every problem has its name (rulings D3, Q2, Q7)."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import date
from math import isfinite
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adapters.documents import ExecuteRequest, ExecutionStatus
from events.documents import (
    MAX_DEPTH,
    MAX_DOCUMENT_BYTES,
    Document,
    DocumentError,
    OpenDocument,
    from_plain,
    parse,
    read,
    write,
)
from mandates.documents import AgentMandate
from tests.events.mutants import mutant

REASONS = {
    "too_large",
    "too_deep",
    "not_json",
    "bad_unicode",
    "bad_number",
    "duplicate_key",
    "unknown_field",
    "invalid",
}

MANDATE: dict[str, Any] = {
    "principal": "person:anna",
    "agent": "agent:planner",
    "scopes": ["start_cooking", "stop_cooking"],
    "expires": "2026-12-01T00:00:00Z",
    "spendCap": {"amount": "12.50", "currency": "EUR"},
    "agentInfo": {"vendor": "Ärzte & Co", "x-build": 7},
}
VALID: list[tuple[type, dict[str, Any]]] = [
    (AgentMandate, MANDATE),
    (
        ExecuteRequest,
        {
            "core": "0.2.0",
            "kind": "ExecuteRequest",
            "id": "req-0001",
            "recipe": "cw:cookwala.ai:example-koshari",
            "recipeHash": "sha256:" + "0a" * 32,
            "requestedBy": "agent:planner",
            "idempotencyKey": "key-00000001",
            "servings": 4,
            "mandate": MANDATE,
        },
    ),
    (
        ExecutionStatus,
        {
            "core": "0.2.0",
            "kind": "ExecutionStatus",
            "id": "exe-0001",
            "request": "req-0001",
            "state": "running",
            "seq": 4,
            "updatedAt": "2026-11-30T12:00:00.5+01:00",
            "step": {
                "node": "n1",
                "op": "cw.op.simmer",
                "progress": 0.25,
                "readings": [{"sensor": "cw.sense.core_temp", "value": 93.5, "unit": "degC"}],
            },
        },
    ),
]


def reason_of(raw: bytes, kind: type | None = None) -> str | None:
    try:
        if kind is None:
            parse(raw)
        else:
            read(kind, raw)
    except DocumentError as error:
        assert error.reason in REASONS
        assert error.path.startswith("$")
        assert error.detail
        return error.reason
    return None


def test_mutated_documents_are_accepted_or_named_and_every_reason_is_seen() -> None:
    outcomes: Counter[str | None] = Counter()
    parsed = 0

    @settings(max_examples=1500, derandomize=True, deadline=None, database=None)
    @given(st.sampled_from(VALID), st.randoms(use_true_random=True))
    def feed(valid: tuple[type, dict[str, Any]], random: Any) -> None:
        nonlocal parsed
        kind, document = valid
        raw = mutant(document, random)
        outcome = reason_of(raw, kind)
        outcomes[outcome] += 1
        parsed += reason_of(raw) is None
        if outcome is None:
            assert read(kind, write(read(kind, raw))) == read(kind, raw)

    feed()
    total = outcomes.total()
    assert total >= 1000
    assert parsed / total >= 0.5
    assert outcomes[None] / total >= 0.1
    assert {name for name in outcomes if name} == REASONS


# --- the oracle: Python's own JSON, told about every promise ---------------------------------------------


class Pairs(list[tuple[str, Any]]):
    """An object as it was written, repeated names and all."""


def _constant(text: str) -> Any:
    raise ValueError(text)


def problems(raw: bytes) -> set[str]:
    """What is wrong with `raw`, found by another way than ours; what is broken may have several names."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=Pairs, parse_constant=_constant)
    except UnicodeDecodeError:
        return {"bad_unicode", "not_json"}
    except ValueError:
        # A reader that stops at the first problem may meet another one before the place where it breaks.
        return {"not_json", "bad_unicode", "bad_number"}
    found = set(_problems(value))
    return found | {"too_deep"} if _depth(value) > MAX_DEPTH else found


def _problems(value: Any) -> Iterator[str]:
    if isinstance(value, Pairs):
        if len({name for name, _ in value}) != len(value):
            yield "duplicate_key"
        for pair in value:
            yield from _problems(list(pair))
    elif isinstance(value, list):
        for child in value:
            yield from _problems(child)
    elif isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        yield "bad_unicode"
    elif isinstance(value, float) and not isfinite(value):
        yield "bad_number"


def _depth(value: Any) -> int:
    if isinstance(value, Pairs):
        return 1 + max((_depth(child) for _, child in value), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


NAMES = st.text(alphabet='ab:"\\{[é\u20ac😀\n', max_size=3)


@st.composite
def json_texts(draw: st.DrawFn, depth: int = 3) -> str:
    """JSON text in which names repeat, and are escaped, as they like."""
    kind = draw(st.integers(0, 3 if depth else 1))
    if kind == 0:
        return draw(st.sampled_from(("0", "-1.5", "1e3", "true", "null", "9007199254740993")))
    if kind == 1:
        return _escaped(draw, draw(NAMES))
    inside = [draw(json_texts(depth=depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    space = draw(st.sampled_from(("", " ", "\n")))
    if kind == 2:
        return "[" + space + ("," + space).join(inside) + "]"
    members = (_escaped(draw, draw(NAMES)) + space + ":" + value for value in inside)
    return "{" + ",".join(members) + space + "}"


def _escaped(draw: st.DrawFn, text: str) -> str:
    out = ""
    for char in text:
        how = draw(st.sampled_from(("plain", "u", "U")))
        units = char.encode("utf-16-be")
        if how == "plain":
            out += json.dumps(char, ensure_ascii=False)[1:-1]
        else:
            form = "\\u%04x" if how == "u" else "\\u%04X"
            out += "".join(form % int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return f'"{out}"'


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(json_texts())
@example('{"a":1,"a":2}')
@example('{"a":1,"\\u0061":2}')
@example('{"a:":1,"a\\u003a":2}')
@example('{"a:":1,"a\\u003A":2}')
@example('{"\\u003a":1}')
@example('{"\\u003a":{"a":1,"a":2}}')
@example('{"a":{"b":1},"c":{"b":1}}')
@example('{"\\\\u003a":1,"\\\\u003A":2}')
@example('[{"a":":"},{"a":":","b":"::","a":1}]')
def test_a_repeated_name_is_found_exactly_when_there_is_one(text: str) -> None:
    expected = problems(text.encode())
    assert expected <= {"duplicate_key"}
    assert reason_of(text.encode()) == (expected.pop() if expected else None)


@settings(max_examples=1000, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=12),
        st.text(alphabet='{}[]":,\\ud8a0e+-. 1tnN\n', max_size=14).map(str.encode),
        st.builds(
            lambda text, at, byte: text.encode()[:at] + byte + text.encode()[at:],
            json_texts(),
            st.integers(0, 20),
            st.binary(max_size=2),
        ),
    )
)
@example(b"")
@example(b"\xef\xbb\xbf{}")
@example(b"NaN")
@example(b"[Infinity]")
@example(b"1e999")
@example(b"-1e999")
@example(b'"\\ud800"')
@example(b'"\\udc00x"')
@example(b'{"\\ud83d":1}')
@example(b'"\\ud83d\\ude00"')
@example(b'"\xed\xa0\x80"')
@example(b'"\\u0000"')
@example(b"01")
@example(b"[1,]")
@example(b'[{"":0,"":0}')
@example(b"[1e999")
@example(b'{"\\ud800":1,"\\ud800":2}')
@example("{}".encode("utf-16"))
@example("{}".encode("utf-16-le"))
def test_arbitrary_bytes_are_accepted_exactly_when_they_are_strict_json(raw: bytes) -> None:
    expected, found = problems(raw), reason_of(raw)
    assert found in expected if expected else found is None


LONE = st.sampled_from(("\\ud800", "\\uDBFF", "\\udc00", "\\uDFff", "\\ud800\\ud800", "\\udc00\\ud83d"))


@given(st.text(max_size=4), LONE, st.sampled_from(("", "x", "\\n", "\\u0041")))
def test_half_a_surrogate_pair_is_named_wherever_it_stands(before: str, lone: str, after: str) -> None:
    text = json.dumps(before, ensure_ascii=True)[:-1] + lone + after + '"'
    for raw in (f'{{"x-a":{text}}}', f"{{{text}:1}}", f"[[{text}]]"):
        assert reason_of(raw.encode()) == "bad_unicode"


def test_depth_is_counted_exactly_and_brackets_in_text_do_not_count() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        core = "1"
        allowed = opening * MAX_DEPTH + core + closing * MAX_DEPTH
        assert reason_of(allowed.encode()) is None
        assert reason_of((opening + allowed + closing).encode()) == "too_deep"
    text = json.dumps({"a": "[{" * 200, '[\\"{': ['\\"[[['] * 100, "b": [[]] * 200})
    assert reason_of(text.encode()) is None


@pytest.mark.parametrize("levels", [65, 500, 1000, 5_000, 100_000])
@pytest.mark.parametrize("form", ["[", '{"a":'])
def test_deep_nesting_is_named_and_never_a_crash(levels: int, form: str) -> None:
    closing = "]" if form == "[" else "}"
    assert reason_of((form * levels + "1" + closing * levels).encode()) == "too_deep"
    assert reason_of((form * levels + "1" + closing * levels).encode(), ExecuteRequest) == "too_deep"


def test_size_is_bounded_to_the_byte() -> None:
    assert reason_of(b'"' + b"a" * (MAX_DOCUMENT_BYTES - 2) + b'"') is None
    assert reason_of(b'"' + b"a" * (MAX_DOCUMENT_BYTES - 1) + b'"') == "too_large"


@pytest.mark.parametrize("literal", [b"1e999", b"-1e999", b"1" + b"0" * 5000])
def test_a_number_no_double_can_hold_is_named(literal: bytes) -> None:
    assert reason_of(b'{"servings":' + literal + b"}", ExecuteRequest) == "bad_number"
    assert reason_of(literal) == "bad_number"


# --- members ---------------------------------------------------------------------------------------------


class Inner(Document, frozen=True):
    a: int = 0
    x_known: int = msgspec.field(default=0, name="x-known")


class Outer(Document, frozen=True):
    inner: Inner | None = None
    many: list[Inner] | None = None
    free: dict[str, int] | None = None
    by_name: dict[str, Inner] | None = None
    by_tag: dict[Annotated[str, msgspec.Meta(pattern="^[a-z]+$")], int] | None = None
    anything: Any = None


class Day(Document, frozen=True):
    date: str

    def __post_init__(self) -> None:
        date.fromisoformat(self.date)


class Days(Document, frozen=True):
    days: list[Day] | None = None
    figures: list[float] | None = None


@pytest.mark.parametrize(
    ("raw", "reason", "path"),
    [
        (b'{"days":[{"date":"2026-02-28"},{"date":"2026-02-30"}]}', "invalid", "$.days[1]"),
        (b'{"figures":[1,' + b"9" * 400 + b"]}", "bad_number", "$.figures[1]"),
    ],
)
def test_only_a_number_that_is_none_is_a_bad_number(raw: bytes, reason: str, path: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(Days, raw)
    assert (caught.value.reason, caught.value.path) == (reason, path)


class Loose(OpenDocument, frozen=True):
    a: Annotated[int, msgspec.Meta(ge=0)] = 0


@pytest.mark.parametrize(
    "text",
    [
        '{"x-new":1}',
        '{"inner":{"x-new":{"x-deeper":[1]}}}',
        '{"many":[{"a":1},{"x-new":1,"a":2}]}',
        '{"byName":{"x-key":{"x-new":1}}}',
        '{"x-known":"declared for another object, unknown here"}',
        '{"inner":{"x-known":3,"x-new":1}}',
    ],
)
def test_unknown_extension_members_are_read_over_everywhere(text: str) -> None:
    assert reason_of(text.encode(), Outer) is None


def test_extensions_never_change_what_the_rest_says() -> None:
    """A free map's keys are not members: an `x-` member elsewhere must not make them vanish."""
    plain = {"free": {"x-a": 1, "b": 2}, "anything": {"x-c": 3}, "inner": {"x-known": 4}}
    bare = read(Outer, json.dumps(plain).encode())
    extended = read(Outer, json.dumps({**plain, "x-new": 1}).encode())
    assert bare == extended == from_plain(Outer, {**plain, "x-new": 1})
    assert extended.free == {"x-a": 1, "b": 2}
    assert extended.anything == {"x-c": 3}
    assert extended.inner is not None
    assert extended.inner.x_known == 4


@pytest.mark.parametrize(
    ("text", "reason", "path"),
    [
        ('{"nope":1}', "unknown_field", "$"),
        ('{"many":[{},{"nope":1}]}', "unknown_field", "$.many[1]"),
        ('{"x-new":1,"inner":{"nope":1}}', "unknown_field", "$.inner"),
        ('{"inner":{"a":"1"}}', "invalid", "$.inner.a"),
        ('{"x-new":1,"inner":{"a":"1"}}', "invalid", "$.inner.a"),
        ('{"inner":{"x-known":"1"}}', "invalid", "$.inner.x-known"),
        ('{"inner":{"a":true}}', "invalid", "$.inner.a"),
        ('{"byTag":{"TAG":1}}', "invalid", "$.byTag"),
        ("[]", "invalid", "$"),
        ("null", "invalid", "$"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, reason: str, path: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(Outer, text.encode())
    assert (caught.value.reason, caught.value.path) == (reason, path)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"other":"\xff"}', "bad_unicode"),
        (b'{"\xff":1}', "bad_unicode"),
        (b'{"other":"\\ud800"}', "bad_unicode"),
        (b'{"other":1e999}', "bad_number"),
        (b'{"other":{"b":1,"b":2}}', "duplicate_key"),
        (b'{"other":' + b"[" * 90 + b"]" * 90 + b"}", "too_deep"),
    ],
)
def test_an_open_document_checks_what_it_does_not_read(raw: bytes, reason: str) -> None:
    assert reason_of(raw, Loose) == reason


@settings(max_examples=200)
@given(st.permutations(('"x-n":1', '"inner":{"a":"1"}', '"free":{"k":1}', '"free":{"k":2}')))
def test_the_name_of_a_problem_does_not_depend_on_the_order_of_members(members: list[str]) -> None:
    assert reason_of(("{" + ",".join(members) + "}").encode(), Outer) == "duplicate_key"
