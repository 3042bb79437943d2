"""`aboyeur incident`: tell catalogues anonymously what went wrong."""

import sys
from typing import Any

import click

from hub.cli.errors import REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line, print_table

_SEVERITIES = ("info", "low", "medium", "high", "critical")
_OUTCOMES = ("near_miss", "minor_injury", "injury", "property_damage", "illness_suspected", "none")


@click.group("incident", short_help="Report what went wrong, anonymously.")
def command() -> None:
    """Incident reports tell what happened and on which day, and nothing of who, where or when exactly.

    They go to the catalogues in `catalogues.urls` of aboyeur.toml, so that every maker can learn from them.
    """


@command.command("report")
@click.argument("category")
@click.argument("description")
@click.option("--date", help="The day it happened, as 2026-09-28.  [default: today]")
@click.option("--severity", type=click.Choice(_SEVERITIES), default="medium", show_default=True)
@click.option("--outcome", type=click.Choice(_OUTCOMES), help="What came of it.")
@click.option("--op", help="The operation, e.g. cw.op.fry.")
@click.option("--device-model", help="Maker and model, never a serial number.")
@click.option("--recipe", help="The recipe, as its catalogue names it.")
@click.option("--limit", "limits", multiple=True, help="A safety limit that fired; may be repeated.")
@click.option(
    "--factor", "factors", multiple=True, help="What contributed, e.g. sensor_fault; may be repeated."
)
@click.option("--id", "name", help="Id of this report, to let go what was shown before.")
@click.option("--yes", metavar="DIGEST", help="Let it go without asking, if it is still what was shown.")
@as_json
@click.pass_obj
def report(
    invocation: Invocation,
    *,
    category: str,
    description: str,
    date: str | None,
    severity: str,
    outcome: str | None,
    op: str | None,
    device_model: str | None,
    recipe: str | None,
    limits: tuple[str, ...],
    factors: tuple[str, ...],
    name: str | None,
    yes: str | None,
    as_json: bool,
) -> None:
    """Report an incident of CATEGORY (e.g. cw.incident.overheat) in the words of DESCRIPTION.

    The report is checked for names, ids, addresses and times, then shown; it goes only when you say yes. In a
    script: call it once, read what is shown, and call it again with the --id and the digest shown (--yes).

    \b
    Example:
      aboyeur incident report cw.incident.overheat "Oil reached 201 °C; heat was cut." --outcome near_miss
    """
    import msgspec

    from events.seams import SystemClock, SystemIds

    document: dict[str, Any] = {
        "core": "0.2.0",
        "kind": "IncidentReport",
        "id": name or SystemIds().new("inc"),
        "date": date or SystemClock().wall().date().isoformat(),
        "category": category,
        "severity": severity,
        "outcome": outcome,
        "op": op,
        "deviceModel": device_model,
        "recipe": recipe,
        "safetyLimitsFired": list(limits) or None,
        "description": description,
        "contributingFactors": list(factors) or None,
    }
    raw = msgspec.json.encode({member: value for member, value in document.items() if value is not None})
    with invocation.hub() as hub:
        shown = hub.post("/v1/incidents/preview", raw)
        digest, traces = str(shown.get("digest")), shown.get("traces") or []
        if not as_json:
            _show(shown)
        if traces:
            if as_json:
                print_json(shown)
            raise CommandError("it could tell who reports; say it in other words", REFUSED)
        if yes is None and (as_json or not sys.stdin.isatty()):
            if as_json:
                print_json(shown)
                return
            raise CommandError(
                f"nothing was sent; to let it go: the same again with --id {document['id']} --yes {digest}",
                USAGE,
            )
        if yes is None and not click.confirm("Let this go, word for word?", default=False):
            print_line("Nothing was sent.")
            return
        if yes is not None and yes != digest:
            raise CommandError(f"nothing was sent: it is {digest}, not what --yes names", REFUSED)
        hub.post("/v1/incidents", {"report": raw.decode(), "shown": digest})
    if as_json:
        print_json(shown)
    else:
        print_line(f"On its way as {document['id']}; see aboyeur incident list")


@command.command("list")
@as_json
@click.pass_obj
def list_reports(invocation: Invocation, *, as_json: bool) -> None:
    """Show the reports that were let go, and which catalogues have them.

    \b
    Example:
      aboyeur incident list
    """
    with invocation.hub() as hub:
        found = hub.rows("/v1/incidents", "incidents")
    if as_json:
        print_json({"incidents": found})
        return
    print_table(
        ("report", "of", "about", "catalogue", "stands"),
        [
            (
                one.get("id"),
                (one.get("report") or {}).get("date"),
                (one.get("report") or {}).get("category"),
                delivery.get("catalogue"),
                "accepted" if delivery.get("accepted") else delivery.get("trouble") or "waits",
            )
            for one in found
            for delivery in one.get("deliveries") or []
        ],
        whole=("about", "catalogue"),
        empty="No incident was reported. Report one with: aboyeur incident report CATEGORY DESCRIPTION",
    )


def _show(shown: dict[str, Any]) -> None:
    import msgspec

    print_line("This is all that would be sent:")
    for line in msgspec.json.format(str(shown.get("report")).encode(), indent=2).decode().splitlines():
        print_line(" " * (len(line) - len(line.lstrip())) + plain(line, 5_000))
    where = (
        ", ".join(plain(one) for one in shown.get("catalogues") or [])
        or "nowhere: no catalogue is configured"
    )
    print_line(f"to: {where}\ndigest: {plain(shown.get('digest'))}")
    for one in shown.get("traces") or []:
        words = f"{plain(one.get('path'))}: {plain(one.get('kind'))}: {plain(one.get('detail'))}"
        print_line(f"could tell who reports: {words}")
