"""Which event types exist here, how each is treated, and who may send it.

Nothing is registered by importing: each room has a `register_events(registry)`, and whoever wires the
program calls those it needs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

EventClass = Literal["sequenced", "effect", "telemetry", "logged"]
"""`sequenced`: gated by its number per source, subject and boot. `effect`: unsequenced, once per
(source, id). `telemetry`: the latest by arrival counts, neither deduplicated nor logged. `logged`: kept in
the event log, without effect."""

Sender = Literal["device", "hub", "person"]

ANYBODY: Final[frozenset[Sender]] = frozenset(("device", "hub", "person"))

_VENDOR_TYPE = re.compile(r"x-[a-z0-9-]+\.[a-z0-9_.]+")


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event.

    Attributes:
        name: the CloudEvents `type`.
        event_class: how the hub treats it.
        data: the Struct its data is read as; `None` for any JSON object.
        senders: the roles that may send it (ruling E2).
    """

    name: str
    event_class: EventClass
    data: type | None
    senders: frozenset[Sender]


class Registry:
    """The event types known here. Types of vendors (`x-<vendor>.…`) need no entry: they are logged only."""

    def __init__(self) -> None:
        self._types: dict[str, EventType] = {}

    def register(self, event_type: EventType) -> None:
        """Enter a type.

        Raises:
            ValueError: the name is taken, or belongs to the vendors.
        """
        if event_type.name in self._types:
            raise ValueError(f"the event type {event_type.name} is registered already")
        if event_type.name.startswith("x-"):
            raise ValueError(f"the event type {event_type.name} is a vendor's: it is logged without an entry")
        self._types[event_type.name] = event_type

    def lookup(self, name: str) -> EventType | None:
        """The type called `name`; a vendor's type resolves to one that is only logged (ruling E2)."""
        known = self._types.get(name)
        if known is None and _VENDOR_TYPE.fullmatch(name):
            return EventType(name, "logged", None, ANYBODY)
        return known

    def __iter__(self) -> Iterator[EventType]:
        return iter(self._types.values())
