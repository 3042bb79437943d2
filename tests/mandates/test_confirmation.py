"""What an agent needs a person's confirmation for (ruling T2)."""

import ast
from typing import get_args

import pytest

from mandates.confirmation import CONFIRMATION_OF_AGENT, confirmation_needed, refusal_of_agent
from mandates.documents import Confirmation
from tests.household import ROOT


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


def test_every_door_of_the_api_has_its_row_and_asks_by_its_own_name() -> None:
    """Ruling T2: one table for all; a door that asked under another's name would have the other's row."""
    for file in sorted((ROOT / "hub" / "api").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.AsyncFunctionDef):
                continue
            for name in [text for one in node.decorator_list if (text := _operation(one)) is not None]:
                assert name in CONFIRMATION_OF_AGENT, f"{file.name}: {name}"
                asked = [
                    call.args[2].value
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call)
                    and isinstance(call.func, ast.Name)
                    and call.func.id == "allowed"
                    and isinstance(call.args[2], ast.Constant)
                ]
                assert asked in ([], [name]), f"{file.name}: {name} asks as {asked}"


def _operation(decorator: ast.expr) -> str | None:
    if isinstance(decorator, ast.Call):
        for keyword in decorator.keywords:
            if keyword.arg == "operation_id" and isinstance(keyword.value, ast.Constant):
                return str(keyword.value.value)
    return None
