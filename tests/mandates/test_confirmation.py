"""What an agent needs a person's confirmation for (ruling T2)."""

from typing import get_args

import pytest

from mandates.confirmation import CONFIRMATION_OF_AGENT, confirmation_needed, refusal_of_agent
from mandates.documents import Confirmation


@pytest.mark.parametrize(
    ("operation", "needed"),
    [
        ("start", None),
        ("stop", None),
        ("health", None),
        ("resume", "safety_override"),
        ("resume_after_limit", "safety_override"),
        ("handoff", "safety_override"),
        ("override_refusal", "safety_override"),
        ("discard", "irreversible"),
        ("erase", "irreversible"),
        ("an operation nobody listed", "safety_override"),
        ("", "safety_override"),
        ("START", "safety_override"),
    ],
)
def test_an_operation_needs_its_confirmation(operation: str, needed: str | None) -> None:
    assert confirmation_needed(operation) == needed


@pytest.mark.parametrize("operation", [*CONFIRMATION_OF_AGENT, "unlisted"])
def test_whatever_needs_a_confirmation_is_refused_to_an_agent(operation: str) -> None:
    needed = confirmation_needed(operation)
    assert needed is None or needed in get_args(Confirmation)
    assert refusal_of_agent(operation) == (None if needed is None else "not_authorized")


def test_the_table_cannot_be_changed_at_run_time() -> None:
    with pytest.raises(TypeError):
        CONFIRMATION_OF_AGENT["resume"] = None  # type: ignore[index]  # that is what is tried
