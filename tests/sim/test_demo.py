"""The demo leaves nothing behind, however it is ended."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from sim.processes import mosquitto_program
from tests.household import ROOT, until


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda how: how.name)
async def test_a_demo_that_is_ended_takes_its_processes_with_it(tmp_path: Path, how: signal.Signals) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-P", "-m", "hub.cli", "demo", "--plain", "--folder", str(tmp_path / "demo")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        watched = psutil.Process(demo.pid)

        async def both() -> list[psutil.Process]:
            children = watched.children(recursive=True)
            return children if len(children) >= 2 else []

        children = await until(both, 20)
        demo.send_signal(how)

        async def gone() -> bool:
            return demo.poll() is not None and not any(child.is_running() for child in children)

        await until(gone, 25)
        assert demo.returncode == 130
    finally:
        demo.kill()
        demo.wait()


@pytest.mark.slow
@pytest.mark.parametrize("broker", ["embedded", pytest.param("mosquitto", marks=pytest.mark.mosquitto)])
async def test_a_demo_tells_its_story_goes_on_and_ends_well_on_a_signal(tmp_path: Path, broker: str) -> None:
    if broker == "mosquitto" and mosquitto_program() is None:
        pytest.skip("mosquitto is not installed (tests/install-system.sh)")
    log = tmp_path / "out"
    with log.open("wb") as out:
        demo = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "hub.cli",
                "demo",
                "--plain",
                "--serve",
                "--speed",
                "800",
                "--broker",
                broker,
            ],
            cwd=ROOT,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:

        async def told() -> bool:
            assert demo.poll() is None, log.read_text()
            return "Ctrl-C ends them" in log.read_text()

        await until(told, 60)
        for words in ("needs_human_present", "mandate_scope", "ok (served)", "ok (aborted_safe)"):
            assert words in log.read_text(), words
        children = psutil.Process(demo.pid).children(recursive=True)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(25) == 0, log.read_text()
        assert not any(child.is_running() for child in children)
    finally:
        demo.kill()
        demo.wait()
