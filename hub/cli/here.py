"""`aboyeur here`: say that somebody is there."""

from typing import TYPE_CHECKING, Any, Final

import click

from hub.cli.errors import UNREACHABLE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line

if TYPE_CHECKING:
    from hub.cli.client import HubClient

POLL_S: Final = 2.0
LONGEST_POLL_S: Final = 30.0


@click.command("here", short_help="Say that you are in the kitchen.")
@click.option("--stay", is_flag=True, help="Go on answering the appliances' questions until Ctrl-C.")
@as_json
@click.pass_obj
def command(invocation: Invocation, *, stay: bool, as_json: bool) -> None:
    """Say that you are in the kitchen. It counts for a minute, and only as your word.

    With --stay you promise to remain there: every question of an appliance is answered for you until you
    press Ctrl-C. Do that before you leave.

    \b
    Examples:
      aboyeur here
      aboyeur here --stay
    """
    with invocation.hub() as hub:
        answer = hub.post("/v1/presence", {"present": True})
        if as_json:
            print_json(answer)
        else:
            print_line(_answered(len(answer.get("answered", []))))
        if stay:
            _remain(invocation, hub)


def _answered(count: int) -> str:
    match count:
        case 0:
            return "The hub knows that you are here. No appliance was asking."
        case 1:
            return "The hub knows that you are here. One appliance was asking and has your answer."
        case _:
            return f"The hub knows that you are here. {count} questions were answered."


def _remain(invocation: Invocation, hub: "HubClient") -> None:
    """Answer every open question until interrupted; a hub that restarts is waited for."""
    click.echo("Answering for you; press Ctrl-C before you leave.", err=True)
    wait_s = POLL_S
    try:
        while True:
            invocation.pause(wait_s)
            try:
                for need in hub.rows("/v1/needs", "needs"):
                    _answer(hub, need)
                wait_s = POLL_S
            except CommandError as error:
                if error.exit_code != UNREACHABLE:
                    raise
                click.echo(f"aboyeur: {error.words}; trying again", err=True)
                wait_s = min(wait_s * 2, LONGEST_POLL_S)
    except KeyboardInterrupt:
        click.echo("No longer answering for you.", err=True)


def _answer(hub: "HubClient", need: dict[str, Any]) -> None:
    if need.get("kind") != "presence" or not need.get("nonce"):
        return
    answer = hub.post("/v1/presence", {"present": True, "nonce": need["nonce"]})
    # An appliance may say that it is too late, or may not be reached; it then asks again by itself.
    if need["nonce"] in answer.get("answered", []):
        print_line(f"Answered {plain(need.get('device'))}: {plain(need.get('why'))}")
