"""`aboyeur resume`: let an execution go on after a person did her part."""

import click

from hub.cli.errors import REFUSED, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.statuses import in_words, state_in_words
from hub.cli.tables import plain, print_json, print_line


@click.command("resume", short_help="Let an execution go on after your part.")
@click.argument("execution")
@click.option("--seq", type=click.IntRange(min=0), help="Only if the execution still stands at this seq.")
@as_json
@click.pass_obj
def command(invocation: Invocation, *, execution: str, seq: int | None, as_json: bool) -> None:
    """Let EXECUTION go on: you did what it waited for. Only a person may, never an agent.

    \b
    Example:
      aboyeur resume exe-0123456789abcdef0123
    """
    from hub.cli.client import HubProblem, segment

    path = f"/v1/executions/{segment(execution)}"
    with invocation.hub() as hub:
        if seq is None:
            status = hub.get(path)
            if status.get("state") not in ("needs_human", "paused"):
                raise CommandError(
                    f"{plain(execution)} waits for nobody: {state_in_words(status)}; see aboyeur needs",
                    REFUSED,
                )
            seq = int(status["seq"])
        try:
            status = hub.post(f"{path}/resume", headers={"If-Match": f'"{seq}"'})
        except HubProblem as problem:
            if problem.status == 412:
                raise CommandError(
                    f"{plain(execution)} has moved on meanwhile; look again with: aboyeur needs", REFUSED
                ) from None
            raise
    if as_json:
        print_json(status)
    else:
        print_line(in_words(status))
