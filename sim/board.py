"""The board of the demo: what a kitchen looks like at this moment, drawn with rich."""

from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_COLOUR = {
    "alive": "green",
    "late": "yellow",
    "lost": "red",
    "unknown": "dim",
    "accepted": "cyan",
    "preparing": "cyan",
    "running": "green",
    "needs_human": "bold yellow",
    "paused": "yellow",
    "stopping": "magenta",
    "stopped": "magenta",
    "completed": "bold green",
    "refused": "red",
    "failed": "bold red",
}
_STORY_LINES = 9


@dataclass(slots=True)
class Kitchen:
    """What the board shows: the hub's own answers, and the story so far."""

    devices: list[dict[str, Any]] = field(default_factory=list)
    executions: list[dict[str, Any]] = field(default_factory=list)
    needs: list[dict[str, Any]] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


def draw(kitchen: Kitchen) -> RenderableType:
    """The whole board."""
    story = Text("\n").join(Text(line) for line in kitchen.story[-_STORY_LINES:])
    return Group(
        _devices(kitchen.devices),
        _executions(kitchen.executions),
        _needs(kitchen.needs),
        Panel(story, title="What happened", title_align="left", border_style="dim"),
    )


def _devices(devices: list[dict[str, Any]]) -> RenderableType:
    table = Table(title="Appliances", title_justify="left", expand=True, box=None)
    for column in ("appliance", "heard", "cooks"):
        table.add_column(column, style="dim" if column == "cooks" else "")
    for device in devices:
        liveness = str(device["liveness"])
        table.add_row(
            device["name"], Text(liveness, _COLOUR.get(liveness, "")), device.get("busyWith") or "-"
        )
    return table


def _executions(executions: list[dict[str, Any]]) -> RenderableType:
    table = Table(title="Dishes", title_justify="left", expand=True, box=None)
    for column in ("dish", "appliance", "state", "step", "progress", "°C", ""):
        table.add_column(column)
    for status in reversed(executions):
        step = status.get("step") or {}
        state = str(status["state"])
        refusal = status.get("refusal") or {}
        progress = step.get("progress")
        table.add_row(
            str(status.get("x-aboyeur-recipe", "")).removeprefix("cw:cookwala.ai:").removeprefix("example-"),
            status.get("x-aboyeur-device") or "(none)",
            Text(state, _COLOUR.get(state, "")),
            f"{step.get('node', '')} {str(step.get('op', '')).removeprefix('cw.op.')}",
            ProgressBar(total=1.0, completed=progress, width=12) if progress is not None else "",
            _temperature(step),
            Text(_remark(status, refusal), "red" if refusal else "yellow"),
        )
    return table


def _temperature(step: dict[str, Any]) -> str:
    for reading in step.get("readings") or ():
        if reading.get("unit") == "degC":
            return f"{'~' if reading.get('estimated') else ''}{reading['value']:.0f}"
    return ""


def _remark(status: dict[str, Any], refusal: dict[str, Any]) -> str:
    if refusal:
        return str(refusal.get("reason"))
    stop = status.get("x-aboyeur-stop")
    if stop:
        return f"stop {stop['phase']}"
    log = status.get("x-aboyeur-log")
    return f"log: {log['verdict']}" if log else ""


def _needs(needs: list[dict[str, Any]]) -> RenderableType:
    lines = [
        Text(
            f"{need.get('device', '')}: {need['why']}",
            "bold yellow" if need["kind"] != "presence" else "yellow",
        )
        for need in needs
    ]
    body = Text("\n").join(lines) if lines else Text("nothing", "dim")
    return Panel(
        body, title="Waits for a person", title_align="left", border_style="yellow" if needs else "dim"
    )
