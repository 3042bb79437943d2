"""`execution_transition`, `mission_transition`: may one state follow another (Core §7, Mission profile)."""

from collections.abc import Mapping
from typing import Any

from msgspec import field

from adapters.states import TRANSITIONS
from events.documents import Document, from_plain
from hub.records.log.mission import may_follow


class Step(Document, frozen=True):
    """From one state to another, and who leads there."""

    from_: str = field(name="from")
    to: str
    role: str | None = None


def execution(given: Any) -> Mapping[str, Any]:
    """`{allowed}` for an execution.

    Raises:
        DocumentError: no step.
    """
    step = from_plain(Step, given)
    following = next((after for state, after in TRANSITIONS.items() if state == step.from_), ())
    return {"allowed": step.to in following}


def mission(given: Any) -> Mapping[str, Any]:
    """`{allowed}` for a Mission, led by an actor of the role.

    Raises:
        DocumentError: no step.
    """
    step = from_plain(Step, given)
    return {"allowed": may_follow(step.from_, step.to, step.role)}
