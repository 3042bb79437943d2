"""What a client is shown of an execution: Core's status, and what the hub knows beyond it (DESIGN §3)."""

from msgspec import Struct, field

from adapters.documents import CORE_VERSION, ExecutionStatus
from events.documents import Document
from hub.executions.model import Execution, LogVerdict


class StopView(Document, frozen=True):
    """How far a stop has come."""

    phase: str
    by: str
    note: str | None = None


class WaitingView(Document, frozen=True):
    """Why the work waits for a person beyond Core's states, and what she can do."""

    reason: str
    why: str
    what: str


class LogView(Document, frozen=True):
    """The verdict on the device's log."""

    verdict: str
    outcome: str | None = None
    caveats: list[str] | None = None
    """What is to be said beside it: `signedAt_unprotected`."""


class HubStatus(ExecutionStatus, frozen=True):
    """Core's ExecutionStatus of a hub's execution."""

    x_recipe: str | None = field(default=None, name="x-aboyeur-recipe")
    x_device: str | None = field(default=None, name="x-aboyeur-device")
    x_attempt: int | None = field(default=None, name="x-aboyeur-attempt")
    x_requested_by: str | None = field(default=None, name="x-aboyeur-requested-by")
    x_stop: StopView | None = field(default=None, name="x-aboyeur-stop")
    x_waiting: WaitingView | None = field(default=None, name="x-aboyeur-waiting")
    x_unreachable: bool | None = field(default=None, name="x-aboyeur-unreachable")
    x_log: LogView | None = field(default=None, name="x-aboyeur-log")


class ExecutionList(Struct, frozen=True):
    """Executions, newest first."""

    executions: list[HubStatus]


UNCONFIRMED = "unconfirmed: use the control on the appliance"


def view(execution: Execution, *, unreachable: bool = False) -> HubStatus:
    """The status of `execution`; `unreachable` says that its device is not heard at present."""
    attempt = execution.attempt
    stop = execution.stop
    waiting = execution.waiting
    log = execution.log
    return HubStatus(
        core=CORE_VERSION,
        kind="ExecutionStatus",
        id=execution.id,
        request=execution.request,
        state=execution.state,
        seq=execution.seq,
        updated_at=execution.updated_at,
        step=execution.step,
        eta=execution.eta,
        refusal=execution.refusal,
        human_needed=execution.human_needed,
        x_recipe=execution.recipe,
        x_device=attempt.device if attempt else None,
        x_attempt=attempt.number if attempt else None,
        x_requested_by=execution.requested_by,
        x_stop=StopView(
            phase=stop.phase,
            by=stop.by,
            note=UNCONFIRMED if stop.phase == "asked" else None,
        )
        if stop
        else None,
        x_waiting=WaitingView(reason=waiting.reason, why=waiting.why, what=waiting.what) if waiting else None,
        x_unreachable=True if unreachable and not execution.final else None,
        x_log=_log(log) if log else None,
    )


def _log(log: LogVerdict) -> LogView:
    caveats = ["signedAt_unprotected"] if log.signed_at_unprotected else None
    return LogView(verdict=log.verdict, outcome=log.outcome, caveats=caveats)
