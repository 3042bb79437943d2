"""`aboyeur recalls`: what catalogues withdrew."""

from typing import Any

import click

from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line, print_table


@click.group("recalls", short_help="See what catalogues withdrew; ask them now.")
def command() -> None:
    """Recalls of the catalogues in `catalogues.urls` of aboyeur.toml.

    What is recalled once stays so; a recall that only warns refuses nothing.
    """


@command.command("list")
@as_json
@click.pass_obj
def list_recalls(invocation: Invocation, *, as_json: bool) -> None:
    """Show the recalls known here, the recipes they concern, and how it stands with each catalogue.

    \b
    Example:
      aboyeur recalls list
    """
    with invocation.hub() as hub:
        _show(hub.get("/v1/recalls/state"), as_json)


@command.command("poll")
@as_json
@click.pass_obj
def poll(invocation: Invocation, *, as_json: bool) -> None:
    """Ask every catalogue now, then show what is recalled.

    \b
    Example:
      aboyeur recalls poll
    """
    with invocation.hub(timeout_s=120) as hub:
        _show(hub.post("/v1/recalls/poll"), as_json)


def _show(state: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(state)
        return
    catalogues = state.get("catalogues") or []
    print_table(
        ("recall", "by", "does", "for", "recipes here"),
        [
            (
                one.get("id"),
                one.get("issuer"),
                one.get("action"),
                one.get("reason"),
                ", ".join(map(str, one.get("recipes") or [])) or "-",
            )
            for one in state.get("recalls") or []
        ],
        whole=("by", "recipes here"),
        empty="Nothing is recalled."
        if catalogues
        else "No catalogue is asked. Name some in aboyeur.toml: urls of [catalogues]",
    )
    for one in catalogues:
        told = f"answered {one['answeredAt']}" if one.get("answeredAt") else "has not answered yet"
        trouble = f"; now: {plain(one['trouble'])}" if one.get("trouble") else ""
        print_line(f"{plain(one.get('url'))}: {told}{trouble}")
        for other in one.get("passedOver") or []:
            words = (
                f"{plain(other.get('recall'))}: {plain(other.get('reason'))}: {plain(other.get('detail'))}"
            )
            print_line(f"  does not hold: {words}")
