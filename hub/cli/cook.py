"""`aboyeur cook`: ask for a dish."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from adapters.states import FINAL
from hub.cli.errors import OK, REFUSED, UNREACHABLE, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.statuses import in_words, member
from hub.cli.tables import plain, print_json, print_line

if TYPE_CHECKING:
    from hub.cli.client import HubClient

ANSWER_POLLS: Final = 25
POLL_S: Final = 0.2


@click.command("cook", short_help="Ask for a dish.")
@click.argument("recipe")
@click.option("--servings", type=click.FloatRange(min=0, min_open=True), help="For how many.")
@click.option(
    "--agent-pass",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask as an agent, with the pass of `aboyeur mandate new`.",
)
@click.option("--request-id", help="Id of this request; the same id again never cooks twice.")
@click.option("--no-wait", is_flag=True, help="Do not wait (5 s at most) for the appliance's first word.")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    *,
    recipe: str,
    servings: float | None,
    agent_pass: Path | None,
    request_id: str | None,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Ask the kitchen to cook RECIPE: its dish, its id or the end of it, or the beginning of its hash.

    The hub chooses the appliance; the appliance decides whether it is safe. Exit code 1 says it was refused.

    \b
    Examples:
      aboyeur cook koshari --servings 2
      aboyeur cook koshari --agent-pass planner.json
    """
    from events.seams import SystemIds
    from hub.cli.client import warn_without_broker

    _check_request(servings, request_id)
    invocation: Invocation = ctx.obj
    given = _read_pass(agent_pass)
    token = str(given["token"]) if given else None
    requested_by = str(given["agent"]) if given else invocation.whoami()
    request = request_id or SystemIds().new("req")
    with invocation.hub(token=token) as hub:
        revision = _choose(hub, recipe)
        recall = member(revision.get("recall"), "action")
        if recall == "warn":
            by = plain(member(revision.get("recall"), "issuer"))
            click.echo(f"warning: {by} warns of this recipe; see aboyeur recalls list", err=True)
        body: dict[str, Any] = {
            "core": "0.2.0",
            "kind": "ExecuteRequest",
            "id": request,
            "recipe": revision["id"],
            "recipeHash": revision["hash"],
            "requestedBy": requested_by,
            "idempotencyKey": f"cook-{request}",
        }
        if servings is not None:
            body["servings"] = servings
        if given:
            body["mandate"] = given["mandate"]
        try:
            status = hub.post("/v1/executions", body)
        except CommandError as error:
            if error.exit_code != UNREACHABLE:
                raise
            again = f"nobody knows whether it was taken; ask again with --request-id {request}, never twice"
            raise CommandError(f"{error.words}; {again}", UNREACHABLE) from None
        warn_without_broker(hub)
        if not no_wait:
            status = _first_word(invocation, hub, status)
    if as_json:
        print_json(status)
    else:
        print_line(in_words(status))
    ctx.exit(REFUSED if status.get("state") in ("refused", "failed") else OK)


def _check_request(servings: float | None, request_id: str | None) -> None:
    """Refuse what no hub could take, in words.

    Raises:
        CommandError: a number or an id that cannot be sent.
    """
    if servings is not None and not math.isfinite(servings):
        raise CommandError(f"--servings {servings}: write for how many, for example 2", USAGE)
    if request_id is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]{2,119}", request_id):
        raise CommandError(
            f"--request-id {request_id!r}: an id has 3 to 120 letters, digits and . _ : -, "
            "and begins with a letter or digit",
            USAGE,
        )


def _choose(hub: "HubClient", wanted: str) -> dict[str, Any]:
    from hub.cli.recipes import choose

    return choose(hub.rows("/v1/recipes", "recipes"), wanted)


def _first_word(invocation: Invocation, hub: "HubClient", status: dict[str, Any]) -> dict[str, Any]:
    """The status once the appliance has said something, or as it is after a few seconds."""
    from hub.cli.client import segment

    for _ in range(ANSWER_POLLS):
        if status.get("state") != "accepted" or status.get("state") in FINAL:
            break
        invocation.pause(POLL_S)
        status = hub.get(f"/v1/executions/{segment(str(status['id']))}")
    return status


def _read_pass(path: Path | None) -> dict[str, Any] | None:
    import msgspec

    from config.paths import read_at_most
    from events.documents import MAX_DOCUMENT_BYTES

    if path is None:
        return None
    try:
        given = msgspec.json.decode(read_at_most(path, MAX_DOCUMENT_BYTES), type=dict[str, Any])
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", USAGE) from None
    except (msgspec.DecodeError, RecursionError):
        given = {}
    if not all(isinstance(given.get(name), str) for name in ("agent", "token")) or "mandate" not in given:
        raise CommandError(f"{path} is no agent's pass; aboyeur mandate new --out FILE writes one", USAGE)
    return given
