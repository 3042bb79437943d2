"""Running vectors: what was expected, what this program answers, and whether they are the same (Core §1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from events.canonical import canonical
from events.documents import DocumentError
from hub.conformance.kinds import (
    disclosure,
    dryrun,
    envelope,
    hashing,
    ledger,
    sensor_trust,
    signature,
    transitions,
    units,
)
from hub.conformance.vectors import Suite, Vector

Answer = Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """How vectors of a kind are answered.

    Attributes:
        answer: from the vector's input; raises ValueError (DocumentError is one) for input it cannot read.
        beside: members of the answer that are compared only where the vector expects them.
    """

    answer: Answer
    beside: frozenset[str] = frozenset()


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "hash": Kind(hashing.answer),
        "signature": Kind(signature.answer, frozenset({"form", "caveats"})),
        "disclosure": Kind(disclosure.answer, frozenset({"reason"})),
        "ledger": Kind(ledger.answer, frozenset({"head", "witnesses", "proven", "caveats"})),
        "execution_transition": Kind(transitions.execution),
        "mission_transition": Kind(transitions.mission),
        "dryrun": Kind(dryrun.answer),
        "envelope": Kind(envelope.answer),
        "units": Kind(units.answer),
        "sensor_trust": Kind(sensor_trust.trust),
        "plausibility": Kind(sensor_trust.plausibility, frozenset({"demoted"})),
    }
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A vector that did not pass.

    Attributes:
        vector: its id; empty where the whole file could not be read.
        expected: what the vector says.
        got: what this program answered; None where it gave no answer.
        why: why there is no answer; empty where there is one.
    """

    vector: str
    expected: Any
    got: Any
    why: str = ""


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """How one suite went. `not_run` names the kinds in it that this program does not run yet."""

    suite: Suite
    total: int
    passed: int
    failures: tuple[Failure, ...]
    not_run: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there were vectors and all of them passed."""
        return self.total > 0 and self.passed == self.total


def run_suite(suite: Suite, kinds: Mapping[str, Kind] = KINDS) -> SuiteResult:
    """Run every vector of `suite`; a kind that is not in `kinds` counts as failed."""
    if suite.error is not None:
        return SuiteResult(suite, 0, 0, (Failure("", None, None, suite.error),), ())
    failures = [
        failure for vector in suite.vectors if (failure := _run(vector, kinds.get(vector.kind))) is not None
    ]
    not_run = tuple(sorted({vector.kind for vector in suite.vectors} - kinds.keys()))
    total = len(suite.vectors)
    return SuiteResult(suite, total, total - len(failures), tuple(failures), not_run)


def run(suites: Sequence[Suite], kinds: Mapping[str, Kind] = KINDS) -> list[SuiteResult]:
    """Run every suite, in order."""
    return [run_suite(suite, kinds) for suite in suites]


def _run(vector: Vector, kind: Kind | None) -> Failure | None:
    if kind is None:
        return Failure(vector.id, vector.expected, None, f"vectors of the kind {vector.kind} are not run yet")
    try:
        answer = kind.answer(vector.input)
    except ValueError as error:
        return Failure(vector.id, vector.expected, None, f"the input cannot be read: {error}")
    expected = vector.expected
    named = expected.keys() if isinstance(expected, dict) else frozenset[str]()
    got = {name: value for name, value in answer.items() if name in named or name not in kind.beside}
    return None if _same(got, expected) else Failure(vector.id, expected, got)


def _same(got: Any, expected: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    try:
        return canonical(got) == canonical(expected)
    except DocumentError:
        return False
