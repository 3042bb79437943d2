"""`aboyeur needs`: what waits for a person."""

from typing import Any

import click

from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line


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
    if not needs:
        print_line("Nothing waits for you.")
    for need in needs:
        print_line(_in_words(need))


def _in_words(need: dict[str, Any]) -> str:
    """One need in lines that are not folded, so that the command in them can be copied."""
    place = " on ".join(filter(None, (plain(need.get("execution")), plain(need.get("device")))))
    what = plain(need.get("what"))
    if "aboyeur " not in what:
        what = "; ".join(filter(None, (what, _command(need))))
    lines = [place or plain(need.get("kind")), f"  {plain(need.get('why'))}"]
    return "\n".join([*lines, f"  {what}"] if what else lines)


def _command(need: dict[str, Any]) -> str:
    match need.get("kind"):
        case "presence":
            return "if you are there: aboyeur here"
        case "resume":
            return f"done? aboyeur resume {plain(need.get('execution'))}"
        case _:
            return ""
