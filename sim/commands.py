"""The commands that the simulation adds to `aboyeur`."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import click


@click.command(name="kitchen", short_help="Run simulated appliances to try a hub with.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Holds the devices' memories and keys; put each DEVICE.pairing.json here.",
)
@click.option("--speed", type=click.FloatRange(min=0.01, max=10_000), default=120.0, show_default=True,
              help="How much faster than life the physics runs; nothing else is scaled.")  # fmt: skip
@click.option("--base-port", type=click.IntRange(0, 65_000), default=9101, show_default=True,
              help="HTTP port of the first device; 0 takes free ones.")  # fmt: skip
@click.option("--heartbeat", "heartbeat_s", type=click.FloatRange(1, 300), default=10.0, show_default=True,
              help="Seconds between signs of life.")  # fmt: skip
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="warning",
              show_default=True)  # fmt: skip
def kitchen(folder: Path, speed: float, base_port: int, heartbeat_s: float, log_level: str) -> None:
    """Run the sample appliances as a simulated kitchen, until interrupted.

    Each answers over HTTP at once; it joins the bus when its pairing file is in the folder. The sample
    recipes are written to FOLDER/recipes.

    \b
    Example:
      aboyeur kitchen --folder appliances
      aboyeur devices add demo-oven http://127.0.0.1:9104 \\
        --out appliances/demo-oven.pairing.json
      aboyeur recipes add appliances/recipes/koshari.json
    """
    # Imported here, so that `aboyeur --help` does not load a whole kitchen.
    import anyio

    from config.logs import set_up
    from sim.kitchen import PortTaken, SamplesMissing

    set_up(log_level)
    try:
        anyio.run(_until_told, folder, speed, base_port, heartbeat_s)
    except* SamplesMissing as missing:
        raise click.ClickException(str(_first(missing))) from None
    except* PortTaken as taken:
        words = f"{_first(taken)}; choose others with --base-port, or 0 for free ones"
        raise click.ClickException(f"the kitchen cannot run: {words}") from None
    except* OSError as error:
        raise click.ClickException(f"the kitchen cannot run: {_first(error)}") from None


async def _until_told(folder: Path, speed: float, base_port: int, heartbeat_s: float) -> None:
    """Run until SIGINT or SIGTERM."""
    import anyio

    from sim.kitchen import run_kitchen, sample_recipes

    recipes = folder / "recipes"
    recipes.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, raw in sample_recipes().items():
        (recipes / f"{name}.json").write_bytes(raw)
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await run_kitchen(folder, speed=speed, base_port=base_port, heartbeat_s=heartbeat_s, ready=_show)

        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            group.start_soon(run)
            async for _ in signals:
                group.cancel_scope.cancel()
                return


def _first(error: BaseException) -> BaseException:
    """The first error inside nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _show(urls: Mapping[str, str]) -> None:
    for name, url in urls.items():
        click.echo(f"{name} {url}")
    sys.stdout.flush()
