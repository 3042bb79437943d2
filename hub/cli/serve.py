"""`aboyeur serve`: run the hub of a data folder until it is told to stop."""

import signal
from typing import TYPE_CHECKING

import click

from hub.cli.errors import INTERNAL, CommandError
from hub.cli.invocation import Invocation

if TYPE_CHECKING:
    import anyio

    from config.settings import Settings

SHUTDOWN_S = 15.0
"""Longest a hub takes to close after a signal; then it is cut off, which it survives like a power failure."""


@click.command("serve", short_help="Run the hub.")
@click.pass_obj
def command(invocation: Invocation) -> None:
    """Run the hub until Ctrl-C or SIGTERM.

    A second signal does not wait. Whatever is cooking goes on: the appliances do the cooking, and the hub
    finds it again when it starts.

    \b
    Examples:
      aboyeur serve
      ABOYEUR_LOG_LEVEL=debug aboyeur --data /srv/kitchen serve
    """
    import anyio

    from config import logs

    settings = invocation.existing()
    logs.set_up(settings.log.level)
    for warning in settings.warnings():
        click.echo(f"aboyeur: warning: {warning}", err=True)
    anyio.run(_run, settings)


async def _run(settings: "Settings") -> None:
    import anyio

    from events.seams import SystemClock, SystemIds
    from hub.service import serve

    stopping = anyio.Event()
    closed = False
    async with anyio.create_task_group() as group:
        group.start_soon(_heed_signals, group.cancel_scope, stopping)
        await serve(settings, SystemClock(), SystemIds(), stopping=stopping)
        closed = True
        group.cancel_scope.cancel()
    if not closed:
        raise CommandError(
            "the hub did not close in time and was cut off; it recovers at its next start", INTERNAL
        )


async def _heed_signals(everything: "anyio.CancelScope", stopping: "anyio.Event") -> None:
    """The first signal asks; the second, or time, insists."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        asked = False
        async for _ in signals:
            if asked:
                everything.cancel()
                return
            asked = True
            click.echo(f"aboyeur: closing, at most {SHUTDOWN_S:.0f} s; once more does not wait", err=True)
            stopping.set()
            everything.deadline = anyio.current_time() + SHUTDOWN_S
