"""An execution in words."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.states import FINAL
from hub.cli.tables import plain

_ADVICE: Final[Mapping[str, str]] = {
    "needs_human_present": "somebody must be there: say so with `aboyeur here`, then cook again",
    "busy": "the appliance is cooking something else: see `aboyeur executions`",
    "missing_equipment": "no appliance here can do this recipe: see `aboyeur devices list`",
    "missing_capability": "no appliance here can do this recipe: see `aboyeur devices list`",
    "recipe_recalled": "a catalogue withdrew it: see `aboyeur recalls list`",
    "not_authorized": "a person of this household signs what an agent may: `aboyeur mandate new --help`",
    "mandate_scope": "the mandate does not go so far, or has expired: `aboyeur mandate new --help`",
}


def member(value: Any, name: str) -> Any:
    """`value[name]` where `value` is an object that has it, else None."""
    return value.get(name) if isinstance(value, Mapping) else None


def in_words(status: Mapping[str, Any]) -> str:
    """One execution in a few lines: what it does, what it waits for, what a person can do."""
    name = plain(status.get("id"))
    lines = [f"{name}: {state_in_words(status)}"]
    device, recipe = plain(status.get("x-aboyeur-device")), plain(status.get("x-aboyeur-recipe"))
    if device or recipe:
        lines.append("  " + " ".join(filter(None, [recipe, f"on {device}" if device else ""])))
    refusal = status.get("refusal")
    if refusal:
        reason = plain(member(refusal, "reason"))
        detail = ": ".join(filter(None, [plain(member(refusal, "node")), plain(member(refusal, "detail"))]))
        lines.append(f"  {reason}" + (f" ({detail})" if detail else ""))
        if reason in _ADVICE:
            lines.append(f"  {_ADVICE[reason]}")
    if status.get("state") == "needs_human":
        why = plain(member(status.get("humanNeeded"), "why")) or "a person"
        lines.append(f"  waits for: {why}; then: aboyeur resume {name}")
    waiting = status.get("x-aboyeur-waiting")
    if waiting:
        lines.append(f"  {plain(member(waiting, 'why'))}: {plain(member(waiting, 'what'))}")
    return "\n".join(lines)


def state_in_words(status: Mapping[str, Any]) -> str:
    """State, step, and what the hub knows beyond them, in one line."""
    words = [plain(status.get("state"))]
    step = status.get("step")
    if step and status.get("state") not in FINAL:
        node, progress = plain(member(step, "node")), member(step, "progress")
        words.append(f"{node} {progress:.0%}" if isinstance(progress, int | float) else node)
    phase = plain(member(status.get("x-aboyeur-stop"), "phase"))
    if phase and status.get("state") not in FINAL:
        words.append(f"stop {phase}")
    if status.get("x-aboyeur-waiting"):
        words.append("waits for a person")
    if status.get("x-aboyeur-unreachable"):
        words.append("appliance not heard")
    return ", ".join(filter(None, words))


def stop_in_words(status: Mapping[str, Any]) -> tuple[str, bool]:
    """What to tell somebody who stopped, and whether the appliance is known to obey."""
    name = plain(status.get("id"))
    state = plain(status.get("state"))
    if state == "stopped":
        return f"{name}: stopped.", True
    if state in FINAL:
        return f"{name}: {state}; there is nothing left to stop.", True
    stop = status.get("x-aboyeur-stop")
    if member(stop, "phase") == "landed":
        return f"{name}: the appliance has taken the stop ({state}).", True
    note = plain(member(stop, "note")) or "unconfirmed: use the control on the appliance"
    device = plain(status.get("x-aboyeur-device"))
    return f"{name}: {note}{f' ({device})' if device else ''}. The hub goes on trying.", False
