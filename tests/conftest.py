"""Fixtures that tests of several rooms share."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from events.mosquitto import TlsFiles
from tests.mosquitto_process import Mosquitto


@pytest.fixture
def mosquitto_factory(tmp_path: Path) -> Iterator[Callable[..., Mosquitto]]:
    """Makes running brokers: `factory(kitchen="home", devices=("oven",), readers=(), tls=None)`."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed (tests/install-system.sh)")
    made: list[Mosquitto] = []

    def make(
        kitchen: str = "home",
        devices: tuple[str, ...] = ("oven", "hob"),
        readers: tuple[str, ...] = ("display",),
        tls: TlsFiles | None = None,
    ) -> Mosquitto:
        directory = tmp_path / f"mosquitto-{len(made)}"
        directory.mkdir()
        made.append(Mosquitto(program, directory, kitchen, devices, readers, tls))
        made[-1].start()
        return made[-1]

    yield make
    for broker in made:
        broker.kill()


@pytest.fixture
def mosquitto(mosquitto_factory: Callable[..., Mosquitto]) -> Mosquitto:
    """A running broker for kitchen `home` with devices `oven` and `hob` and the reader `display`."""
    return mosquitto_factory()
