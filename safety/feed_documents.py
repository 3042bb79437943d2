"""What catalogues spread and collect: recalls and incident reports (Core §6.8, §6.9)."""

from datetime import date
from typing import Annotated, Literal

from msgspec import Meta

from events.documents import Document
from events.texts import UNTRUSTED, Date, GlobalRef, Id, Name, UntrustedText
from mandates.documents import Signature
from safety.documents import CoreVersion, DateTime, Hash, Severity, VocabId

RecallText = Annotated[str, Meta(max_length=1000, extra_json_schema={UNTRUSTED: True})]
Factor = Literal[
    "sensor_missing",
    "sensor_fault",
    "envelope_unclear",
    "recipe_error",
    "agent_instruction",
    "human_override",
    "network",
    "power",
    "other",
]


class RecallTarget(Document, frozen=True):
    """A recalled document: one revision by its hash, or all of them."""

    ref: GlobalRef
    hash: Hash | None = None
    all_revisions: bool | None = None


class Recall(Document, frozen=True):
    """Withdraws recipes or extensions; always signed (Core §6.8)."""

    core: CoreVersion
    kind: Literal["Recall"]
    id: Id
    issued_at: DateTime
    issuer: Name
    targets: Annotated[list[RecallTarget], Meta(min_length=1)]
    severity: Severity
    reason: Literal["food_safety", "allergen", "device_safety", "security", "legal", "quality"]
    action: Literal["block", "block_and_stop_running", "warn"]
    signature: Signature
    replacement: GlobalRef | None = None
    detail: RecallText | None = None


class IncidentReport(Document, frozen=True):
    """What went wrong or nearly did, without a name and with no more of the time than its day (Core §6.9)."""

    core: CoreVersion
    kind: Literal["IncidentReport"]
    id: Id
    date: Date
    category: Name
    severity: Severity
    description: UntrustedText
    outcome: (
        Literal["near_miss", "minor_injury", "injury", "property_damage", "illness_suspected", "none"] | None
    ) = None
    op: VocabId | None = None
    device_model: Name | None = None
    recipe: GlobalRef | None = None
    safety_limits_fired: list[Name] | None = None
    contributing_factors: list[Factor] | None = None

    def __post_init__(self) -> None:
        try:
            date.fromisoformat(self.date)
        except ValueError:
            raise ValueError("its date is in no calendar") from None
