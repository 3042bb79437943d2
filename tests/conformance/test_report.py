"""The signed report on a run: what it says, and when it claims a class (Core §1)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import referencing

from events.canonical import canonical, digest, document_hash
from hub.conformance.report import CLAIM, Product, make_report, may_claim
from hub.conformance.runner import SuiteResult, run
from hub.conformance.vectors import Suite, Vector, read_folder
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import verify_document
from tests.conformance.make_vectors import FOLDER

SCHEMAS = Path(__file__).parents[3] / "shared" / "reference" / "cookwala" / "schemas"
KEY = PrivateKey.from_seed(bytes([81]) * 32, kid="person:anna#1")
NOW = datetime(2026, 7, 1, 23, 30, tzinfo=UTC)
KEYS = KeyRing([KEY.record(actor="person:anna", valid_from=datetime(2026, 1, 1, tzinfo=UTC))])
FAILING = Suite(
    "late", (Vector(id="late-1", kind="units", description="", input={"value": 1}, expected={"value": 2}),)
)


@pytest.fixture(scope="module")
def passed() -> list[SuiteResult]:
    return run(read_folder(FOLDER))


def report(results: list[SuiteResult]) -> dict[str, Any]:
    return make_report(results, report_id="report-1", product=Product("Aboyeur", "0.1.0"), key=KEY, now=NOW)


def test_a_whole_run_claims_its_class_in_a_report_that_anyone_can_check(passed: list[SuiteResult]) -> None:
    made = report(passed)
    assert made["claim"] == CLAIM == "verifier"
    assert made["hash"] == document_hash(made)
    assert verify_document(made, KEYS).ok
    assert made["date"] == "2026-07-01"
    assert {row["suite"]: (row["passed"], row["total"]) for row in made["suites"]} == {
        result.suite.name: (result.total, result.total) for result in passed
    }
    assert not any("failed" in row for row in made["suites"])


def test_one_failed_vector_takes_the_claim_from_the_whole_report(passed: list[SuiteResult]) -> None:
    made = report([*passed, *run([FAILING])])
    assert "claim" not in made
    assert made["x-aboyeur-class"] == CLAIM
    assert made["suites"][-1] == {"suite": "late", "total": 1, "passed": 0, "failed": ["late-1"]}
    assert verify_document(made, KEYS).ok


def test_an_unreadable_file_takes_the_claim_too(passed: list[SuiteResult]) -> None:
    assert may_claim(passed)
    assert not may_claim([*passed, *run([Suite("broken", error="not a list of vectors")])])


def test_passing_no_vector_of_a_kind_is_no_ground_for_a_claim(passed: list[SuiteResult]) -> None:
    assert not may_claim([])
    for kind in ("hash", "signature", "disclosure", "ledger"):
        rest = [one for one in passed if all(vector.kind != kind for vector in one.suite.vectors)]
        assert all(one.ok for one in rest)
        assert not may_claim(rest)


def test_the_report_names_the_very_vectors_it_is_on(passed: list[SuiteResult]) -> None:
    used = sorted([one.suite.name, vector.id] for one in passed for vector in one.suite.vectors)
    expected = {
        (one.suite.name, vector.id): vector.expected for one in passed for vector in one.suite.vectors
    }
    whole = [[suite, name, expected[suite, name]] for suite, name in used]
    assert report(passed)["vectorsHash"] == digest(canonical(whole))
    assert report(list(reversed(passed)))["vectorsHash"] == report(passed)["vectorsHash"]
    assert report([*passed, *run([FAILING])])["vectorsHash"] != report(passed)["vectorsHash"]


@pytest.mark.reference
def test_a_report_with_a_claim_is_valid_by_the_public_schema(passed: list[SuiteResult]) -> None:
    if not SCHEMAS.is_dir():
        pytest.skip(f"the public schemas are not there: {SCHEMAS}")
    documents = {path.name: json.loads(path.read_bytes()) for path in SCHEMAS.glob("*.schema.json")}
    registry: referencing.Registry[Any] = referencing.Registry().with_resources(
        (document["$id"], referencing.Resource.from_contents(document)) for document in documents.values()
    )
    schema = {"$ref": f"{documents['conformance.schema.json']['$id']}#/$defs/ConformanceReport"}
    validator = jsonschema.Draft202012Validator(schema, registry=registry)
    assert [error.message for error in validator.iter_errors(report(passed))] == []
    failed = report([*passed, *run([FAILING])])
    assert [error.message for error in validator.iter_errors(failed)] == ["'claim' is a required property"]
