"""What stands in a hub's event log: every fact and every decision, in the order in which it was committed.

The projections are these entries folded; nothing changes a projection but an entry (DESIGN §6, §9). A
document that others signed travels inside as the very text it came as.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from adapters.documents import ExecuteRequest, Refusal
from hub.executions.model import DeviceReport
from mandates.documents import KeyRecord

Role = Literal["owner", "person"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="entry"):
    """Base of an entry's payload; the tag is the log row's `kind`."""


class PersonEnrolled(Entry, frozen=True, tag="person.enrolled"):
    id: str
    role: Role
    token_hash: str
    keys: list[KeyRecord] = []
    by: str | None = None
    """`None` for the first owner, who enrolled herself."""


class PersonRemoved(Entry, frozen=True, tag="person.removed"):
    id: str
    by: str


class MandateRegistered(Entry, frozen=True, tag="mandate.registered"):
    hash: str
    principal: str
    agent: str
    expires: str
    token_hash: str
    document: str
    by: str


class MandateRevoked(Entry, frozen=True, tag="mandate.revoked"):
    hash: str
    by: str


class RecipeAdded(Entry, frozen=True, tag="recipe.added"):
    hash: str
    id: str
    document: str
    by: str


class DeviceRegistered(Entry, frozen=True, tag="device.registered"):
    name: str
    url: str
    token_hash: str
    broker_hash: str
    salt: str
    """What the hub's own token for the device is derived from."""
    capabilities: str
    safety_limits: str
    by: str


class DeviceRemoved(Entry, frozen=True, tag="device.removed"):
    name: str
    by: str


class EventTaken(Entry, frozen=True, tag="event"):
    """A device's event, accepted in arrival order; `event` is the very text of the CloudEvent."""

    device: str
    event: msgspec.Raw


class TelemetrySampled(Entry, frozen=True, tag="telemetry.sampled"):
    """One of many readings of a device, kept as a trace; `event` is the very text of the CloudEvent."""

    device: str
    event: msgspec.Raw


class ExecutionAsked(Entry, frozen=True, tag="execution.asked"):
    """A request was accepted for `device`, or refused by the hub."""

    execution: str
    request: str
    """The caller's ExecuteRequest as it came."""
    request_id: str
    principal: str
    requested_by: str
    recipe: str
    recipe_hash: str
    key: str
    body_hash: str
    device: str | None = None
    forward: ExecuteRequest | None = None
    """What the device gets, built from understood fields only; `None` where the hub refused."""
    refusal: Refusal | None = None


class StartSending(Entry, frozen=True, tag="start.sending"):
    """Committed before the first try: from here on the device may have the start."""

    execution: str
    attempt: int


class StartRefused(Entry, frozen=True, tag="start.refused"):
    execution: str
    attempt: int
    refusal: Refusal


class StartGivenUp(Entry, frozen=True, tag="start.given_up"):
    execution: str
    attempt: int
    delivered: bool
    """Whether it may have been delivered."""
    detail: str


class DeviceRead(Entry, frozen=True, tag="device.read"):
    """A device's own status of one execution, as an answer or on request; `None` where it knows none."""

    device: str
    ref: str
    why: Annotated[str, Meta(max_length=40)]
    device_execution: str | None = None
    report: DeviceReport | None = None


class StopAsked(Entry, frozen=True, tag="stop.asked"):
    execution: str
    by: str
    reason: str | None = None


class StopSent(Entry, frozen=True, tag="stop.sent"):
    execution: str


class StopLanded(Entry, frozen=True, tag="stop.landed"):
    execution: str


class ResumeAsked(Entry, frozen=True, tag="resume.asked"):
    execution: str
    by: str


class ResumeAnswered(Entry, frozen=True, tag="resume.answered"):
    """A resume that carried a key was taken by the device; who repeats it gets the same answer."""

    execution: str
    by: str
    key: str
    body_hash: str


class PersonPresent(Entry, frozen=True, tag="person.present"):
    """A person said that she is there (ruling P2)."""

    id: str


class QuestionClosed(Entry, frozen=True, tag="question.closed"):
    """A device's question was answered by a person, or came to nothing."""

    device: str
    nonce: str
    outcome: Literal["answered", "too_late", "unreachable"]
    by: str | None = None


class DeviceLife(Entry, frozen=True, tag="device.life"):
    """A transition in what is heard of a device: late, lost, returned."""

    device: str
    life: Literal["late", "lost", "returned"]


class DeviceRhythm(Entry, frozen=True, tag="device.rhythm"):
    """How often a device shows that it lives, where that is not as it was."""

    device: str
    interval_s: float


class ConditionEnded(Entry, frozen=True, tag="condition.ended"):
    """A person ended an alarm or a fault."""

    device: str
    type: str
    by: str


class LogCollected(Entry, frozen=True, tag="log.collected"):
    """A device's log of an attempt, byte for byte, and the verdict on it."""

    execution: str
    attempt: int
    verdict: str
    document: str | None = None
    outcome: str | None = None
    signed_at_unprotected: bool = False
    """Whether the signature's form leaves its time open to anyone's pen (ruling T3)."""


class RecallLearned(Entry, frozen=True, tag="recall.learned"):
    """A recall of a configured catalogue, verified when it came; nothing ever takes it back (ruling T6)."""

    catalogue: str
    hash: str
    document: str
    key: KeyRecord
    """What it was verified with."""


class IncidentQueued(Entry, frozen=True, tag="incident.queued"):
    """A person read an anonymous incident report and let it go to these catalogues."""

    id: str
    document: str
    catalogues: list[str]
    by: str


class IncidentAccepted(Entry, frozen=True, tag="incident.accepted"):
    """A catalogue took an incident report."""

    id: str
    catalogue: str


class DamageAccepted(Entry, frozen=True, tag="damage.accepted"):
    """A person took note that the log had been shortened or changed, and went on."""

    by: str
    findings: list[str]


Payload = (
    PersonEnrolled
    | PersonRemoved
    | MandateRegistered
    | MandateRevoked
    | RecipeAdded
    | DeviceRegistered
    | DeviceRemoved
    | EventTaken
    | TelemetrySampled
    | ExecutionAsked
    | StartSending
    | StartRefused
    | StartGivenUp
    | DeviceRead
    | StopAsked
    | StopSent
    | StopLanded
    | ResumeAsked
    | ResumeAnswered
    | PersonPresent
    | QuestionClosed
    | DeviceLife
    | DeviceRhythm
    | ConditionEnded
    | LogCollected
    | RecallLearned
    | IncidentQueued
    | IncidentAccepted
    | DamageAccepted
)

_DECODER: msgspec.json.Decoder[Payload] = msgspec.json.Decoder(Payload)


def kind_of(payload: Payload) -> str:
    """The log row's `kind` of a payload."""
    tag = type(payload).__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def encode(payload: Payload) -> bytes:
    """A payload as it stands in the log."""
    return msgspec.json.encode(payload)


def decode(body: bytes) -> Payload:
    """A payload from the log.

    Raises:
        msgspec.MsgspecError: not one of this version's entries.
    """
    return _DECODER.decode(body)
