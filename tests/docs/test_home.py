"""The README's way to a hub at home, walked step by step as it is written."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.pages import COMMANDS, ROOT, section
from tests.mosquitto_process import free_port

BIN = Path(sys.executable).parent


class Walk:
    """Somebody who types what the page says, in one folder, with other ports than the usual ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.http, self.mqtt = free_port(), free_port()
        self.base = _four_ports()
        self.background: dict[str, subprocess.Popen[bytes]] = {}
        self.execution = ""
        self.typed: list[str] = []
        self._environ = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "ABOYEUR_HTTP_PORT": str(self.http),
        }

    def settings(self, block: str) -> None:
        """Do what the page says about the settings file: put this table into it."""
        path = self.folder / ".local/share/aboyeur/aboyeur.toml"
        text = path.read_text()
        assert "[broker]\n" in text
        path.write_text(text.replace("[broker]\n", block.replace("1883", str(self.mqtt))))

    def type(self, line: str) -> None:
        """Run a line of the page; a hub, a broker and a kitchen go on running."""
        self.typed.append(line)
        line = line.replace("EXECUTION", self.execution).replace(":9102", f":{self.base + 1}")
        match line.split():
            case ["/usr/sbin/mosquitto", *_]:
                self._begin("mosquitto", line, lambda: _takes(self.mqtt))
            case ["aboyeur", "serve"]:
                self._begin("hub", line, self._hub_answers)
            case ["aboyeur", "kitchen", *_]:
                line += f" --base-port {self.base} --speed 2000 --heartbeat 1"
                self._begin("kitchen", line, (self.folder / "appliances/kitchen.json").exists)
            case ["aboyeur", "here", "--stay"]:
                self._begin("here", line, lambda: "Answering" in (self.folder / "here.log").read_text())
            case ["pkill", "-HUP", "mosquitto"]:
                self.background["mosquitto"].send_signal(signal.SIGHUP)
            case _:
                self._until_done(line)

    def _until_done(self, line: str) -> None:
        if line.startswith("aboyeur resume"):
            self.wait(lambda: any(need["kind"] == "resume" for need in self.read("needs")["needs"]))
        done = self.run(line)
        deadline = time.monotonic() + 20
        # The page's reader types slower than this: an appliance's log may still be on its way.
        while done.returncode and line.startswith("aboyeur log") and time.monotonic() < deadline:
            time.sleep(0.5)
            done = self.run(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}{self.logs()}"
        named = re.match(r"(exe-[0-9a-f]+):", done.stdout)
        if line.startswith("aboyeur cook") and named:
            self.execution = named[1]

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """One command, to its end."""
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def read(self, command: str) -> Any:
        """What a command says to scripts."""
        done = self.run(f"aboyeur {command} --json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def wait(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Until it is so."""
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def logs(self) -> str:
        """What those in the background wrote."""
        return "".join(f"\n--- {path.name}\n{path.read_text()}" for path in self.folder.glob("*.log"))

    def _begin(self, name: str, line: str, ready: Callable[[], bool]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.background[name] = subprocess.Popen(
                ["bash", "-c", f"exec {line}"], cwd=self.folder, env=self._environ, stdout=log, stderr=log
            )

        def running() -> bool:
            assert self.background[name].poll() is None, self.logs()
            return ready()

        self.wait(running, 30)

    def _hub_answers(self) -> bool:
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{self.http}", trust_env=False, verify=False
            ) as http:
                return http.get("/health").is_success
        except httpx.HTTPError:
            return False

    def end(self) -> None:
        """End whatever still runs."""
        for process in reversed(self.background.values()):
            process.send_signal(signal.SIGINT)
        for process in self.background.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _takes(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _four_ports() -> int:
    """The first of four ports in a row that nobody has, below those that outgoing connections take."""
    for first in range(20_000 + os.getpid() % 2_000 * 4, 32_000, 4):
        if not any(_takes(first + more) for more in range(4)):
            return first
    raise AssertionError("no four free ports in a row")


@pytest.mark.slow
@pytest.mark.parametrize(
    "broker", [pytest.param("mosquitto", marks=pytest.mark.mosquitto), pytest.param("embedded")]
)
def test_the_way_to_a_hub_at_home_leads_there(tmp_path: Path, broker: str) -> None:
    if broker == "mosquitto" and not Path("/usr/sbin/mosquitto").exists():
        pytest.skip("Debian's mosquitto is not installed (tests/install-system.sh)")
    walk = Walk(tmp_path)
    found = section(ROOT / "README.md", "A hub at home")
    assert len([block for block in found if block.kind in COMMANDS]) > 8
    try:
        for block in found:
            if block.kind == "toml" and broker == "mosquitto":
                walk.settings(block.text)
            for line in block.lines() if block.kind in COMMANDS else []:
                if broker == "mosquitto" or "mosquitto" not in line:
                    walk.type(line)
        assert [line for line in walk.typed if line.startswith("aboyeur stop")]
        assert {person["id"] for person in walk.read("--as person:anna people list")["people"]} == {
            "person:anna",
            "person:ben",
        }
    finally:
        walk.end()
