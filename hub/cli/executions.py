"""`aboyeur executions`: what is being cooked."""

import click

from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.statuses import in_words, state_in_words
from hub.cli.tables import print_json, print_line, print_table, short_id


@click.command("executions", short_help="Show what is being cooked.")
@click.argument("execution", required=False)
@click.option("--all", "every", is_flag=True, help="The finished ones too.")
@as_json
@click.pass_obj
def command(invocation: Invocation, *, execution: str | None, every: bool, as_json: bool) -> None:
    """Show what is being cooked; with EXECUTION that one in full.

    \b
    Examples:
      aboyeur executions
      aboyeur executions --all
      aboyeur executions exe-0123456789abcdef0123
    """
    from hub.cli.client import segment, warn_without_broker

    with invocation.hub() as hub:
        if execution is not None:
            status = hub.get(f"/v1/executions/{segment(execution)}")
            warn_without_broker(hub)
            if as_json:
                print_json(status)
            else:
                print_line(in_words(status))
            return
        executions = hub.rows("/v1/executions", "executions", state="all" if every else "open")
        warn_without_broker(hub)
    if as_json:
        print_json({"executions": executions})
    else:
        print_table(
            ("execution", "recipe", "appliance", "state"),
            [
                (
                    status.get("id"),
                    short_id(status.get("x-aboyeur-recipe")),
                    status.get("x-aboyeur-device") or "-",
                    state_in_words(status),
                )
                for status in executions
            ],
            whole=("recipe", "appliance"),
            empty="Nothing was cooked yet. Start with: aboyeur cook RECIPE"
            if every
            else "Nothing is being cooked. Start with: aboyeur cook RECIPE, or see --all",
        )
