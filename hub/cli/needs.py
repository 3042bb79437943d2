"""`aboyeur needs`: what waits for a person."""

from typing import Any

import click

from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line, print_table


@click.command("needs", short_help="Show what waits for a person.")
@as_json
@click.pass_obj
def command(invocation: Invocation, *, as_json: bool) -> None:
    """Show what waits for a person, and how to answer.

    \b
    Example:
      aboyeur needs
    """
    with invocation.hub() as hub:
        needs = hub.rows("/v1/needs", "needs")
    if as_json:
        print_json({"needs": needs})
        return
    print_table(
        ("execution", "appliance", "why", "what to do"),
        [
            (need.get("execution") or "-", need.get("device") or "-", need.get("why"), need.get("what"))
            for need in needs
        ],
        empty="Nothing waits for you.",
    )
    for hint in dict.fromkeys(filter(None, map(_hint, needs))):
        print_line(hint)


def _hint(need: dict[str, Any]) -> str | None:
    if "aboyeur " in str(need.get("what")):
        return None
    match need.get("kind"):
        case "presence":
            return "You are there? Say so: aboyeur here"
        case "resume":
            return f"Done? Let it go on: aboyeur resume {plain(need.get('execution'))}"
        case _:
            return None
