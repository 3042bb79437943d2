"""`aboyeur serve`: run the hub of a data folder until it is told to stop."""

import errno
import signal
from typing import TYPE_CHECKING

import click

from hub.cli.errors import INTERNAL, REFUSED, CommandError
from hub.cli.invocation import Invocation

if TYPE_CHECKING:
    import anyio
    import anyio.abc

    from config.settings import Settings

SHUTDOWN_S = 15.0
"""Longest a hub takes to close after a signal; then it is cut off, which it survives like a power failure."""


@click.command("serve", short_help="Run the hub.")
@click.option(
    "--accept-damage",
    is_flag=True,
    help="You take note that the log is damaged, and the hub goes on from there.",
)
@click.pass_obj
def command(invocation: Invocation, *, accept_damage: bool) -> None:
    """Run the hub until Ctrl-C or SIGTERM.

    A second signal does not wait. Whatever is cooking goes on: the appliances do the cooking, and the hub
    finds it again when it starts. A hub whose log was changed or cut does not start by itself.

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
    anyio.run(_run, settings, invocation.whoami() if accept_damage else None)


async def _run(settings: "Settings", accept_damage_by: str | None) -> None:
    import anyio

    from events.seams import SystemClock, SystemIds
    from hub.own_secrets import SecretsMissing
    from hub.service import LogDamaged, serve
    from hub.store.database import FolderInUse, StoreUnusable
    from hub.store.migrations import SchemaTooNew

    stopping = anyio.Event()
    closed = False
    try:
        async with anyio.create_task_group() as group:
            # Started before the hub is, so that no signal finds nobody listening.
            await group.start(_heed_signals, group.cancel_scope, stopping)
            await serve(
                settings, SystemClock(), SystemIds(), stopping=stopping, accept_damage_by=accept_damage_by
            )
            closed = True
            group.cancel_scope.cancel()
    except* (FolderInUse, LogDamaged, SchemaTooNew, SecretsMissing, StoreUnusable) as errors:
        raise CommandError(f"the hub cannot start: {_first(errors)}", REFUSED) from None
    except* OSError as errors:
        error = _first(errors)
        if not isinstance(error, OSError) or error.errno != errno.EADDRINUSE:
            raise
        raise CommandError(
            f"the hub cannot start: {error}; another program listens there, or this hub runs already: see "
            f"http.port and broker.port in {settings.folder.settings}",
            REFUSED,
        ) from None
    if not closed:
        raise CommandError(
            "the hub did not close in time and was cut off; it recovers at its next start", INTERNAL
        )


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error inside nested groups; where several pieces failed, one of them says why."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _heed_signals(
    everything: "anyio.CancelScope",
    stopping: "anyio.Event",
    *,
    task_status: "anyio.abc.TaskStatus[None]",
) -> None:
    """The first signal asks; the second, or time, insists."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        asked = False
        async for _ in signals:
            if asked:
                everything.cancel()
                return
            asked = True
            click.echo(f"aboyeur: closing, at most {SHUTDOWN_S:.0f} s; once more does not wait", err=True)
            stopping.set()
            everything.deadline = anyio.current_time() + SHUTDOWN_S
