"""Every event type of a hub: each room enters its own."""

from adapters import events as adapter_events
from events import catalogue
from events.registry import Registry


def event_registry() -> Registry:
    """The event types that this program knows."""
    registry = Registry()
    catalogue.register_events(registry)
    adapter_events.register_events(registry)
    return registry
