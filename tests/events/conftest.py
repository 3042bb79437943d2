"""The registry as a hub wires it."""

import pytest

import adapters.events
import events.catalogue
from events.registry import Registry


@pytest.fixture(scope="session")
def registry() -> Registry:
    """Every type of the public catalogue. Session-wide: nothing in the tests enters another."""
    made = Registry()
    events.catalogue.register_events(made)
    adapters.events.register_events(made)
    return made
