"""Conformance vectors: ours in every clone, the public ones where they lie beside it (Core §1)."""

import copy
import os
from pathlib import Path
from typing import Any

import pytest

from hub.conformance.runner import KINDS, SuiteResult, run, run_suite
from hub.conformance.vectors import FILES_MOST, FolderError, Suite, Vector, read_folder, suite_name
from tests.conformance.make_vectors import FOLDER, everything, text

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"


@pytest.fixture(scope="module")
def own() -> list[SuiteResult]:
    return run(read_folder(FOLDER))


def test_all_our_own_vectors_pass(own: list[SuiteResult]) -> None:
    assert {result.suite.name: result.failures for result in own} == dict.fromkeys(everything(), ())
    assert sum(result.total for result in own) >= 100


def test_our_own_vectors_are_of_every_kind_that_is_run(own: list[SuiteResult]) -> None:
    assert {vector.kind for result in own for vector in result.suite.vectors} == set(KINDS)


def test_our_own_vector_files_are_what_they_are_made_by() -> None:
    for name, vectors in everything().items():
        assert (FOLDER / f"{name}.json").read_text("utf-8") == text(vectors), name


def other(value: Any) -> Any:
    """Some other value of the same sort."""
    match value:
        case bool():
            return not value
        case None:
            return "other"
        case str():
            return value + "x"
        case list():
            return [*value, "x"]
        case _:
            return 7


def test_every_member_of_every_expectation_counts(own: list[SuiteResult]) -> None:
    changed = 0
    for result in own:
        for vector in result.suite.vectors:
            for name, value in vector.expected.items():
                wrong = copy.deepcopy(vector.expected)
                wrong[name] = other(value)
                spoiled = Vector(
                    id=vector.id, kind=vector.kind, description="", input=vector.input, expected=wrong
                )
                outcome = run_suite(Suite("spoiled", (spoiled,)))
                assert not outcome.ok, (vector.id, name)
                (failure,) = outcome.failures
                assert failure.expected == wrong
                assert failure.got[name] == value
                changed += 1
    assert changed > 200


def one(kind: str, given: Any, expected: Any) -> SuiteResult:
    vector = Vector(id="a-vector", kind=kind, description="", input=given, expected=expected)
    return run_suite(Suite("suite", (vector,)))


@pytest.mark.parametrize(
    "expected", [{}, None, [], {"allowed": 1}, {"allowed": "true"}, {"allowed": True, "x": 1}]
)
def test_an_expectation_that_is_another_shape_fails(expected: Any) -> None:
    given = {"from": "accepted", "to": "preparing"}
    assert one("execution_transition", given, {"allowed": True}).ok
    assert not one("execution_transition", given, expected).ok


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("given", [None, 7, [], {}, {"document": 1}, {"seed": "x"}, {"from": 1}, {"keys": 1}])
def test_an_input_that_cannot_be_read_fails_with_a_reason_and_stops_nothing(kind: str, given: Any) -> None:
    outcome = one(kind, given, {"ok": True})
    assert not outcome.ok
    (failure,) = outcome.failures
    assert failure.why or failure.got is not None


def test_two_records_of_one_kid_make_a_vector_unreadable() -> None:
    key = {"kid": "k", "alg": "EdDSA", "publicKey": "AAAA", "validFrom": "2026-01-01T00:00:00Z"}
    given = {"document": {}, "keys": [key, {**key, "publicKey": "BBBB"}]}
    assert "kid" in one("signature", given, {"ok": False, "reason": "unsigned"}).failures[0].why


def test_a_kind_that_is_not_run_yet_is_named_and_counts_as_failed() -> None:
    outcome = one("sms_parse", {}, {})
    assert (outcome.ok, outcome.passed, outcome.total, outcome.not_run) == (False, 0, 1, ("sms_parse",))
    assert "not run yet" in outcome.failures[0].why


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "not_json"),
        (b"{}", "not a list"),
        (b"[]", "no vectors"),
        (b'[{"id":"x"}]', "invalid"),
        (b'[{"id":"aa","kind":"hash","description":"","input":{},"expected":{},"more":1}]', "unknown_field"),
        (
            b'[{"id":"aa","kind":"hash","description":"","input":{},"expected":{}},'
            b'{"id":"aa","kind":"hash","description":"","input":{},"expected":{}}]',
            "one id",
        ),
        (b'[{"id":"aa","id":"ab","kind":"hash","description":"","input":{},"expected":{}}]', "duplicate_key"),
    ],
)
def test_a_file_without_vectors_is_a_failed_suite_and_not_a_skipped_one(
    tmp_path: Path, content: bytes, word: str
) -> None:
    (tmp_path / "broken.json").write_bytes(content)
    (result,) = run(read_folder(tmp_path))
    assert (result.ok, result.suite.name) == (False, "broken")
    assert word in result.failures[0].why


def test_what_is_called_a_vector_file_and_is_none_is_a_failed_suite(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes((FOLDER / "hash.json").read_bytes())
    (tmp_path / "c.json").symlink_to(tmp_path / "gone")
    (tmp_path / "d.json").mkdir()
    (tmp_path / "d.json" / "x.json").write_bytes(b"[]")
    os.mkfifo(tmp_path / "e.json")
    (tmp_path / "f.json").symlink_to("/dev/zero")
    results = run(read_folder(tmp_path))
    assert [(one.suite.name, one.ok) for one in results] == [
        ("a", True), ("c", False), ("d", False), ("d-json/x", False), ("e", False), ("f", False)
    ]  # fmt: skip
    assert all("no file" in results[place].failures[0].why for place in (1, 2, 4, 5))


def test_a_vector_file_is_read_to_its_bound_and_no_further(tmp_path: Path) -> None:
    (tmp_path / "vast.json").touch()
    os.truncate(tmp_path / "vast.json", 2**42)  # no disk is taken, and no memory holds it
    (result,) = run(read_folder(tmp_path))
    assert "too_large" in result.failures[0].why


def test_a_folder_without_files_or_with_too_many_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="no vector files"):
        read_folder(tmp_path)
    for number in range(FILES_MOST + 1):
        (tmp_path / f"{number}.json").touch()
    with pytest.raises(FolderError, match="at most"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("hash.json", "hash"),
        ("profiles/sensor_trust.json", "profiles/sensor_trust"),
        ("A b.v2.json", "a-b-v2"),
    ],
)
def test_a_suite_is_called_as_reports_may_name_it(path: str, name: str) -> None:
    assert suite_name(Path(path)) == name


@pytest.mark.reference
@pytest.mark.parametrize(
    ("folder", "suite", "total"),
    [
        ("cookwala", "hash", 4),
        ("cookwala", "signature", 8),
        ("cookwala", "disclosure", 2),
        ("cookwala", "ledger", 7),
        ("cookwala", "transitions", 11),
        ("cookwala", "dryrun", 7),
        ("cookwala", "envelope", 14),
        ("cookwala", "units", 5),
        ("cookwala", "profiles/sensor_trust", 9),
        ("cookwala-0.2.0", "signature", 5),
        ("cookwala-0.2.0", "ledger", 4),
    ],
)
def test_the_public_suites_pass(folder: str, suite: str, total: int) -> None:
    vectors = REFERENCE / folder / "conformance"
    if not vectors.is_dir():
        pytest.skip(f"the public vectors are not there: {vectors}")
    result = next(one for one in run(read_folder(vectors)) if one.suite.name == suite)
    assert result.failures == ()
    assert (result.passed, result.total) == (total, total)


@pytest.mark.reference
@pytest.mark.parametrize(("folder", "total"), [("cookwala", 67), ("cookwala-0.2.0", 9)])
def test_every_public_vector_is_passed(folder: str, total: int) -> None:
    vectors = REFERENCE / folder / "conformance"
    if not vectors.is_dir():
        pytest.skip(f"the public vectors are not there: {vectors}")
    results = run(read_folder(vectors))
    assert {result.suite.name: result.failures for result in results if not result.ok} == {}
    assert sum(result.total for result in results) == total
