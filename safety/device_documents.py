"""What a device says of itself: its capabilities and its safety limits (Core §2, §6.1).

Held as strictly as the documents of cooking, and travelling like them as the bytes they came in.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from events.catalogue import Actor
from events.documents import Document
from events.texts import Name, ReasonText, ShortText, UntrustedText
from events.times import parse_duration_s
from mandates.documents import KeyRecord, Signature
from safety.documents import CoreVersion, Duration, FormatVersion, Loose, Unit, Version, VocabId

# --- Capabilities -----------------------------------------------------------------------------------------


class DeclaredOp(Document, frozen=True):
    """An operation a device says it can perform."""

    op: VocabId
    params: Loose | None = None
    max_mass_g: float | None = None
    ingredient_classes: list[Name] | None = None
    reliability: Annotated[float, Meta(ge=0, le=1)] | None = None
    needs_human_for: list[Name] | None = None
    skill: Name | None = None


class Heat(Document, frozen=True):
    """A source of heat."""

    id: Name
    class_: VocabId = field(name="class")
    max_temp_c: float | None = None
    power_w: float | None = None
    modes: list[Name] | None = None
    closed_loop_temp: bool | None = None
    remote_start_allowed: bool | None = None


class Calibration(Document, frozen=True):
    """A sensor's last calibration.

    `valid_until` is read where it is used: a date nobody can read makes the sensor count for nothing, it
    does not make the whole document unreadable.
    """

    last_at: Name | None = None
    valid_until: Name | None = None
    by: ShortText | None = None
    method: ShortText | None = None
    certificate: ReasonText | None = None


class Sensor(Document, frozen=True):
    """A sensor a device has, with its health by its own word."""

    sensor: VocabId
    accuracy: float | None = None
    unit: Unit | None = None
    rate_hz: float | None = None
    vision_cues: list[Name] | None = None
    state: Literal["ok", "degraded", "fault", "unknown"] | None = None
    calibration: Calibration | None = None


class CapabilitySet(Document, frozen=True):
    """What a device can do."""

    ops: list[DeclaredOp] | None = None
    heat: list[Heat] | None = None
    vessels: list[Loose] | None = None
    sensors: list[Sensor] | None = None
    dispensers: list[Loose] | None = None
    manipulation: Loose | None = None
    inventory: Loose | None = None
    notify: Loose | None = None
    languages: list[Name] | None = None


class DeviceSafety(Document, frozen=True):
    """What a device says of its own safety: claims, and treated as claims."""

    certifications: list[Loose]
    presence_detection: bool
    emergency_stop: Literal["physical", "remote", "both", "none"]
    unattended_ops: list[Name] | None = None
    policy_packs: list[Name] | None = None
    min_verification_level: Loose | None = None


class Interfaces(Document, frozen=True):
    """How a device is reached, by its own word. The hub keeps to the address it was registered with."""

    cookwala_http: Name | None = None
    mqtt: Loose | None = None
    matter: Loose | None = None
    ros2: Loose | None = None
    a2a: Name | None = None
    mcp: Name | None = None
    home_assistant: Name | None = None
    vendor_cloud: Name | None = None


class Capabilities(Document, frozen=True):
    """What a participant of the kitchen can do (Core §2)."""

    cookwala: FormatVersion
    actor: Actor
    roles: Annotated[
        list[
            Literal[
                "executor",
                "appliance",
                "sensor",
                "inventory",
                "orderer",
                "notifier",
                "safety_monitor",
                "planner",
                "hub",
                "display",
                "voice",
            ]
        ],
        Meta(min_length=1),
    ]
    capabilities: CapabilitySet
    safety: DeviceSafety
    interfaces: Interfaces
    firmware: Name | None = None
    location: Loose | None = None
    signature: Signature | None = None
    meta: Loose | None = None
    current_limitations: list[Loose] | None = None
    x_keys: list[KeyRecord] | None = field(default=None, name="x-aboyeur-keys")
    """The device's keys; the public schema has no member for them (ruling D8)."""
    x_start_dedup_h: Annotated[int, Meta(ge=0, le=8760)] | None = field(
        default=None, name="x-aboyeur-start-dedup-h"
    )
    """For how many hours, and across a reboot, the device knows a start's idempotency key again."""


# --- SafetyLimits -----------------------------------------------------------------------------------------

LimitAction = Literal["refuse_start", "cut_heat", "stop_motion", "stop_all", "ask_human", "alert"]
DRASTIC_FIRST: Final[tuple[LimitAction, ...]] = (
    "stop_all",
    "stop_motion",
    "cut_heat",
    "refuse_start",
    "ask_human",
    "alert",
)


class AppliesTo(Document, frozen=True):
    """Where a limit holds; what is not named narrows nothing."""

    medium: Name | None = None
    ops: list[VocabId] | None = None
    food_class: Name | None = None


class SafetyLimit(Document, frozen=True):
    """One limit; `max` is °C for `max_temp` and kPa for `pressure`."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9._-]+$(?!\n)")]
    kind: Literal[
        "max_temp",
        "min_core_temp",
        "time_temp",
        "allergen_block",
        "unattended",
        "pressure",
        "smoke_or_fire",
        "stop",
        "untrusted_input",
    ]
    action: LimitAction
    source: ShortText
    applies_to: AppliesTo | None = None
    min: float | None = None
    max: float | None = None
    unit: Literal["degC", "kPa", "s", "min", "h"] | None = None
    hold_for: Duration | None = None
    message: ShortText | None = None

    @property
    def hold_s(self) -> float:
        """For how many seconds it must be broken before it fires; one that nobody can count is none."""
        try:
            return 0.0 if self.hold_for is None else parse_duration_s(self.hold_for)
        except ValueError:
            return 0.0

    def governs(self, op: str | None, medium: str | None) -> bool:
        """Whether the limit holds for `op` in `medium` (either `None` where it is not known).

        Not knowing never exempts: an unknown operation or medium, and a food class (which nobody measures),
        count as a match.
        """
        scope = self.applies_to
        if scope is None:
            return True
        op_matches = not scope.ops or op is None or op in scope.ops
        medium_matches = scope.medium is None or medium is None or medium == scope.medium
        return op_matches and medium_matches


class SafetyLimits(Document, frozen=True):
    """A pack of limits that a device enforces on itself (Core §6.1)."""

    core: CoreVersion
    kind: Literal["SafetyLimits"]
    id: Name
    version: Version
    limits: Annotated[list[SafetyLimit], Meta(min_length=1)]
    disclaimer: UntrustedText
    status: Literal["draft", "reviewed", "adopted"] | None = None
    reviewed_by: list[Name] | None = None
