"""`aboyeur mandate`: what an agent may do for a person."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import get_args

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import actor_id, as_json, out_file
from hub.cli.tables import plain, print_json, print_line, print_table, short_hash
from mandates.documents import Scope


@click.group("mandate", short_help="Let an agent ask, list, revoke.")
def command() -> None:
    """What an agent may do for you: signed by you, limited in scope and time."""


@command.command("new")
@click.option("--agent", required=True, help="Whom you let ask, e.g. agent:planner.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(get_args(Scope)),
    metavar="SCOPE",
    help="What it may do, e.g. start_cooking; may be repeated.",
)
@click.option("--expires", default="12h", show_default=True, help="30m, 12h, 7d, or a time with offset.")
@out_file("Write the agent's pass (mandate and token) here instead of printing it.")
@click.pass_obj
def new(
    invocation: Invocation, *, agent: str, scopes: tuple[str, ...], expires: str, out: Path | None
) -> None:
    """Sign a mandate with your key, register it, and get the agent's pass, which is shown once.

    The pass holds the signed mandate and the agent's token; `aboyeur cook --agent-pass FILE` uses it.

    Scopes: plan_meals, search_recipes, start_cooking, stop_cooking, order_groceries, accept_deliveries,
    offer_surplus, claim_surplus, share_data, change_settings.

    \b
    Example:
      aboyeur mandate new --agent agent:planner --scope start_cooking \\
        --expires 12h --out planner.json
    """
    import msgspec

    from events.seams import SystemClock
    from events.times import format_date_time
    from hub.cli.client import text
    from hub.cli.once import check_place, hand_over
    from hub.keyfiles import KeyFileError, read_key
    from mandates.signature import sign_document

    check_place(out)
    clock = SystemClock()
    principal = invocation.whoami()
    agent = actor_id(agent)
    document = {
        "principal": principal,
        "agent": agent,
        "scopes": list(dict.fromkeys(scopes)),
        "expires": format_date_time(_moment(expires, clock.wall())),
    }
    try:
        key = read_key(invocation.folder, principal)
    except KeyFileError as error:
        raise CommandError(f"{error}; only the holder of a person's key can sign", REFUSED) from None
    mandate = sign_document(document, key, signed_at=clock.wall())
    with invocation.hub() as hub:
        answer = hub.post("/v1/mandates", mandate)
    agent_pass = {
        "agent": agent,
        "token": text(answer, "token"),
        "hash": text(answer, "mandate"),
        "mandate": mandate,
    }
    hand_over(
        msgspec.json.format(msgspec.json.encode(agent_pass), indent=2).decode(), out, f"the pass of {agent}"
    )


def _moment(text: str, now: datetime) -> datetime:
    """`text` as a moment after `now`: an amount of minutes, hours or days, or a time with offset."""
    from events.times import parse_date_time

    amount = re.fullmatch(r"(\d{1,5})([mhd])", text)
    if amount:
        unit = {"m": "minutes", "h": "hours", "d": "days"}[amount[2]]
        moment = now + timedelta(**{unit: int(amount[1])})
    else:
        try:
            moment = parse_date_time(text)
        except ValueError:
            raise CommandError(
                f"--expires {text}: write 30m, 12h, 7d or a time like 2030-05-01T18:00:00Z", USAGE
            ) from None
    if moment <= now:
        raise CommandError(f"--expires {text}: that is not in the future", USAGE)
    return moment


@command.command("list")
@as_json
@click.pass_obj
def list_mandates(invocation: Invocation, *, as_json: bool) -> None:
    """Show which agents may ask, for whom and until when.

    \b
    Example:
      aboyeur mandate list
    """
    with invocation.hub() as hub:
        mandates = hub.rows("/v1/mandates", "mandates")
    if as_json:
        print_json({"mandates": mandates})
        return
    print_table(
        ("mandate", "agent", "for", "until"),
        [
            (short_hash(row.get("hash")), row.get("agent"), row.get("principal"), row.get("expires"))
            for row in mandates
        ],
        whole=("agent", "for", "until"),
        empty="No agent may ask for anything. Let one:\n  aboyeur mandate new --agent agent:NAME "
        "--scope start_cooking",
    )


@command.command("revoke")
@click.argument("mandate")
@as_json
@click.pass_obj
def revoke(invocation: Invocation, *, mandate: str, as_json: bool) -> None:
    """End MANDATE now (its hash, or the beginning of it); the agent's token opens nothing any more.

    \b
    Example:
      aboyeur mandate revoke sha256:9f2c41d0a7be
    """
    from hub.cli.client import segment

    with invocation.hub() as hub:
        known = [
            row for row in hub.rows("/v1/mandates", "mandates") if str(row.get("hash")).startswith(mandate)
        ]
        if len(known) != 1:
            found = "no mandate begins" if not known else f"{len(known)} mandates begin"
            raise CommandError(f"{found} with {mandate}; see aboyeur mandate list", REFUSED)
        hub.delete(f"/v1/mandates/{segment(known[0]['hash'])}")
    if as_json:
        print_json({"revoked": known[0]["hash"], "agent": known[0].get("agent")})
    else:
        print_line(f"Revoked the mandate of {plain(known[0].get('agent'))}.")
