"""Mosquitto as a home runs it: its configuration written from a hub's own store, again after each pairing."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from config.settings import Broker
from events.access_rights import HUB
from events.mosquitto import Listener, write_configuration
from hub import enrol
from tests.household import Household
from tests.mosquitto_process import free_port


def mosquitto_settings(protocol: str = "5") -> Broker:
    """Settings of a hub that uses a Mosquitto on a free port."""
    return Broker(kind="mosquitto", port=free_port(), protocol="5" if protocol == "5" else "3.1.1")


class HomeBroker:
    """The household's Mosquitto process; it keeps port and data over `stop`, `kill` and `start`.

    A `hasty` one does not save its state on every change: what is sent through it by the thousand is not what
    a home sends.
    """

    def __init__(self, household: Household, folder: Path, *, hasty: bool = False) -> None:
        program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
        if program is None:
            pytest.skip("mosquitto is not installed (tests/install-system.sh)")
        self._program = program
        self._household = household
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._hasty = hasty
        self._configuration = self._write()

    def let_in_the_paired(self) -> None:
        """Write passwords and access list again, and have them read, as after `aboyeur devices add`."""
        self._write()
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-c", str(self._configuration)], stdout=log, stderr=log
            )
        until = time.monotonic() + 10
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self._household.settings.broker.port), 0.5).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError(f"mosquitto did not start: {(self._folder / 'log').read_text()}")

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(10)

    def _write(self) -> Path:
        passwords = enrol.broker_credentials(self._household.folder.root)
        written = write_configuration(
            self._folder / "config",
            kitchen=self._household.settings.kitchen,
            data_directory=self._folder / "data",
            listeners=[Listener("127.0.0.1", self._household.settings.broker.port)],
            passwords=passwords,
            devices=[user for user in passwords if user != HUB],
            run_as=getpass.getuser() if os.geteuid() == 0 else None,
        )
        if self._hasty:
            text = written.read_text()
            assert "autosave_on_changes true\nautosave_interval 1\n" in text
            text = text.replace("autosave_on_changes true\nautosave_interval 1\n", "autosave_interval 3600\n")
            written.write_text(text)
        return written
