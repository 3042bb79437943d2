"""The command as a whole: help, exit codes, and no traceback at a person."""

import importlib.metadata
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest

from config.paths import DataFolder
from hub.cli import main
from hub.cli.errors import CommandError
from mandates.documents import Scope

OURS = [
    "backup",
    "broker",
    "conformance",
    "cook",
    "devices",
    "disclose",
    "executions",
    "hash",
    "here",
    "init",
    "keys",
    "log",
    "mandate",
    "needs",
    "people",
    "rebuild",
    "recipes",
    "restore",
    "resume",
    "serve",
    "sign",
    "stop",
    "verify",
]


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(main.aboyeur)
    for name in OURS:
        command = main.aboyeur.get_command(context, name)
        assert command is not None
        yield (name,), command
        if isinstance(command, click.Group):
            yield from (((name, verb), below) for verb, below in command.commands.items())


def test_every_verb_is_registered(folder: DataFolder) -> None:
    assert set(OURS) <= set(main.aboyeur.list_commands(click.Context(main.aboyeur)))


def test_help_of_every_verb_works_without_a_hub_and_shows_an_example(aboyeur: Callable[..., Any]) -> None:
    for words, command in commands():
        ended = aboyeur(*words, "--help")
        assert ended.code == 0, words
        if not isinstance(command, click.Group):
            assert f"aboyeur {' '.join(words)}" in ended.out or "aboyeur --data" in ended.out, words
            assert "Example" in ended.out, words


def test_help_fits_eighty_columns(aboyeur: Callable[..., Any]) -> None:
    for words, _ in commands():
        wide = [line for line in aboyeur(*words, "--help").out.splitlines() if len(line) > 80]
        assert wide == [], words


def test_help_of_mandate_new_names_every_scope(aboyeur: Callable[..., Any]) -> None:
    text = aboyeur("mandate", "new", "--help").out
    assert [scope for scope in get_args(Scope) if scope not in text] == []


def test_no_option_takes_a_secret_on_the_command_line() -> None:
    names = [
        option
        for _, command in [((), main.aboyeur), *commands()]
        for parameter in command.params
        for option in parameter.opts
    ]
    assert "--token-file" in names
    assert [name for name in names if name in ("--token", "--agent-token", "--password", "--secret")] == []


def test_every_verb_that_prints_data_has_json() -> None:
    without = {
        " ".join(words)
        for words, command in commands()
        if not isinstance(command, click.Group)
        and not any("--json" in parameter.opts for parameter in command.params)
    }
    # These print a document that is JSON already, or run until they are ended.
    assert without == {
        "devices add",
        "disclose make",
        "disclose reveal",
        "keys show",
        "mandate new",
        "serve",
        "sign",
    }


def test_a_data_folder_without_a_name_is_wrong_usage(aboyeur: Callable[..., Any]) -> None:
    ended = aboyeur("--data", "", "keys", "list")
    assert (ended.code, "name a folder" in ended.err) == (2, True)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from hub.cli.main import run; code = run(['--help']); "
        "print('LOADED', *sys.modules); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert loaded & {"httpx", "rich", "litestar", "uvicorn", "aiosqlite", "cryptography", "anyio"} == set()


def test_the_version_is_that_of_the_distribution(aboyeur: Callable[..., Any]) -> None:
    assert importlib.metadata.version("aboyeur") in aboyeur("--version").out


class Point:
    """An entry point as another distribution would bring it."""

    def __init__(self, name: str, found: Any, dist: str = "other") -> None:
        self.name = name
        self.value = f"other.{name}:command"
        self.dist = type("Dist", (), {"name": dist})()
        self._found = found

    def load(self) -> Any:
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found


def with_points(monkeypatch: pytest.MonkeyPatch, *points: Point) -> None:
    real = tuple(importlib.metadata.entry_points(group=main.COMMANDS))
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: (*points[:1], *real, *points[1:]))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (ImportError("no module named kiln"), "no module named kiln"),
        (RuntimeError("boom\nover two lines"), "boom over two lines"),
        (SyntaxError("bad"), "bad"),
        ("not a command", "is not a click command"),
    ],
)
def test_a_broken_command_of_another_package_is_listed_with_its_reason(
    aboyeur: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, found: Any, reason: str
) -> None:
    with_points(monkeypatch, Point("kiln", found))
    listing = aboyeur("--help")
    assert listing.code == 0
    assert "kiln" in listing.out and "(unavailable:" in listing.out
    assert "stop" in listing.out
    called = aboyeur("kiln", "--heat", "900")
    assert called.code == 1
    assert reason in called.err
    assert reason in " ".join(aboyeur("kiln", "--help").out.split())


def test_another_package_can_add_a_command_but_not_take_ours(
    aboyeur: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command("theirs")
    def theirs() -> None:
        click.echo("theirs ran")

    for order in (
        (Point("stop", theirs), Point("kiln", theirs)),
        (Point("kiln", theirs), Point("stop", theirs)),
    ):
        with_points(monkeypatch, *order)
        assert "theirs ran" in aboyeur("kiln").out
        assert "No token is needed" in " ".join(aboyeur("stop", "--help").out.split()) or "no token" in (
            aboyeur("stop", "--help").out
        )


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command("fail")
    def fail() -> None:
        raise error

    with_points(monkeypatch, Point("fail", fail))


def test_an_unexpected_error_is_one_line_and_a_private_file(
    aboyeur: Callable[..., Any], folder: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ZeroDivisionError("Bearer abcdefghijklmnop went wrong"))
    ended = aboyeur("fail")
    assert ended.code == 70
    assert "ZeroDivisionError" in ended.err
    assert str(folder.last_failure) in ended.err
    details = folder.last_failure.read_text()
    assert "Traceback" in details and "ZeroDivisionError" in details
    assert "abcdefghijklmnop" not in details + ended.err
    assert stat.S_IMODE(folder.last_failure.stat().st_mode) == 0o600


def test_details_go_elsewhere_where_the_data_folder_cannot_be_written(
    aboyeur: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ZeroDivisionError("x"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    ended = aboyeur("--data", str(tmp_path / "missing"), "fail")
    assert ended.code == 70
    code = main.run(["--data", str(tmp_path / "missing"), "fail"])
    assert code == 70
    assert (tmp_path / f"aboyeur-last-failure.{os.getuid()}.txt").exists()
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CommandError("no", 1), 1),
        (CommandError("not you", 4), 4),
        (ExceptionGroup("tasks", [ExceptionGroup("inner", [CommandError("gone", 3)])]), 3),
        (ExceptionGroup("tasks", [CommandError("a"), CommandError("b")]), 70),
        (KeyboardInterrupt(), 130),
        (click.UsageError("wrong"), 2),
        (click.ClickException("no"), 1),
        (SystemExit(5), 5),
    ],
)
def test_every_end_has_its_exit_code(
    aboyeur: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    failing(monkeypatch, error)
    assert aboyeur("fail").code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("cook",),
        ("cook", "x", "--servings", "0"),
        ("stop",),
        ("needs", "--nonsense"),
        ("init",),
    ],
)
def test_wrong_usage_is_exit_code_2(aboyeur: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    assert aboyeur(*arguments).code == 2


def test_a_wrong_settings_file_is_named_and_not_a_traceback(
    aboyeur: Callable[..., Any], folder: DataFolder
) -> None:
    folder.settings.write_text("[http]\nport = 0\n")
    ended = aboyeur("executions")
    assert ended.code == 2
    assert str(folder.settings) in ended.err and "1 to 65535" in ended.err


IN_A_TASK_GROUP = """
import anyio, click
from hub.cli.main import aboyeur, main

async def work():
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, lambda: print("word", flush=True))

aboyeur.add_command(click.Command("speak", callback=lambda: anyio.run(work)))
main(["speak"])
"""


@pytest.mark.parametrize("program", ["from hub.cli.main import main; main(['--help'])", IN_A_TASK_GROUP])
def test_a_reader_that_goes_away_early_is_no_error(folder: DataFolder, program: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=gone, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == ""
