"""`aboyeur serve` as a process: signals, a bounded end, and reasons not to start in words."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.paths import DataFolder

ROOT = Path(__file__).resolve().parents[3]

# What the verb calls is replaced by a service that does nothing but end, or not end.
PROGRAM = """
    import sys, types
    import anyio
    import hub.cli.serve as verb
    verb.SHUTDOWN_S = 0.5

    class Service(types.ModuleType):
        class LogDamaged(Exception):
            pass

        @staticmethod
        async def serve(settings, clock, ids, *, stopping, accept_damage_by):
            print("serving", settings.kitchen, flush=True)
            {body}

    sys.modules["hub.service"] = Service("hub.service")
    from hub.cli.main import main
    main(["--data", sys.argv[1], "serve", *sys.argv[2:]])
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(folder: DataFolder) -> Iterator[Start]:
    """Starts the verb over a service with that body and waits until it serves."""
    running: list[subprocess.Popen[str]] = []

    def call(body: str, *options: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM).format(body=body), str(folder.root), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "serving home\n", process.stderr and process.stderr.read()
        return process

    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_the_hub_to_close_and_its_end_is_exit_code_0(start: Start, how: signal.Signals) -> None:
    process = start("await stopping.wait(); print('closed', flush=True)")
    process.send_signal(how)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0, err
    assert out == "closed\n"
    assert "closing" in err and "Traceback" not in err


def test_a_hub_that_does_not_close_is_cut_off_and_that_is_said(start: Start) -> None:
    process = start("await anyio.sleep_forever()")
    process.terminate()
    _, err = process.communicate(timeout=10)
    assert process.returncode == 70
    assert "cut off" in err and "Traceback" not in err


def test_a_second_signal_does_not_wait(start: Start) -> None:
    process = start("verb.SHUTDOWN_S = 3600.0; await anyio.sleep_forever()")
    process.terminate()
    assert process.stderr is not None
    assert "closing" in process.stderr.readline()
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == 70


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise OSError(98, 'address already in use')", "another program listens there"),
        (
            "from hub.store.database import FolderInUse as F; raise F(settings.data, 'process 7')",
            "in use by process 7",
        ),
        (
            "from hub.store.database import StoreUnusable as S; raise S('it is no database')",
            "it is no database",
        ),
        ("raise Service.LogDamaged('damaged: aboyeur serve --accept-damage')", "--accept-damage"),
        ("from hub.own_secrets import SecretsMissing as S; raise S('no secrets')", "no secrets"),
    ],
)
def test_a_hub_that_cannot_start_says_why(start: Start, body: str, words: str) -> None:
    process = start(body)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 1
    assert words in err and "cannot start" in err and "Traceback" not in err


def test_a_fault_while_serving_is_words_and_a_file(start: Start, folder: DataFolder) -> None:
    process = start("raise ZeroDivisionError('boom')")
    _, err = process.communicate(timeout=10)
    assert process.returncode == 70
    assert "ZeroDivisionError: boom" in err and str(folder.last_failure) in err and "Traceback" not in err
    assert "Traceback" in folder.last_failure.read_text()


def test_warnings_of_the_settings_are_said_at_the_start(start: Start, folder: DataFolder) -> None:
    folder.settings.write_text('[http]\nhost = "0.0.0.0"\n')
    process = start("await stopping.wait()")
    process.terminate()
    _, err = process.communicate(timeout=10)
    assert "warning: http.host = 0.0.0.0" in err


def test_who_takes_note_of_a_damaged_log_is_named_to_the_hub(start: Start) -> None:
    for options, who in (((), "None"), (("--accept-damage",), "person:anna")):
        process = start("print(accept_damage_by, file=sys.stderr)", *options)
        _, err = process.communicate(timeout=10)
        assert (process.returncode, err.strip()) == (0, who)
