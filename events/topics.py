"""Where an event travels on MQTT: what devices publish, what they are told, and what everybody may read.

Every level that carries a name is percent-encoded, so that no name can hold a separator or a wildcard. A
missing category or subject is `-`; a real one that is just a hyphen is encoded.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

_NONE: Final = "-"
_HYPHEN: Final = "%2D"


@dataclass(frozen=True, slots=True)
class FromTopic:
    """What a topic that a device publishes to says."""

    kitchen: str
    device: str
    category: str
    subject: str | None


def category_of(event_type: str) -> str:
    """The second segment of an event type: `device` of `cookwala.device.heartbeat`; empty if it has none."""
    segments = event_type.split(".", 2)
    return segments[1] if len(segments) > 1 else ""


def from_device(kitchen: str, device: str, category: str, subject: str | None) -> str:
    """Where `device` publishes an event."""
    return f"cookwala/{_level(kitchen)}/from/{_level(device)}/{_level(category)}/{_level(subject)}"


def to_device(kitchen: str, device: str, category: str, subject: str | None) -> str:
    """Where the hub speaks to `device`."""
    return f"cookwala/{_level(kitchen)}/to/{_level(device)}/{_level(category)}/{_level(subject)}"


def public(kitchen: str, category: str, subject: str | None) -> str:
    """Where the hub republishes an event it accepted; only the hub may publish there."""
    return f"cookwala/{_level(kitchen)}/{_level(category)}/{_level(subject)}"


def marker(kitchen: str, nonce: str) -> str:
    """Where the hub publishes to itself after a connect: what arrives before the marker is history."""
    return f"cookwala/{_level(kitchen)}/to/hub/marker/{_level(nonce)}"


def parse_marker(topic: str, kitchen: str) -> str | None:
    """The nonce of a marker of `kitchen`'s hub; `None` for any other topic."""
    head, separator, nonce = topic.rpartition("/")
    if not separator or head != f"cookwala/{_level(kitchen)}/to/hub/marker":
        return None
    return _name(nonce)


def all_from_devices(kitchen: str) -> str:
    """The filter for everything that devices publish."""
    return f"cookwala/{_level(kitchen)}/from/#"


def all_to_device(kitchen: str, device: str) -> str:
    """The filter for everything that `device` is told."""
    return f"cookwala/{_level(kitchen)}/to/{_level(device)}/#"


def parse_from(topic: str) -> FromTopic | None:
    """What `topic` says, if it is exactly one that `from_device` makes; `None` otherwise."""
    levels = topic.split("/")
    if len(levels) != 6 or levels[0] != "cookwala" or levels[2] != "from":
        return None
    kitchen, device = _name(levels[1]), _name(levels[3])
    category, subject = _name(levels[4]), _name(levels[5])
    if kitchen is None or device is None:
        return None
    if (category is None and levels[4] != _NONE) or (subject is None and levels[5] != _NONE):
        return None
    return FromTopic(kitchen, device, category or "", subject)


def _level(name: str | None) -> str:
    if not name:
        return _NONE
    return _HYPHEN if name == _NONE else quote(name, safe="")


def _name(level: str) -> str | None:
    """The name a level stands for; `None` if it stands for none or is not written the one way it may be."""
    try:
        name = unquote(level, errors="strict")
    except UnicodeDecodeError:
        return None
    return name if name and level != _NONE and _level(name) == level else None
