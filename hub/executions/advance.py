"""The one transition function of a hub's execution, its attempts and its stops (DESIGN §2; ruling X1).

Each function takes what is known and what happened and returns what is known now. A client's view changes
only along Core's transitions: where a device skips states, the states between are shown on the shortest way.
"""

from typing import Final

from msgspec.structs import replace

from adapters.documents import Refusal, RefusalReason, State
from adapters.states import FINAL, shortest_path
from hub.executions.model import Attempt, DeviceReport, Execution, LogVerdict, Phase, Stop, Waiting

ON_THE_APPLIANCE: Final = "use the control on the appliance"
_UNANSWERED: Final[frozenset[Phase]] = frozenset({"to_send", "sending", "unknown"})
"""The phases in which the device has not yet said anything of an attempt."""


def shown(before: Execution | None, after: Execution) -> tuple[State, ...]:
    """The states a client is shown between two views of an execution, exactly one for each seq."""
    if before is None:
        return (after.state,)
    way = shortest_path(before.state, after.state) or ()
    return (before.state,) * (after.seq - before.seq - len(way)) + way


def sending(execution: Execution, number: int) -> Execution:
    """The start is about to leave for the device: from here on it may be there."""
    if _attempt(execution, number).phase != "to_send":
        return execution
    return _in_phase(execution, number, "sending")


def report(
    execution: Execution, number: int, device_execution: str | None, said: DeviceReport, at: str
) -> Execution:
    """A device reported on attempt `number`, by answer, event or read."""
    attempt = _attempt(execution, number)
    if attempt.phase == "closed" and said.state not in FINAL:
        return execution  # overtaken: what has ended does not begin again
    known = replace(
        attempt,
        phase="closed" if said.state in FINAL else "answered",
        device_execution=device_execution or attempt.device_execution,
        state=said.state,
        seq=said.seq,
        boot=said.boot,
    )
    execution = _put(execution, known)
    if said.state in FINAL and execution.stop is not None:
        execution = replace(execution, stop=replace(execution.stop, phase="landed"))
    if execution.final or attempt.number != len(execution.attempts):
        return execution
    way = shortest_path(execution.state, said.state)
    if way is None and said.state in FINAL and execution.stop is not None:
        return stop_landed(execution, at)
    if way is None:
        return _waiting(
            execution,
            Waiting(
                reason="device_disagrees",
                why=f"{attempt.device} says {said.state}, which cannot follow {execution.state}",
                what=f"look at {attempt.device}; stop the execution if it is over",
            ),
            at,
        )
    view = (said.step, said.eta, said.refusal, said.human_needed)
    unchanged = view == (execution.step, execution.eta, execution.refusal, execution.human_needed)
    if not way and unchanged and execution.waiting is None:
        return execution
    return replace(
        execution,
        state=said.state,
        seq=execution.seq + max(len(way), 1),
        step=said.step,
        eta=said.eta,
        refusal=said.refusal,
        human_needed=said.human_needed,
        waiting=None,
        updated_at=at,
    )


def start_refused(
    execution: Execution, number: int, reason: RefusalReason, detail: str, at: str
) -> Execution:
    """The device answered the start with an error: its refusal, and it is not asked again (CASES 9).

    Unless it has already spoken of the attempt: then the error is about a repetition of the start.
    """
    if _attempt(execution, number).phase not in _UNANSWERED:
        return execution
    execution = _in_phase(execution, number, "closed")
    if execution.stop is not None:
        return stop_landed(execution, at)
    return _go(execution, "refused", at, refusal=Refusal(reason=reason, detail=detail[:500]))


def start_given_up(execution: Execution, number: int, delivered: bool, at: str) -> Execution:
    """The start found no answer in time; only a person goes on from here."""
    attempt = _attempt(execution, number)
    if attempt.phase not in _UNANSWERED:
        return execution
    execution = _put(execution, replace(attempt, phase="unknown"))
    if delivered:
        waiting = Waiting(
            reason="start_fate_unknown",
            why=f"{attempt.device} may or may not have started: it did not answer",
            what=f"look at {attempt.device}, then stop this execution; {ON_THE_APPLIANCE} if it is cooking",
        )
    else:
        waiting = Waiting(
            reason="start_not_delivered",
            why=f"{attempt.device} could not be reached to start",
            what="stop this execution and order again once the device is back",
        )
    return _waiting(execution, waiting, at)


def forgotten(execution: Execution, number: int, at: str) -> Execution:
    """The device was read and does not know the attempt."""
    attempt = _attempt(execution, number)
    if execution.final or attempt.phase in ("to_send", "closed"):
        return execution
    if execution.stop is not None and execution.state == "accepted":
        return execution
    return _waiting(
        execution,
        Waiting(
            reason="device_forgot",
            why=f"{attempt.device} does not know this work any more",
            what=f"look at {attempt.device}; what it was cooking may be half done",
        ),
        at,
    )


def stop_asked(execution: Execution, by: str, at: str) -> Execution:
    """Someone asked to stop. What never left the hub is stopped at once."""
    if execution.final or execution.stop is not None:
        return execution
    execution = replace(execution, stop=Stop(phase="asked", by=by), seq=execution.seq + 1, updated_at=at)
    attempt = execution.attempt
    if attempt is None or attempt.phase in ("to_send", "closed"):
        return stop_landed(execution, at)
    return execution


def stop_sent(execution: Execution, at: str) -> Execution:
    """The device has the stop; it has not yet said that it stopped."""
    if execution.stop is None or execution.stop.phase != "asked":
        return execution
    return replace(
        execution, stop=replace(execution.stop, phase="sent"), seq=execution.seq + 1, updated_at=at
    )


def stop_landed(execution: Execution, at: str) -> Execution:
    """No device can start it any more, and none is at it."""
    if execution.stop is None or execution.final:
        return execution
    execution = replace(execution, stop=replace(execution.stop, phase="landed"), waiting=None)
    attempt = execution.attempt
    if attempt is not None:
        execution = _put(execution, replace(attempt, phase="closed"))
    # Also where a device forgot what it was at: it is barred there now, and nothing else would end it here.
    return _go(execution, "stopped", at)


def device_lost(execution: Execution, device: str, at: str) -> Execution:
    """The connection to the device is gone; that says nothing about the cooking."""
    attempt = execution.attempt
    if execution.final or attempt is None or attempt.device != device or attempt.phase == "closed":
        return execution
    if execution.waiting is not None:
        return execution
    return _waiting(
        execution,
        Waiting(
            reason="device_lost",
            why=f"{device} has not been heard from; it may still be cooking",
            what=f"look at {device}; {ON_THE_APPLIANCE} to stop it",
        ),
        at,
    )


def log_collected(execution: Execution, verdict: LogVerdict) -> Execution:
    """The device's log of the last attempt was fetched and judged."""
    return replace(execution, log=verdict)


def _go(execution: Execution, state: State, at: str, refusal: Refusal | None = None) -> Execution:
    way = shortest_path(execution.state, state)
    if way is None:
        return _waiting(
            execution,
            Waiting(
                reason="device_disagrees",
                why=f"the device says {state}, which cannot follow {execution.state}",
                what="look at the device; stop the execution if it is over",
            ),
            at,
        )
    return replace(
        execution,
        state=state,
        seq=execution.seq + len(way),
        refusal=refusal or execution.refusal,
        waiting=None,
        updated_at=at,
    )


def _waiting(execution: Execution, waiting: Waiting, at: str) -> Execution:
    if execution.final or execution.waiting == waiting:
        return execution
    return replace(execution, waiting=waiting, seq=execution.seq + 1, updated_at=at)


def _attempt(execution: Execution, number: int) -> Attempt:
    return execution.attempts[number - 1]


def _put(execution: Execution, attempt: Attempt) -> Execution:
    attempts = (*execution.attempts[: attempt.number - 1], attempt, *execution.attempts[attempt.number :])
    return replace(execution, attempts=attempts)


def _in_phase(execution: Execution, number: int, phase: Phase) -> Execution:
    return _put(execution, replace(_attempt(execution, number), phase=phase))
