"""One hub for each module of tests here, in a thread of its own."""

from collections.abc import Iterator

import pytest

from tests.hub.api.scripted import House, ScriptedDevice, house_in_a_thread


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A running hub with two scripted devices; its tests leave each other alone."""
    devices = (ScriptedDevice("hob"), ScriptedDevice("basic-hob", "demo-hob-robot-basic"))
    with house_in_a_thread(tmp_path_factory.mktemp("shared"), *devices) as built:
        yield built
