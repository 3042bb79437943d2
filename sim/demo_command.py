"""`aboyeur demo`: an evening in a simulated kitchen."""

import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import anyio
    from anyio.abc import TaskStatus
    from rich.console import Console

    from sim.demo import Dish, Evening, Stage


@click.command("demo", short_help="Watch a simulated kitchen cook for a minute.")
@click.option("--broker", type=click.Choice(["embedded", "mosquitto"]), default="embedded", show_default=True,
              help="The hub's own broker, or a real Mosquitto started for the demo.")  # fmt: skip
@click.option("--serve", is_flag=True, help="Keep hub and appliances running afterwards, until Ctrl-C.")
@click.option("--speed", type=click.FloatRange(1, 10_000), default=150.0, show_default=True,
              help="How much faster than life the physics runs; nothing else is scaled.")  # fmt: skip
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False),
              help="Keep everything here (new or empty); otherwise it is gone afterwards.")  # fmt: skip
@click.option("--plain", is_flag=True, help="Tell the story line by line, without the live board.")
def command(*, broker: str, serve: bool, speed: float, folder: Path | None, plain: bool) -> None:
    """Run a hub, four simulated appliances, a person and two agents through one evening.

    The recipes and appliances are those of the public package cookwala-samples (extra `demo`). Only the
    physics runs faster than life. Exit code 0 says that everything went as it should.

    \b
    Examples:
      aboyeur demo
      aboyeur demo --broker mosquitto --serve
    """
    import anyio

    from sim.demo import DemoFailed, ProcessFailed
    from sim.kitchen import SamplesMissing

    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"--folder {folder} is not empty")
    live = sys.stdout.isatty() and not plain
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            anyio.run(_run, folder.absolute(), broker, serve, speed, live)
        else:
            with tempfile.TemporaryDirectory(prefix="aboyeur-demo-") as made:
                anyio.run(_run, Path(made), broker, serve, speed, live)
    except* (DemoFailed, ProcessFailed, SamplesMissing) as failed:
        reason: BaseException = failed
        while isinstance(reason, BaseExceptionGroup):
            reason = reason.exceptions[0]
        raise click.ClickException(f"the demo did not go as it should: {reason}") from None
    except* KeyboardInterrupt:
        raise click.Abort from None


async def _run(folder: Path, broker: str, serve: bool, speed: float, live: bool) -> None:
    """Play, under the eyes of somebody who may leave: every process of the demo ends with it."""
    import anyio
    from rich.console import Console

    from events.seams import SystemClock, SystemIds
    from sim.demo import Evening, play, stage

    # A file or a pipe has no width of its own; the summary needs this much to stand in one line each.
    console = Console() if sys.stdout.isatty() else Console(width=110)
    clock = SystemClock()
    evening = Evening(clock, _hold if live else click.echo, clock.monotonic())
    leaving = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as everything:
            await tasks.start(_heed_signals, everything, leaving, evening)
            async with stage(folder, evening, clock, SystemIds(), speed=speed, broker=broker) as set_up:
                dishes = await _watched(console, evening, set_up) if live else await play(set_up, evening)
                _summary(console, evening, dishes)
                if serve:
                    await _go_on(console, set_up, evening, leaving)
        tasks.cancel_scope.cancel()
    if everything.cancelled_caught:
        raise KeyboardInterrupt


async def _heed_signals(
    everything: "anyio.CancelScope",
    leaving: "anyio.Event",
    evening: "Evening",
    *,
    task_status: "TaskStatus[None]",
) -> None:
    """Ctrl-C, a closed terminal or a polite kill end the demo; while it only goes on, they end that."""
    import anyio

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            if evening.over:
                leaving.set()
            else:
                everything.cancel()


def _hold(line: str) -> None:
    """The board shows the story itself."""
    del line


async def _watched(console: "Console", evening: "Evening", set_up: "Stage") -> "list[Dish]":
    """Play the story under a live board."""
    import anyio
    from rich.live import Live

    from sim.board import draw
    from sim.demo import play

    with Live(draw(evening.kitchen), console=console, auto_refresh=False, transient=True) as board:

        async def refresh() -> None:
            while True:
                board.update(draw(evening.kitchen), refresh=True)
                await anyio.sleep(0.25)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refresh)
            dishes = await play(set_up, evening)
            tasks.cancel_scope.cancel()
    for line in evening.kitchen.story:
        console.print(line, highlight=False)
    return dishes


def _summary(console: "Console", evening: "Evening", dishes: "list[Dish]") -> None:
    from rich.table import Table

    table = Table(title="What came of it", title_justify="left", box=None)
    for column in ("dish", "appliance", "state", "why", "appliance's log"):
        table.add_column(column)
    for dish in dishes:
        log = f"{dish.log} ({dish.outcome})" if dish.log else "-"
        table.add_row(dish.name, dish.device or "(the hub)", dish.state, dish.refusal or "", log)
    console.print(table)
    console.print(f"Everything went as it should, in {evening.seconds:.0f} s.", highlight=False)


async def _go_on(console: "Console", set_up: "Stage", evening: "Evening", leaving: "anyio.Event") -> None:
    """Leave everything running until the user has seen enough."""
    data = set_up.settings.data
    console.print(
        f"\nHub and appliances go on at {set_up.settings.url()}. Try, in another terminal:\n"
        f"  aboyeur --data {data} devices list\n"
        f"  aboyeur --data {data} here\n"
        f"  aboyeur --data {data} cook example-lentil-soup\n"
        "Ctrl-C ends them.",
        highlight=False,
        soft_wrap=True,
    )
    evening.over = True
    await leaving.wait()
