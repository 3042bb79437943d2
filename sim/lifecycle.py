"""The life of one execution at a device: Core's states, and one seq for every change (Core §7)."""

from dataclasses import dataclass, replace
from typing import Literal

from adapters.documents import CORE_VERSION, ExecutionStatus, HumanNeeded, Refusal, State, Step
from adapters.states import FINAL, TRANSITIONS, shortest_path

ChangeKind = Literal["accepted", "refused", "state_changed", "step", "completed"]


class IllegalTransition(Exception):
    """A change that Core does not know; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of seq: what the device now says of itself, and as which event it says so."""

    kind: ChangeKind
    life: "Life"

    @property
    def event_type(self) -> str:
        """The CloudEvents type that reports this change."""
        return f"cookwala.execution.{self.kind}"


@dataclass(frozen=True, slots=True)
class Life:
    """An execution as it stands. Immutable: every change makes the next one."""

    execution: str
    request: str
    boot: str
    state: State
    seq: int
    updated_at: str
    step: Step | None = None
    refusal: Refusal | None = None
    human_needed: HumanNeeded | None = None

    @property
    def final(self) -> bool:
        """Whether nothing can change any more."""
        return self.state in FINAL

    def status(self) -> ExecutionStatus:
        """The Core document of this moment."""
        return ExecutionStatus(
            core=CORE_VERSION,
            kind="ExecutionStatus",
            id=self.execution,
            request=self.request,
            state=self.state,
            seq=self.seq,
            updated_at=self.updated_at,
            step=self.step,
            refusal=self.refusal,
            human_needed=self.human_needed,
            x_boot=self.boot,
        )


def revive(status: ExecutionStatus) -> Life:
    """The life that a kept status describes."""
    return Life(
        execution=status.id,
        request=status.request,
        boot=status.x_boot or "",
        state=status.state,
        seq=status.seq,
        updated_at=status.updated_at,
        step=status.step,
        refusal=status.refusal,
        human_needed=status.human_needed,
    )


def begin(execution: str, request: str, boot: str, at: str, refusal: Refusal | None = None) -> Change:
    """A new execution at seq 0: accepted, or refused when there is a `refusal`."""
    state: State = "accepted" if refusal is None else "refused"
    life = Life(execution, request, boot, state, 0, at, refusal=refusal)
    return Change("accepted" if refusal is None else "refused", life)


def move(
    life: Life, state: State, at: str, *, step: Step | None = None, human_needed: HumanNeeded | None = None
) -> Change:
    """`life` in its next state. `step` None keeps the step.

    What a person is needed for never outlives its state.

    Raises:
        IllegalTransition: Core does not allow it.
    """
    if state not in TRANSITIONS[life.state]:
        raise IllegalTransition(f"{life.state} to {state} is no transition of Core")
    if (human_needed is not None) != (state == "needs_human"):
        raise IllegalTransition("needs_human, and only needs_human, says what a person is needed for")
    after = replace(
        life, state=state, seq=life.seq + 1, updated_at=at, step=step or life.step, human_needed=human_needed
    )
    return Change("completed" if state == "completed" else "state_changed", after)


def at_step(life: Life, step: Step, at: str) -> Change:
    """`life` with news of its step: another one, or further along.

    Raises:
        IllegalTransition: the execution is not running.
    """
    if life.state != "running":
        raise IllegalTransition(f"no step moves while {life.state}")
    return Change("step", replace(life, seq=life.seq + 1, updated_at=at, step=step))


def reborn(life: Life, boot: str) -> Life:
    """`life` as the same device goes on with it under another boot."""
    return replace(life, boot=boot)


def path(start: State, end: State) -> tuple[State, ...]:
    """The fewest states after `start` that lead to `end`; empty when they are the same.

    Raises:
        IllegalTransition: there is no way.
    """
    way = shortest_path(start, end)
    if way is None:
        raise IllegalTransition(f"no way leads from {start} to {end}")
    return way
