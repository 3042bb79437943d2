"""The verbs against a real hub with simulated appliances, all as processes: what an evening looks like."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 30.0
ABOYEUR = [sys.executable, "-c", "from hub.cli.main import main; main()"]
ROOT = Path(__file__).resolve().parents[3]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Home:
    """A data folder, the processes in it, and the command line over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: list[subprocess.Popen[str]] = []
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ABOYEUR_")},
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "ABOYEUR_DATA": str(folder / "data"),
            "ABOYEUR_HTTP_PORT": str(free_port()),
            "ABOYEUR_BROKER_PORT": str(free_port()),
        }

    def start(self, *words: str) -> "subprocess.Popen[str]":
        with (self.folder / f"{words[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                [*ABOYEUR, *words], env=self.env, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.running.append(process)
        return process

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [*ABOYEUR, *words], env=self.env, capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def json(self, *words: str) -> Any:
        done = self.run(*words, "--json")
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def until(self, what: str, true: Callable[[], Any]) -> Any:
        """What `true` returns once it is true."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = true()
            if found:
                return found
            time.sleep(0.1)
        logs = "\n".join(path.read_text() for path in self.folder.glob("*.log"))
        raise AssertionError(f"never: {what}\n{logs}")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    for process in made.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.slow
def test_an_evening_from_init_to_a_verified_log(home: Home, tmp_path: Path) -> None:
    samples = pytest.importorskip("cookwala_samples")
    assert home.run("init", "--owner", "person:anna").returncode == 0
    serving = home.start("serve")
    home.until("the hub answers", lambda: home.run("needs").returncode == 0)
    assert home.json("executions") == {"executions": []}

    kitchen = tmp_path / "kitchen"
    kitchen.mkdir()
    appliances = home.start("kitchen", "--folder", str(kitchen), "--base-port", "0", "--speed", "600")
    assert appliances.stdout is not None
    urls = dict(re.findall(r"(\S+) (http://\S+)", "".join(appliances.stdout.readline() for _ in range(4))))
    device = "demo-hob-robot"
    pairing = kitchen / f"{device}.pairing.json"
    assert home.run("devices", "add", device, urls[device], "--out", str(pairing)).returncode == 0
    home.until(
        "the appliance is heard",
        lambda: [row["liveness"] for row in home.json("devices", "list")["devices"]] == ["alive"],
    )

    recipe = tmp_path / "koshari.json"
    koshari = samples.load_bundle()["recipes"]["koshari"]
    recipe.write_text(json.dumps(koshari, ensure_ascii=False))
    (added,) = home.json("recipes", "add", str(recipe))["added"]
    assert added["hash"] in [row["hash"] for row in home.json("recipes", "list")["recipes"]]

    # An agent orders under a mandate; one without the scope is refused.
    options = ("mandate", "new", "--agent")
    assert (
        home.run(*options, "agent:reader", "--scope", "plan_meals", "--out", str(tmp_path / "r")).returncode
        == 0
    )
    refused = home.run("cook", "koshari", "--agent-pass", str(tmp_path / "r"))
    assert refused.returncode == 1 and "mandate_scope" in refused.stdout
    assert (
        home.run(
            *options, "agent:planner", "--scope", "start_cooking", "--out", str(tmp_path / "p")
        ).returncode
        == 0
    )
    alone = home.run("cook", "koshari", "--agent-pass", str(tmp_path / "p"))
    assert alone.returncode == 1 and "needs_human_present" in alone.stdout and "aboyeur here" in alone.stdout
    assert home.run("here").returncode == 0
    order = home.json("cook", "koshari", "--agent-pass", str(tmp_path / "p"), "--request-id", "req-evening")
    again = home.json("cook", "koshari", "--agent-pass", str(tmp_path / "p"), "--request-id", "req-evening")
    assert again["id"] == order["id"]

    busy = home.run("devices", "remove", device)
    assert busy.returncode == 1 and order["id"] in busy.stderr

    # Anybody stops it, and the appliance's own log is verified.
    stopped = home.run("--as", "person:nobody", "stop", order["id"])
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    log = home.until("the log is collected", lambda: home.run("log", order["id"]).stdout)
    assert "The hub's verdict on the log: ok" in log
    assert home.run("stop", "exe-nobody").returncode == 1
    assert home.run("resume", order["id"]).returncode == 1

    # People come and go.
    assert home.run("people", "add", "person:ben", "--keep").returncode == 0
    assert home.run("needs").returncode == 2
    assert home.run("--as", "person:ben", "needs").returncode == 0
    assert home.run("--as", "person:ben", "people", "remove", "person:anna").returncode == 4
    assert home.run("--as", "person:anna", "people", "remove", "person:ben").returncode == 0
    assert home.run("needs").returncode == 0

    # Copied while it runs; closed in order; nothing differs; nobody answers any more.
    assert home.run("backup", str(tmp_path / "backup")).returncode == 0
    second = home.run("serve")
    assert second.returncode == 1 and "cannot start" in second.stderr
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(20) == 0
    assert home.run("rebuild", "--check").returncode == 0
    assert home.run("--data", str(tmp_path / "copy"), "restore", str(tmp_path / "backup")).returncode == 0
    assert home.run("--data", str(tmp_path / "copy"), "rebuild", "--check").returncode == 0
    assert home.run("needs").returncode == 3
    assert home.run("stop", order["id"]).returncode == 3
    tokens = [path.read_text().strip() for path in (tmp_path / "data" / "secrets").glob("*.token")]
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert tokens and not [token for token in tokens if token in logs]
