"""`aboyeur log`: what the appliance says happened."""

from pathlib import Path
from typing import Any

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.statuses import member
from hub.cli.tables import plain, print_line, print_table


@click.command("log", short_help="Show what the appliance says happened.")
@click.argument("execution")
@click.option("--attempt", type=click.IntRange(min=1), help="Of an earlier attempt.  [default: the last]")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Save the signed bytes here.")
@as_json
@click.pass_obj
def command(
    invocation: Invocation, *, execution: str, attempt: int | None, out: Path | None, as_json: bool
) -> None:
    """Show the signed log of EXECUTION, as the appliance wrote it.

    --json prints the very bytes that were signed.

    \b
    Examples:
      aboyeur log exe-0123456789abcdef0123
      aboyeur log exe-0123456789abcdef0123 --out koshari-log.json
    """
    import sys

    from hub.cli.client import segment

    if out is not None and out.exists():
        raise CommandError(f"{out} exists and is not overwritten; name another file", USAGE)
    path = f"/v1/executions/{segment(execution)}"
    with invocation.hub() as hub:
        raw = hub.raw("GET", f"{path}/log", query={"attempt": attempt} if attempt is not None else None)
        status = hub.get(path)
    if out is not None:
        try:
            out.write_bytes(raw)
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror}", USAGE) from None
    if as_json:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return
    _print(raw, status, attempt)
    if out is not None:
        print_line(f"Saved to {out}.")


def _print(raw: bytes, status: Any, attempt: int | None) -> None:
    import msgspec

    try:
        log = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise CommandError("the appliance's log is not JSON; --out FILE saves it as it is", REFUSED) from None
    verdict = plain(member(member(status, "x-aboyeur-log"), "verdict"))
    outcome = plain(log.get("outcome"))
    device = " ".join(filter(None, (plain(member(log.get("device"), name)) for name in ("vendor", "model"))))
    print_line(f"{outcome}, on {device}; {plain(log.get('startedAt'))} to {plain(log.get('endedAt')) or '?'}")
    if attempt is None:
        caveats = member(member(status, "x-aboyeur-log"), "caveats")
        beside = f" ({', '.join(map(plain, caveats))})" if isinstance(caveats, list) and caveats else ""
        print_line(f"The hub's verdict on the log: {verdict or 'none yet'}{beside}")
    steps = log.get("steps")
    print_table(
        ("step", "operation", "checked by", "in bounds", "deviation"),
        [
            (
                member(step, "node"),
                member(step, "op"),
                member(step, "verifiedBy"),
                "yes" if member(step, "envelopeOk") is True else "no",
                member(member(step, "deviation"), "kind") or "",
            )
            for step in (steps if isinstance(steps, list) else [])
        ],
        whole=("operation",),
        empty="The log names no step.",
    )
    events = log.get("safetyEvents")
    for event in events if isinstance(events, list) else []:
        limit, action, at = (plain(member(event, name)) for name in ("limit", "action", "at"))
        print_line(f"safety: {limit}: {action} at {at}")
    if attempt is None and member(status, "state") == "failed":
        print_line("It failed: look at the food and the appliance.")
