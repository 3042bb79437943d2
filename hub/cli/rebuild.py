"""`aboyeur rebuild --check`: is what the hub believes what its log says?"""

import click

from hub.cli.errors import OK, REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation
from hub.cli.options import as_json
from hub.cli.tables import plain, print_json, print_line


@click.command("rebuild", short_help="Compare the hub with its log.")
@click.option(
    "--check", is_flag=True, help="Compare only. (There is nothing else: no log is repaired in silence.)"
)
@as_json
@click.pass_context
def command(ctx: click.Context, *, check: bool, as_json: bool) -> None:
    """Verify the whole log and replay it, and compare what comes out with what the hub believes.

    The hub may run meanwhile; no file is changed. Exit code 1 says that something differs.

    \b
    Example:
      aboyeur rebuild --check
    """
    if not check:
        raise CommandError("say --check: the log is compared, never repaired in silence", USAGE)
    invocation: Invocation = ctx.obj
    settings = invocation.existing()

    from hub.event_types import event_registry
    from hub.projections.projector import TABLES, Projector
    from hub.store import rebuild
    from hub.store.database import StoreUnusable

    projector = Projector(settings.kitchen, event_registry())
    try:
        report = rebuild.check(invocation.folder.database, projector.replay, TABLES)
    except StoreUnusable as error:
        raise CommandError(str(error), REFUSED) from None
    if as_json:
        print_json(
            {
                "ok": report.ok,
                "entries": report.entries,
                "erased": report.erased,
                "findings": report.findings,
                "differences": report.differences,
                "replayFailed": report.replay_failed,
            }
        )
    else:
        for finding in report.findings:
            print_line(f"log: {finding.reason} at {finding.seq}: {plain(finding.detail)}")
        for one in report.differences:
            print_line(f"{one.table} row {one.row}\n  is          {one.stored}\n  the log says {one.rebuilt}")
        if report.replay_failed:
            print_line(f"replay: {plain(report.replay_failed)}")
        verdict = "No difference" if report.ok else "The log and the hub differ"
        print_line(f"{verdict}. Entries replayed: {report.entries}, tables compared: {len(TABLES)}.")
    ctx.exit(OK if report.ok else REFUSED)
