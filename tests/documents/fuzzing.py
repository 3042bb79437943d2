"""Mutants of valid documents against the readers, with the shares that ruling Q2 asks for."""

import json
import random as chance
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from events.documents import DocumentError, parse
from tests.events.mutants import mutant

TEXT_REASONS = {"too_large", "too_deep", "not_json", "bad_unicode", "bad_number", "duplicate_key"}


def fuzz(
    read: Callable[[bytes], Any],
    valid: Sequence[Mapping[str, Any]],
    times: int,
    reasons: set[str],
    seed: int = 1,
) -> Counter[str | None]:
    """Read `times` mutants; whatever is raised but a DocumentError fails the test, and so do thin shares."""
    random = chance.Random(seed)
    outcomes: Counter[str | None] = Counter()
    parsed = 0
    for _ in range(times):
        raw = mutant(random.choice(valid), random)
        try:
            parse(raw)
            parsed += 1
        except DocumentError:
            pass
        try:
            read(raw)
        except DocumentError as error:
            assert error.path.startswith("$"), raw
            assert error.detail, raw
            outcomes[error.reason] += 1
        else:
            outcomes[None] += 1
    assert parsed / times >= 0.5, outcomes
    assert outcomes[None] / times >= 0.1, outcomes
    assert {name for name in outcomes if name} == reasons, outcomes
    return outcomes


def text_of(plain: Any) -> bytes:
    """`plain` as JSON text."""
    return json.dumps(plain, ensure_ascii=False).encode()
