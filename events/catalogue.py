"""The event types that know nothing of cooking, and what their data looks like (Core §7, DESIGN §4).

What the public event schema closes is closed here; elsewhere the members we use are named and the raw event
keeps the rest.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, field

from events.documents import Document, OpenDocument
from events.registry import ANYBODY, EventClass, EventType, Registry, Sender
from events.texts import LangMap, Name, UntrustedText
from events.times import DATE_TIME_PATTERN, parse_date_time

DateTime = Annotated[str, Meta(pattern=DATE_TIME_PATTERN)]
Boot = Annotated[str, Meta(min_length=1, max_length=128)]
Word = Annotated[str, Meta(min_length=1, max_length=128)]


class DeviceData(OpenDocument, frozen=True):
    """What a device says of itself with any `cookwala.device.*` event."""

    x_boot: Boot | None = field(default=None, name="x-aboyeur-boot")
    x_fault: Word | None = field(default=None, name="x-aboyeur-fault")
    """With `cookwala.device.fault`: which part is broken."""


class Heartbeat(OpenDocument, frozen=True):
    """A sign of life (ruling E1). Without an interval the hub assumes its own."""

    interval_s: Annotated[float, Meta(ge=1, le=300)] | None = field(default=None, name="intervalS")
    x_boot: Boot | None = field(default=None, name="x-aboyeur-boot")
    counter: Annotated[int, Meta(ge=0)] | None = None


class PresenceData(OpenDocument, frozen=True):
    """That a person is there, as the hub tells it."""

    present: bool | None = None
    by: Name | None = None
    x_nonce: Name | None = field(default=None, name="x-aboyeur-nonce")


class Actor(Document, frozen=True):
    """Somebody or something in the kitchen."""

    kind: Literal["human", "robot", "appliance", "agent", "hub", "service", "sensor"]
    id: Name
    name: UntrustedText | None = None
    vendor: Name | None = None
    model: Name | None = None


class SafetyData(Document, frozen=True):
    """What a device noticed and already did. It reports; nothing is protected by its arrival (Core §6.3)."""

    level: Literal["warning", "alarm", "emergency"]
    action: Literal["none", "pause_all", "heat_off_all", "abort_session", "evacuate"]
    zone: Name | None = None
    reading: dict[str, Any] | None = None
    detected_by: Actor | None = None
    expected: bool | None = None
    x_boot: Boot | None = field(default=None, name="x-aboyeur-boot")
    x_limit: Word | None = field(default=None, name="x-aboyeur-limit")
    """Which of the device's limits fired, or is over."""
    x_cleared: Word | None = field(default=None, name="x-aboyeur-cleared")
    """With `cookwala.safety.cleared`: the type that is over; without it all of the device's alarms are."""


class NotifyAction(Document, frozen=True):
    """An answer that a person may choose."""

    id: Name | None = None
    label: LangMap | None = None


class NotifyData(Document, frozen=True):
    """Something to tell people, and what they may answer."""

    audience: list[Name]
    urgency: Literal["info", "action_needed", "time_critical", "emergency"]
    message: LangMap
    actions: list[NotifyAction] | None = None
    channels: list[Name] | None = None
    expires_at: DateTime | None = None
    relates_to: Name | None = None
    x_nonce: Name | None = field(default=None, name="x-aboyeur-nonce")
    """Names a device's presence question; the answer must carry it (ruling P2)."""

    def __post_init__(self) -> None:
        """Refuse a time that has the form of one and is none (30 February).

        Raises:
            ValueError: it is none.
        """
        if self.expires_at is not None:
            parse_date_time(self.expires_at)


class TelemetryReading(Document, frozen=True):
    """One value of one sensor."""

    sensor: Name
    value: Any
    unit: Name | None = None
    target: Name | None = None
    confidence: float | None = None


class TelemetryData(Document, frozen=True):
    """Readings that stand for themselves."""

    readings: list[TelemetryReading]
    task_id: Name | None = None


class TaskData(Document, frozen=True):
    """Where a task stands."""

    task_id: Name
    state: Name
    node_id: Name | None = None
    recipe_id: Name | None = None
    assignee: Actor | None = None
    progress: float | None = None
    message: LangMap | None = None
    reason: UntrustedText | None = None


class InventoryItem(OpenDocument, frozen=True):
    """Something in store. The public schema leaves items open: these members are ours, the rest is kept."""

    name: UntrustedText | None = None
    ingredient_id: Name | None = None
    allergens: list[Name] | None = None

    json_schema: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"required": [name], "properties": {name: {"not": {"const": None}}}}
            for name in ("name", "ingredientId", "allergens")
        ]
    }

    def __post_init__(self) -> None:
        """Refuse an item that says nothing of what it is.

        Raises:
            ValueError: it does not.
        """
        if self.name is None and self.ingredient_id is None and self.allergens is None:
            raise ValueError("an item names itself, its ingredientId or its allergens")


class InventoryData(Document, frozen=True):
    """What is in store, the whole of it."""

    items: list[InventoryItem] | None = None
    storage: Name | None = None


class TeamBid(Document, frozen=True):
    """What a helper offers to do, and at what cost."""

    actor_id: Name | None = None
    can_do: list[Name] | None = None
    eta_s: float | None = None
    duration_s: float | None = None
    battery_after_pct: float | None = None
    energy_wh: float | None = None
    confidence: float | None = None
    constraints: list[Name] | None = None


class TeamAward(Document, frozen=True):
    """Who does which tasks."""

    actor_id: Name | None = None
    tasks: list[Name] | None = None


class TeamData(Document, frozen=True):
    """A call for proposals, an answer to one, or its end."""

    cfp_id: Name | None = None
    session_id: Name | None = None
    tasks: list[Name] | None = None
    sender: Name | None = field(default=None, name="from")
    bid: TeamBid | None = None
    award: TeamAward | None = None
    deadline: DateTime | None = None


def register_events(registry: Registry) -> None:
    """Enter every type of the public catalogue except the executions'.

    Raises:
        ValueError: one of them is registered already.
    """
    for event_type in _catalogue():
        registry.register(event_type)


_DATA: Final[dict[str, type]] = {
    "safety": SafetyData,
    "task": TaskData,
    "telemetry": TelemetryData,
    "inventory": InventoryData,
    "notify": NotifyData,
    "team": TeamData,
    "device": DeviceData,
    "device.heartbeat": Heartbeat,
    "human.presence": PresenceData,
}
"""The data of a type, by its name without `cookwala.`, else by its category; every other is any object."""

_NAMES: Final[dict[EventClass, dict[str, str]]] = {
    "telemetry": {
        "device": "heartbeat battery",
        "telemetry": "reading",
    },
    "effect": {
        "device": "online offline fault capabilities_changed",
        "handoff": "proposed ready acknowledged completed refused",
        "human": "presence confirmation override",
        "inventory": "changed low expiring reserved",
        "lease": "requested granted released revoked",
        "notify": "request delivered acknowledged",
        "recall": "published",
        "safety": "estop smoke co gas_leak fire overtemp boilover spill intrusion_zone child_or_pet_in_zone "
        "unattended_heat water_leak power_loss cleared limit_fired",
    },
    "logged": {
        "advice": "requested answered applied",
        "ccp": "recorded failed",
        "flow": "started step completed failed",
        "market": "quote_requested quote offer_changed",
        "mission": "assessment conflict reconciled budget_threshold degradation adaptation decision closed",
        "mode": "changed",
        "order": "intent_created approval_required placed status delivered",
        "policy": "evaluated acknowledged",
        "relief": "need_opened need_updated pledge_offered allocated dispatched delivered impact "
        "surplus_available",
        "session": "created planned state_changed completed aborted",
        "task": "assigned started progress condition_met input_required completed failed reassigned",
        "team": "cfp bid award decline plan replan",
    },
}

_NEVER_FROM_A_DEVICE: Final = ("human.", "handoff.acknowledged", "lease.granted", "recall.", "policy.")
_FROM_A_PERSON: Final = (
    "human.",
    "handoff.acknowledged",
    "handoff.refused",
    "notify.acknowledged",
    "policy.acknowledged",
    "safety.cleared",
    "safety.estop",
)


def _catalogue() -> Iterator[EventType]:
    for event_class, categories in _NAMES.items():
        for category, names in categories.items():
            for name in names.split():
                short = f"{category}.{name}"
                data = _DATA.get(short, _DATA.get(category))
                yield EventType(f"cookwala.{short}", event_class, data, _senders(short))


def _senders(short: str) -> frozenset[Sender]:
    """Who may send a type (ruling E2). The hub may send any: it speaks for people and for the kitchen."""
    absent: set[Sender] = set()
    if short.startswith(_NEVER_FROM_A_DEVICE):
        absent.add("device")
    if not short.startswith(_FROM_A_PERSON):
        absent.add("person")
    return ANYBODY - absent
