"""A real Mosquitto for tests, set up by our own configuration."""

import getpass
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

from events.access_rights import HUB
from events.mosquitto import Listener, TlsFiles, password_hash, write_configuration


def free_port() -> int:
    """A TCP port on loopback that nobody listens on right now.

    From below the range that outgoing connections take theirs from, so that none takes it before it is used.
    """
    for _ in range(100):
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port in a hundred tries")


class Mosquitto:
    """A Mosquitto process on loopback; stopped, killed and started again it keeps its port and its data.

    Every user's password is `secret(user)`.
    """

    def __init__(
        self,
        program: str,
        directory: Path,
        kitchen: str,
        devices: tuple[str, ...],
        readers: tuple[str, ...],
        tls: TlsFiles | None,
    ) -> None:
        self.host = "127.0.0.1"
        self.port = free_port()
        self.kitchen = kitchen
        self._program = program
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        users = (HUB, *devices, *readers)
        self._configuration = write_configuration(
            directory / "config",
            kitchen=kitchen,
            data_directory=directory / "data",
            listeners=[Listener(self.host, self.port, tls)],
            passwords={user: password_hash(self.secret(user), os.urandom(12)) for user in users},
            devices=devices,
            readers=readers,
            run_as=getpass.getuser(),
        )

    @staticmethod
    def secret(user: str) -> str:
        """The password of `user`."""
        return f"secret-of-{user}"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        assert self._process is None, "the broker is running already"
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-c", str(self._configuration)], stdout=log, stderr=log
            )
        until = time.monotonic() + 10
        while time.monotonic() < until and self._process.poll() is None:
            try:
                socket.create_connection((self.host, self.port), 0.5).close()
            except OSError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError(f"mosquitto did not start:\n{(self._directory / 'log').read_text()}")

    def stop(self) -> None:
        """End it the orderly way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would, as far as a process can show that."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it: connections stay, nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run on."""
        os.kill(self.pid, signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(how)
        self._process.wait(10)
        self._process = None
