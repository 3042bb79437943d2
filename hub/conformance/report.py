"""The signed report on a run of vectors: what was run, on what, and what may be claimed from it (Core §1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from events.canonical import canonical, digest, document_hash
from hub.conformance.runner import SuiteResult
from mandates.keys import PrivateKey
from mandates.signature import sign_document

PROFILE: Final = "0.1.0"
"""The version of the report's own format."""
CORE: Final = "0.2.0"
CLAIM: Final = "verifier"
"""The class this program reports on: hashes, signatures, keys, disclosures, event logs and checkpoints."""
CLAIM_KINDS: Final = frozenset({"hash", "signature", "disclosure", "ledger"})
"""Kinds that must have been among the vectors: passing none of a kind is no ground for a claim."""


@dataclass(frozen=True, slots=True)
class Product:
    """What was tested: its name and version."""

    name: str
    version: str


def may_claim(results: Sequence[SuiteResult]) -> bool:
    """Whether every vector passed and every kind of the class was among them."""
    ran = {vector.kind for result in results for vector in result.suite.vectors}
    return bool(results) and all(result.ok for result in results) and ran >= CLAIM_KINDS


def vectors_hash(results: Sequence[SuiteResult]) -> str:
    """`sha256:<hex>` over the canonical JSON of the sorted list of suite, vector id and expectation.

    Raises:
        DocumentError: an expectation has no canonical JSON.
    """
    used = sorted(
        (
            (result.suite.name, vector.id, vector.expected)
            for result in results
            for vector in result.suite.vectors
        ),
        key=lambda one: one[:2],
    )
    return digest(canonical([list(one) for one in used]))


def make_report(
    results: Sequence[SuiteResult],
    *,
    report_id: str,
    product: Product,
    key: PrivateKey,
    now: datetime,
) -> dict[str, Any]:
    """A signed ConformanceReport. It claims a class only where `may_claim`; else it has no `claim` at all.

    The public schema asks for a claim, so a report without one is not valid by it. That is meant: whoever
    takes only valid reports takes none of a failed run.

    Args:
        results: of every suite that was run.
        report_id: a new id.
        product: what was tested, by what.
        key: whoever declares it.
        now: aware.

    Raises:
        DocumentError: an expectation has no canonical JSON.
    """
    claim: Mapping[str, Any] = {"claim": CLAIM} if may_claim(results) else {}
    body = {
        "profile": PROFILE,
        "kind": "ConformanceReport",
        "id": report_id,
        "core": CORE,
        **claim,
        "subject": {"name": product.name, "version": product.version},
        "suites": [_suite(result) for result in results],
        "vectorsHash": vectors_hash(results),
        "tool": {"name": product.name, "version": product.version},
        "date": now.date().isoformat(),
        "status": "self_declared",
        "x-aboyeur-class": CLAIM,
    }
    return sign_document({**body, "hash": document_hash(body)}, key, signed_at=now)


def _suite(result: SuiteResult) -> dict[str, Any]:
    failed = [failure.vector for failure in result.failures if failure.vector]
    counts: dict[str, Any] = {"suite": result.suite.name, "total": result.total, "passed": result.passed}
    return {**counts, "failed": failed} if failed else counts
