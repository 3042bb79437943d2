"""The command `aboyeur`: commands found by entry point, every error turned into words and an exit code."""

import importlib.metadata
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from config.paths import DataFolder, default_data_folder
from hub.cli.errors import INTERNAL, INTERRUPTED, REFUSED, USAGE, CommandError
from hub.cli.invocation import Invocation

COMMANDS: Final = "aboyeur.commands"


class Commands(click.Group):
    """A group whose commands are entry points of any installed distribution, loaded when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, broken ones too."""
        return sorted({*super().list_commands(ctx), *_entry_points()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command called so; where it cannot be loaded, one that says why."""
        point = _entry_points().get(cmd_name)
        if point is None:
            return super().get_command(ctx, cmd_name)
        # Somebody else's broken package must not take our help, or our stop, with it.
        try:
            found = point.load()
        except Exception as error:  # noqa: BLE001 - whatever an import raises, it becomes the listed reason
            return _unavailable(cmd_name, f"{type(error).__name__}: {error}")
        if not isinstance(found, click.Command):
            return _unavailable(cmd_name, f"{point.value} is not a click command")
        return found


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """The commands by name. Where two distributions offer one name, this project's own is taken."""
    points: dict[str, importlib.metadata.EntryPoint] = {}
    for point in importlib.metadata.entry_points(group=COMMANDS):
        ours = point.dist is not None and point.dist.name == "aboyeur"
        if ours or point.name not in points:
            points[point.name] = point
    return points


def _unavailable(name: str, reason: str) -> click.Command:
    first_line = " ".join(reason.split())

    def refuse(rest: Sequence[str]) -> None:  # noqa: ARG001 - click passes arguments by name
        raise CommandError(f"the command {name} is not available: {first_line}", REFUSED)

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
        help=f"Not available: {first_line}",
        short_help=f"(unavailable: {first_line[:50]})",
        context_settings={"ignore_unknown_options": True},
    )


class _NamedFolder(click.Path):
    """A folder that has a name: the empty one would be wherever one happens to stand."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("name a folder", param, ctx)
        return super().convert(value, param, ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="aboyeur", prog_name="aboyeur")
@click.option(
    "--data",
    type=_NamedFolder(file_okay=False, path_type=Path),
    envvar="ABOYEUR_DATA",
    help="Data folder of the hub.  [default: ~/.local/share/aboyeur]",
)
@click.option("--url", envvar="ABOYEUR_URL", help="Where the hub answers.  [default: as its settings say]")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with your token.  [default: ABOYEUR_TOKEN, else yours in the data folder]",
)
@click.option(
    "--as", "person", envvar="ABOYEUR_PERSON", metavar="PERSON", help="Who you are, e.g. person:anna."
)
@click.pass_context
def aboyeur(
    ctx: click.Context, data: Path | None, url: str | None, token_file: Path | None, person: str | None
) -> None:
    """Aboyeur takes the orders of a kitchen, hands them to its appliances and watches the pass.

    It asks and stops; it never decides safety: the appliance does.

    \b
    The first five minutes:
      aboyeur init --owner person:anna      make a hub that is yours
      aboyeur serve                         run it (leave this open)
      aboyeur devices add hob http://hob.local:9101
      aboyeur recipes add koshari.json
      aboyeur cook koshari

    \b
    At any time, with no token and nothing to look up:
      aboyeur stop EXECUTION                and if it says unconfirmed,
                                            use the control on the appliance

    \b
    Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 no hub answers,
    4 not authorized, 70 a fault of ours.
    """
    ctx.obj = Invocation(
        folder=DataFolder(data or default_data_folder(os.environ)),
        environ=os.environ,
        url=url,
        token_file=token_file,
        person=person,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code; the entry point of the console script."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. What went wrong stands on stderr, never as a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _code(aboyeur.main(args=given, prog_name="aboyeur", standalone_mode=False))
    except BaseException as error:  # noqa: BLE001 - the last place: whatever comes, a person gets words
        return _ended(_leaf(error), given)


def _code(returned: Any) -> int:
    # click hands back the code of --help and ctx.exit() as an int, and what a command returned otherwise.
    return returned if isinstance(returned, int) else 0


def _leaf(error: BaseException) -> BaseException:
    """The one error inside nested groups; a group of several stays a group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _ended(error: BaseException, arguments: Sequence[str]) -> int:
    match error:
        case CommandError():
            _say(error.words)
            return error.exit_code
        case click.UsageError():
            error.show()
            return USAGE
        case click.ClickException():
            error.show()
            return REFUSED
        case click.Abort() | KeyboardInterrupt():
            _say("interrupted")
            return INTERRUPTED
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        case BrokenPipeError():
            # The reader of our output went away (`| head`); the interpreter must not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case _:
            return _fault(error, arguments)


def _fault(error: BaseException, arguments: Sequence[str]) -> int:
    from config.logs import redact
    from config.paths import write_private
    from events.seams import SystemClock
    from events.times import format_date_time

    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    details = redact(
        f"{format_date_time(SystemClock().wall())} aboyeur {importlib.metadata.version('aboyeur')} "
        f"python {sys.version.split()[0]}\n" + "".join(traceback.format_exception(error))
    ).encode("utf-8", "backslashreplace")
    # Typed again rather than kept: the failure may have come before the options were read.
    chosen = _data_folder(arguments)
    for place in (
        chosen.last_failure,
        Path(tempfile.gettempdir()) / f"aboyeur-last-failure.{os.getuid()}.txt",
    ):
        try:
            write_private(place, details)
        except OSError:
            continue
        _say(f"a fault of ours: {redact(what)}\nDetails were written to {place}")
        return INTERNAL
    _say(f"a fault of ours: {redact(what)}\nDetails could not be written: no folder to write to")
    return INTERNAL


def _data_folder(arguments: Sequence[str]) -> DataFolder:
    for index, argument in reversed(list(enumerate(arguments))):
        if argument == "--data" and index + 1 < len(arguments):
            return DataFolder(Path(arguments[index + 1]))
        if argument.startswith("--data="):
            return DataFolder(Path(argument.removeprefix("--data=")))
    return DataFolder(Path(os.environ.get("ABOYEUR_DATA") or default_data_folder(os.environ)))


def _say(words: str) -> None:
    # Names of files may hold what UTF-8 cannot write.
    click.echo(f"aboyeur: {words}".encode("utf-8", "backslashreplace").decode(), err=True)
