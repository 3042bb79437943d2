"""Whatever comes, a reader accepts it or names the problem (rulings Q2, Q7)."""

import pytest

from events.documents import read
from events.envelope import read_event
from hub.document_kinds import EVENT, KINDS
from hub.event_types import event_registry
from tests.documents.fuzzing import TEXT_REASONS, fuzz
from tests.documents.valid_documents import valid_documents
from tests.events import samples

DOCUMENTS = sorted(set(KINDS) - {EVENT})
EVENT_REASONS = {
    *TEXT_REASONS,
    *("unknown_field", "invalid", "bad_attribute_name", "attribute_not_string"),
    *("bad_time", "unknown_type", "bad_data"),
}
MANY = [1500, pytest.param(100_000, marks=pytest.mark.soak)]


@pytest.mark.parametrize("times", MANY)
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_mutated_document_is_read_or_its_problem_named(kind: str, times: int) -> None:
    fuzz(
        lambda raw: read(KINDS[kind], raw),
        valid_documents()[kind],
        times if kind != "Recipe" else times // 2,
        {*TEXT_REASONS, "unknown_field", "invalid"},
    )


@pytest.mark.parametrize("times", MANY)
@pytest.mark.parametrize("event", samples.ALL, ids=lambda event: event["type"])
def test_a_mutated_event_is_read_or_its_problem_named(event: dict[str, object], times: int) -> None:
    registry = event_registry()
    fuzz(lambda raw: read_event(raw, registry), [event], times, EVENT_REASONS)
