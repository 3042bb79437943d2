"""The events of an execution, as a device reports them (Core §7)."""

from typing import Annotated, Final

from msgspec import Meta, field

from adapters.documents import HumanNeeded, Id, Refusal, State, Step
from events.documents import OpenDocument
from events.registry import EventType, Registry

NAMES: Final = ("accepted", "refused", "state_changed", "step", "completed")


class ExecutionData(OpenDocument, frozen=True):
    """What changed in a device's execution; `cookwalaseq` of its event is the status' `seq`."""

    request: Id
    state: State
    step: Step | None = None
    refusal: Refusal | None = None
    human_needed: HumanNeeded | None = None
    x_boot: Annotated[str, Meta(min_length=1, max_length=128)] | None = field(
        default=None, name="x-aboyeur-boot"
    )
    """The boot under which the device counts; without it, the one of the last status read holds."""


def register_events(registry: Registry) -> None:
    """Enter the types of an execution.

    Raises:
        ValueError: one of them is registered already.
    """
    for name in NAMES:
        registry.register(
            EventType(f"cookwala.execution.{name}", "sequenced", ExecutionData, frozenset(("device", "hub")))
        )
