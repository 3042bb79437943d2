"""Who may publish and read what on the home's broker: one decision for every broker.

Three kinds of users: the hub, the devices, and readers (displays). Topics below `cookwala/{kitchen}`:

- `from/{device}/…`: written by that device, read by the hub;
- `to/{device}/…`: written by the hub, read by that device (`to/hub/…` is how the hub talks to itself);
- `{category}/{subject}`, the public layout: written by the hub, read by everybody.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from events import topics

HUB = "hub"

Role = Literal["hub", "device", "reader"]

_ROOT = "cookwala"
_WILDCARDS = frozenset({"+", "#"})
_DIRECTIONS = frozenset({"from", "to"})


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of every broker user in one kitchen. Who is unknown may nothing.

    Attributes:
        kitchen: the kitchen's id, as it is (not percent-encoded).
        devices: names of registered devices; may be a live view of a registry.
        readers: names of users that only look at the public layout.
    """

    kitchen: str
    devices: Container[str]
    readers: Container[str] = frozenset()

    def role(self, user: str) -> Role | None:
        """What a user is; None where nobody knows the name."""
        if user == HUB:
            return "hub"
        if not _plain(user):
            return None
        if user in self.devices:
            return "device"
        return "reader" if user in self.readers else None

    def may_publish(self, user: str, topic: str) -> bool:
        """Whether `user` may publish on `topic`, at any QoS, retained or not, at once or as a will."""
        levels = self._levels(topic)
        if levels is None or _WILDCARDS.intersection("".join(levels)):
            return False
        role = self.role(user)
        if levels[0] in _DIRECTIONS:
            if role == "hub":
                return levels[0] == "to" and len(levels) > 2
            return role == "device" and levels[:2] == ["from", user] and len(levels) > 2
        return role == "hub" and len(levels) == 2

    def may_subscribe(self, user: str, filter_: str) -> bool:
        """Whether everything that `filter_` can ever match is for `user` to read.

        Also decides reading one topic: a topic is a filter without wildcards. The one filter that is let
        through although it matches more than it should is `…/+/+`: it covers `from/x` and `to/x` without
        anything below, where nobody may publish.
        """
        role = self.role(user)
        levels = self._levels(filter_)
        if levels is None or role is None or not _well_formed(levels):
            return False
        if levels[0] in _DIRECTIONS:
            if role == "hub" and levels[0] == "from":
                return True
            whose = {"hub": HUB, "device": user, "reader": None}[role]
            return len(levels) > 2 and levels[0] == "to" and levels[1] == whose
        if levels[0] in _WILDCARDS:
            return levels[0] == "+" and len(levels) == 2 and levels[1] != "#"
        return len(levels) == 2

    def _levels(self, topic: str) -> list[str] | None:
        """The levels below the kitchen; None where the topic lies elsewhere or is none at all."""
        if "\0" in topic:
            return None
        root, *levels = topic.split("/")
        if root != _ROOT or len(levels) < 2 or levels[0] != kitchen_level(self.kitchen):
            return None
        return levels[1:]


def kitchen_level(kitchen: str) -> str:
    """A kitchen's id as it stands in topics."""
    return topics.public(kitchen, "c", "s").split("/")[1]


def _plain(user: str) -> bool:
    return bool(user) and not _WILDCARDS.intersection(user) and "/" not in user


def _well_formed(levels: list[str]) -> bool:
    """MQTT 3.1.1, 4.7.1: a wildcard fills its level, and # is the last."""
    return all(
        not _WILDCARDS.intersection(level) or level == "+" or (level == "#" and place == len(levels) - 1)
        for place, level in enumerate(levels)
    )
