"""The processes of the demo: hub, appliances and, on request, a real broker; each ended within a bound."""

import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

END_WITHIN_S: Final = 10.0
_LOG_TAIL_CHARACTERS: Final = 2_000


class ProcessFailed(Exception):
    """A process ended that should go on; the text has the end of its log."""


def free_port() -> int:
    """A TCP port on loopback that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def aboyeur(*arguments: str) -> list[str]:
    """The command line of this program; `-P` keeps a folder named like ours from being imported."""
    return [sys.executable, "-P", "-m", "hub.cli", *arguments]


def mosquitto_program() -> str | None:
    """Where Mosquitto is, if it is installed; Debian keeps it off a user's path."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


@asynccontextmanager
async def running(name: str, command: list[str], log: Path) -> AsyncGenerator[Process]:
    """Run `command` for the length of the context, its output in the file `log`.

    Raises:
        ProcessFailed: it ended by itself meanwhile.
    """
    with log.open("ab") as output:
        process = await anyio.open_process(
            command, stdin=None, stdout=output, stderr=output, start_new_session=True, env=dict(os.environ)
        )
    ended = False

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal ended
        await process.wait()
        ended = True
        scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, tasks.cancel_scope)
            yield process
            tasks.cancel_scope.cancel()
        if ended:
            raise ProcessFailed(f"the {name} ended with {process.returncode}: {_tail(log)}")
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: Process) -> None:
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    with anyio.move_on_after(END_WITHIN_S):
        await process.wait()
        return
    process.kill()
    await process.wait()


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-_LOG_TAIL_CHARACTERS:].strip()
