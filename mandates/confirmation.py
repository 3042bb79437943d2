"""What an agent may not do without a person's confirmation (Core §6.5; ruling T2).

A person acts directly and needs none of this. A row names an operation of the hub, whatever door it is
reached through: the operation id of an HTTP endpoint and the name of an agent's tool are the same word.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from mandates.documents import Confirmation

CONFIRMATION_OF_AGENT: Final[Mapping[str, Confirmation | None]] = MappingProxyType(
    {
        # Reading, and what Core leaves open to everyone.
        "health": None,
        "capabilities": None,
        "safety_limits": None,
        "stop": None,
        "execution": None,
        "executions": None,
        "log": None,
        "needs": None,
        "devices": None,
        "recipes": None,
        "recipe": None,
        "conditions": None,
        "recalls": None,
        "recall_keys": None,
        "recall_state": None,
        # The mandate alone decides.
        "start": None,
        # Loosens what safety asked a person for.
        "resume": "safety_override",
        "resume_after_limit": "safety_override",
        "handoff": "safety_override",
        "override_refusal": "safety_override",
        "presence": "safety_override",
        "end_condition": "safety_override",
        # The household's own affairs: no agent does these, confirmed or not.
        **dict.fromkeys(
            (
                "people",
                "add_person",
                "remove_person",
                "mandates",
                "add_mandate",
                "revoke_mandate",
                "add_device",
                "remove_device",
                "add_recipe",
                "refusals",
                "quarantine",
                "failed_logins",
                "incidents",
                "preview_incident",
                "untrusted_texts",
                "poll_recalls",
            ),
            "safety_override",
        ),
        # Leaves the house.
        "report_incident": "sharing_data",
        # Cannot be taken back.
        "discard": "irreversible",
        "erase": "irreversible",
    }
)
UNLISTED: Final[Confirmation] = "safety_override"
"""What an operation needs that no row names: forgetting a row must never open a door."""


def confirmation_needed(operation: str) -> Confirmation | None:
    """The confirmation `operation` needs when an agent asks for it; None if its mandate is enough."""
    return CONFIRMATION_OF_AGENT.get(operation, UNLISTED)


def refusal_of_agent(operation: str) -> Literal["not_authorized"] | None:
    """Why an agent may not do `operation`: what needs a confirmation is refused, as none can be given."""
    return None if confirmation_needed(operation) is None else "not_authorized"
