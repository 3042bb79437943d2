"""The documents exchanged with a device (Core §2, §7): requests, statuses, stops, logs.

`x-aboyeur-…` members are ours; every other `x-` member is read over.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from events import texts
from events.documents import Document
from events.envelope import MAX_SEQ
from events.texts import DetailText, Name, ReasonText, UntrustedText
from events.times import DATE_TIME_PATTERN
from mandates.documents import AgentMandate, Signature

CORE_VERSION: Final = "0.2.0"

DateTime = Annotated[str, Meta(pattern=DATE_TIME_PATTERN)]
CoreVersion = Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$(?!\n)")]
Id = texts.Id
GlobalRef = texts.GlobalRef
Hash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
VocabId = Annotated[str, Meta(max_length=128, pattern=r"^(cw|x-[a-z0-9-]+)\.[a-z0-9_.-]+$(?!\n)")]
NodeId = Annotated[str, Meta(max_length=128)]
Unit = Literal[
    "g", "kg", "mg", "ml", "l", "tsp", "tbsp", "cup", "pinch", "dash", "pcs",
    "degC", "W", "kW", "mm", "cm", "rpm", "Pa", "kPa", "pct", "s",
]  # fmt: skip
State = Literal[
    "accepted", "refused", "preparing", "running", "paused",
    "needs_human", "stopping", "stopped", "completed", "failed",
]  # fmt: skip
RefusalReason = Literal[
    "unsupported_version",
    "recipe_hash_mismatch",
    "recipe_recalled",
    "missing_equipment",
    "missing_capability",
    "missing_sensor_no_fallback",
    "envelope_out_of_range",
    "safety_limit",
    "allergen_block",
    "not_authorized",
    "mandate_scope",
    "needs_human_present",
    "busy",
]
VerifiedBy = Literal["sensor", "model", "time", "human"]


class PresenceWord(Document, frozen=True):
    """A person's word that she is there, as the hub passes it to a device (ruling P2)."""

    by: Name
    said_at: DateTime
    age_s: Annotated[float, Meta(ge=0)]
    nonce: Name | None = None
    """The question that this word answers; a word without one counts only with a start."""


class ExecuteRequest(Document, frozen=True):
    """Asks an executor to cook one recipe revision (Core §2, §7)."""

    core: CoreVersion
    kind: Literal["ExecuteRequest"]
    id: Id
    recipe: GlobalRef
    recipe_hash: Hash
    requested_by: Annotated[str, Meta(min_length=1, max_length=200)]
    idempotency_key: Annotated[str, Meta(min_length=8, max_length=128)]
    servings: Annotated[float, Meta(gt=0)] | None = None
    serve_by: DateTime | None = None
    mandate: AgentMandate | None = None
    allergen_blocks: list[Name] | None = None
    operating_mode: Name | None = None
    x_presence: PresenceWord | None = field(default=None, name="x-aboyeur-presence")
    """What the hub last heard of a person being there; only a hub sends it."""
    x_human_present: bool | None = field(default=None, name="x-hub-human-present")
    """The sample client's claim; counts only under a person's token (ruling P2)."""


class Reading(Document, frozen=True):
    """One measured or estimated value."""

    sensor: VocabId
    value: float
    unit: Unit
    at: DateTime | None = None
    estimated: bool | None = None


class Step(Document, frozen=True):
    """The step an execution is at."""

    node: NodeId | None = None
    op: VocabId | None = None
    started_at: DateTime | None = None
    progress: Annotated[float, Meta(ge=0, le=1)] | None = None
    verified_by: VerifiedBy | None = None
    readings: list[Reading] | None = None


class Refusal(Document, frozen=True):
    """Why nothing is cooked."""

    reason: RefusalReason
    node: NodeId | None = None
    detail: DetailText | None = None


class HumanNeeded(Document, frozen=True):
    """What an execution waits for a person for."""

    why: ReasonText | None = None
    by_when: DateTime | None = None


class ExecutionStatus(Document, frozen=True):
    """A device's status of one execution (Core §7). `seq` rises by one with every change."""

    core: CoreVersion
    kind: Literal["ExecutionStatus"]
    id: Id
    request: Id
    state: State
    seq: Annotated[int, Meta(ge=0, le=MAX_SEQ)]
    updated_at: DateTime
    step: Step | None = None
    eta: DateTime | None = None
    refusal: Refusal | None = None
    human_needed: HumanNeeded | None = None
    x_boot: Annotated[str, Meta(min_length=1, max_length=128)] | None = field(
        default=None, name="x-aboyeur-boot"
    )
    """The device's boot id; `seq` is ordered within one boot."""


class StopRequest(Document, frozen=True):
    """Asks an executor to stop. Never needs authorization (Core §6.2)."""

    core: CoreVersion
    kind: Literal["StopRequest"]
    execution: Id
    requested_by: Name
    reason: ReasonText | None = None


class LogDevice(Document, frozen=True):
    vendor: Name
    model: Name
    firmware: Name | None = None
    capabilities_hash: Hash | None = None
    safety_limits: Name | None = None


class LogSummary(Document, frozen=True):
    sensor: VocabId
    unit: Unit
    min: float | None = None
    max: float | None = None
    end: float | None = None
    estimated: bool | None = None


class Deviation(Document, frozen=True):
    kind: Literal[
        "substitution",
        "extended_time",
        "shortened_time",
        "temperature_excursion",
        "skipped_optional",
        "human_took_over",
        "other",
    ]
    detail: ReasonText | None = None


class LogStep(Document, frozen=True):
    node: NodeId
    op: VocabId
    verified_by: VerifiedBy
    envelope_ok: bool
    started_at: DateTime | None = None
    ended_at: DateTime | None = None
    summary: list[LogSummary] | None = None
    deviation: Deviation | None = None


class SafetyEvent(Document, frozen=True):
    at: DateTime
    limit: Name
    action: Literal["refuse_start", "cut_heat", "stop_motion", "stop_all", "ask_human", "alert"]
    node: NodeId | None = None


class Intervention(Document, frozen=True):
    kind: Literal["confirm", "assist", "take_over", "stop", "refill", "other"]
    at: DateTime | None = None
    minutes: Annotated[float, Meta(ge=0)] | None = None


class Rating(Document, frozen=True):
    score: Annotated[int, Meta(ge=1, le=5)] | None = None
    comment: UntrustedText | None = None


class Consent(Document, frozen=True):
    dataset: Literal["none", "research_only", "open"]
    granted_by: Name | None = None
    granted_at: DateTime | None = None
    withdrawable: Literal[True] | None = None


class LogPrivacy(Document, frozen=True):
    personal_data: Literal["none"]
    time_precision: Literal["minute", "hour", "day"] | None = None


class ExecutionLog(Document, frozen=True):
    """What happened when a recipe was cooked, written and signed by the device (Core §2, §8)."""

    core: CoreVersion
    kind: Literal["ExecutionLog"]
    id: Id
    recipe: GlobalRef
    recipe_hash: Hash
    device: LogDevice
    started_at: DateTime
    outcome: Literal["served", "partial", "aborted_safe", "refused", "failed"]
    steps: list[LogStep]
    consent: Consent
    privacy: LogPrivacy
    ended_at: DateTime | None = None
    servings: Annotated[float, Meta(ge=0)] | None = None
    safety_events: list[SafetyEvent] | None = None
    human_interventions: list[Intervention] | None = None
    energy_kwh: Annotated[float, Meta(ge=0)] | None = field(default=None, name="energyKwh")
    waste_g: Annotated[float, Meta(ge=0)] | None = field(default=None, name="wasteG")
    rating: Rating | None = None
    signature: Signature | None = None
    x_execution: Name | None = field(default=None, name="x-aboyeur-execution")
    """The device's execution this log is bound to."""
    x_request: Name | None = field(default=None, name="x-aboyeur-request")
    """The ExecuteRequest id this log is bound to."""
