"""`aboyeur stop`: stop an execution, without a token and without looking anything up."""

from typing import Final

import click

from hub.cli.errors import OK, REFUSED, UNREACHABLE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.statuses import stop_in_words
from hub.cli.tables import escaped, plain, print_json, print_line

CONFIRM_POLLS: Final = 8
POLL_S: Final = 0.5


@click.command("stop", short_help="Stop an execution. Needs no token.")
@click.argument("execution")
@click.option("--reason", help="A word for the record.")
@click.option("--no-wait", is_flag=True, help="Do not wait (4 s at most) for the appliance's confirmation.")
@as_json
@click.pass_context
def command(ctx: click.Context, *, execution: str, reason: str | None, no_wait: bool, as_json: bool) -> None:
    """Stop EXECUTION now. Anybody may; no token is needed.

    Exit code 0 says that the appliance is known to obey, 1 that nothing confirms it: then use the control on
    the appliance.

    \b
    Example:
      aboyeur stop exe-0123456789abcdef0123
    """
    from hub.cli.client import HubProblem, segment

    invocation: Invocation = ctx.obj
    execution = escaped(execution)
    body = _body(invocation, execution, reason)
    path = f"/v1/executions/{segment(execution)}/stop"
    try:
        with invocation.open_hub() as hub:
            status = hub.post(path, body)
            for turn in range(0 if no_wait else CONFIRM_POLLS):
                if stop_in_words(status)[1]:
                    break
                if not as_json and turn == 0:
                    click.echo(f"{plain(execution)}: asked; waiting for the appliance's word", err=True)
                invocation.pause(POLL_S)
                # The same stop again joins the one under way, and needs no token either.
                status = hub.post(path, body)
    except HubProblem as problem:
        raise CommandError(f"{problem.words}\nUse the control on the appliance.", problem.exit_code) from None
    except CommandError as error:
        if error.exit_code != UNREACHABLE:
            raise
        raise CommandError(
            f"{error.words}\nNothing was stopped: use the control on the appliance.", UNREACHABLE
        ) from None
    words, confirmed = stop_in_words(status)
    if as_json:
        print_json(status)
    else:
        print_line(words)
    ctx.exit(OK if confirmed else REFUSED)


def _body(invocation: Invocation, execution: str, reason: str | None) -> bytes | None:
    """Who stops and why, for the record, as far as it is known without asking; a stop needs none of it."""
    import msgspec

    try:
        by = _who(invocation)
        if by is None and not reason:
            return None
        body = {"core": "0.2.0", "kind": "StopRequest", "execution": execution, "requestedBy": by or "anyone"}
        if reason:
            body["reason"] = escaped(reason)[:300]
        return msgspec.json.encode(body)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the record, the stop goes out
        click.echo(f"aboyeur: stopping without a word for the record: {plain(error)}", err=True)
        return None


def _who(invocation: Invocation) -> str | None:
    try:
        return escaped(invocation.whoami())
    except CommandError:
        return None
