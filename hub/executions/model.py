"""What a hub remembers of an execution and of each attempt at a device."""

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from adapters.documents import ExecutionStatus, HumanNeeded, Refusal, State, Step
from adapters.states import FINAL

Phase = Literal["to_send", "sending", "unknown", "answered", "closed"]
"""`to_send`: certainly not at the device. `sending`: may be there. `unknown`: may be there, and only a person
goes on. `answered`: the device has it. `closed`: it can never start there any more."""

WaitingReason = Literal[
    "device_lost", "start_fate_unknown", "start_not_delivered", "device_forgot", "device_disagrees"
]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of what stands in the store as JSON."""


READINGS_MOST: Final = 32
"""Of one step; what a device measures beyond is its own."""


def within_bounds(step: Step | None) -> Step | None:
    """A step with no more readings than a hub remembers and publishes."""
    if step is None or step.readings is None or len(step.readings) <= READINGS_MOST:
        return step
    return replace(step, readings=step.readings[:READINGS_MOST])


class DeviceReport(Record, frozen=True):
    """What a device says of one of its executions, from an event or from a read."""

    state: State
    seq: int
    boot: str = ""
    step: Step | None = None
    eta: str | None = None
    refusal: Refusal | None = None
    human_needed: HumanNeeded | None = None

    @classmethod
    def of(cls, status: ExecutionStatus) -> "DeviceReport":
        """What a status says; without a boot the empty one."""
        return cls(
            state=status.state,
            seq=status.seq,
            boot=status.x_boot or "",
            step=within_bounds(status.step),
            eta=status.eta,
            refusal=status.refusal,
            human_needed=status.human_needed,
        )


class Attempt(Record, frozen=True):
    """One try to have a dish cooked by one device."""

    number: int
    device: str
    request: str
    """The id of the ExecuteRequest that the device gets."""
    key: str
    phase: Phase = "to_send"
    device_execution: str | None = None
    state: State | None = None
    seq: int = -1
    boot: str = ""


class Stop(Record, frozen=True):
    """A stop on its way (ruling X1)."""

    phase: Literal["asked", "sent", "landed"]
    by: str


class Waiting(Record, frozen=True):
    """Work that cannot go on without a person, beyond Core's `needs_human`."""

    reason: WaitingReason
    why: str
    what: str


class LogVerdict(Record, frozen=True):
    """How the device's log of the last attempt was judged."""

    verdict: str
    outcome: str | None = None
    signed_at_unprotected: bool = False


class Execution(Record, frozen=True):
    """A hub's execution: its own id, its own seq, Core's states only (DESIGN §3)."""

    id: str
    request: str
    principal: str
    requested_by: str
    recipe: str
    recipe_hash: str
    state: State
    updated_at: str
    seq: int = 0
    attempts: tuple[Attempt, ...] = ()
    step: Step | None = None
    eta: str | None = None
    refusal: Refusal | None = None
    human_needed: HumanNeeded | None = None
    stop: Stop | None = None
    waiting: Waiting | None = None
    log: LogVerdict | None = None

    @property
    def final(self) -> bool:
        return self.state in FINAL

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt."""
        return self.attempts[-1] if self.attempts else None
