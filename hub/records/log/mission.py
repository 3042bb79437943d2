"""What stands in a Mission's event log, and which states may follow each other (Mission profile).

The wire form is the public one. A log is the truth and the Mission a reading of it, so what may stand in a
log is decided here and not by whoever reads it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from events.documents import Document
from events.texts import Name, UntrustedText
from mandates.documents import DateTime

MissionState = Literal[
    "draft",
    "open",
    "enriching",
    "ready",
    "committed",
    "executing",
    "paused",
    "degraded",
    "closing",
    "closed",
    "failed",
    "cancelled",
]
MissionRole = Literal["holder", "initiator", "executor", "arbiter"]

INITIAL: Final[MissionState] = "draft"
FOLLOWING: Final[Mapping[MissionState, tuple[MissionState, ...]]] = MappingProxyType(
    {
        "draft": ("open", "cancelled"),
        "open": ("enriching", "ready", "cancelled"),
        "enriching": ("ready", "open", "cancelled", "failed"),
        "ready": ("committed", "enriching", "cancelled"),
        "committed": ("executing", "cancelled", "failed"),
        "executing": ("paused", "degraded", "closing", "failed"),
        "paused": ("executing", "degraded", "closing", "cancelled", "failed"),
        "degraded": ("executing", "paused", "closing", "failed"),
        "closing": ("closed", "failed"),
        "closed": (),
        "failed": (),
        "cancelled": (),
    }
)
_ANYONE: Final[frozenset[MissionRole]] = frozenset({"holder", "initiator", "executor", "arbiter"})
ROLES_INTO: Final[Mapping[MissionState, frozenset[MissionRole]]] = MappingProxyType(
    {
        "open": _ANYONE,
        "enriching": _ANYONE,
        "ready": _ANYONE,
        "committed": frozenset[MissionRole]({"holder"}),
        "executing": _ANYONE,
        "paused": _ANYONE - {"arbiter"},
        "degraded": frozenset[MissionRole]({"holder", "executor"}),
        "closing": _ANYONE,
        "closed": frozenset[MissionRole]({"holder"}),
        "failed": frozenset[MissionRole]({"holder", "executor"}),
        "cancelled": frozenset[MissionRole]({"holder", "initiator"}),
    }
)
"""Who may lead a Mission into a state; nobody leads one back into `draft`."""

Hash = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$(?!\n)")]
GENESIS: Final = "genesis"
"""What stands as `prev` in the first entry."""


class Transition(Document, frozen=True):
    """A step from one state to another."""

    from_: MissionState = field(name="from")
    to: MissionState


class MissionEvent(Document, frozen=True):
    """One entry of a Mission's event log. Signatures are judged as they travelled, not as members here."""

    mission: Name
    seq: Annotated[int, Meta(ge=0)]
    at: DateTime
    actor: Name
    type: Literal[
        "created",
        "facet_added",
        "view_granted",
        "contribution_offered",
        "contribution_accepted",
        "contribution_rejected",
        "committed",
        "progress",
        "fulfilled",
        "failed",
        "withdrawn",
        "compensated",
        "decision",
        "escalated",
        "approved",
        "state_changed",
        "closed",
        "custom",
        "assessment",
        "reconciled",
    ]
    prev: Annotated[str, Meta(pattern=r"^(genesis|sha256:[0-9a-f]{64})$(?!\n)")]
    hash: Hash
    transition: Transition | None = None
    payload: dict[str, Any] | None = None
    payload_digest: Hash | None = None
    signature: dict[str, Any] | None = None
    proposed_by: dict[str, Any] | None = None


class Witness(Document, frozen=True):
    """A countersignature under a checkpoint."""

    actor: Name
    signature: dict[str, Any]
    at: DateTime | None = None
    receipt: UntrustedText | None = None


class Checkpoint(Document, frozen=True):
    """The sequencer's word of where a log stood, with those who countersigned it."""

    mission: Name
    seq: Annotated[int, Meta(ge=0)]
    head: Hash
    at: DateTime
    sequencer: Name
    signature: dict[str, Any]
    witnesses: tuple[Witness, ...] = ()


def may_follow(before: str, after: str, role: str | None = None) -> bool:
    """Whether a Mission may go from `before` to `after`; with `role`, whether an actor of that role may lead.

    Names that are no state or no role are never allowed.
    """
    follows = any(before == state and after in following for state, following in FOLLOWING.items())
    leads = role is None or any(after == state and role in roles for state, roles in ROLES_INTO.items())
    return follows and leads
