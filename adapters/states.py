"""Core's execution states and the paths between them (Core §7)."""

import functools
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adapters.documents import State

TRANSITIONS: Final[Mapping[State, tuple[State, ...]]] = MappingProxyType(
    {
        "accepted": ("preparing", "refused", "stopped"),
        "preparing": ("running", "needs_human", "stopping", "failed"),
        "running": ("paused", "needs_human", "stopping", "completed", "failed"),
        "paused": ("running", "stopping"),
        "needs_human": ("running", "stopping", "failed"),
        "stopping": ("stopped",),
        "refused": (),
        "stopped": (),
        "completed": (),
        "failed": (),
    }
)
FINAL: Final[frozenset[State]] = frozenset(state for state, following in TRANSITIONS.items() if not following)


@functools.cache
def shortest_path(start: State, goal: State) -> tuple[State, ...] | None:
    """The states after `start` on Core's shortest way to `goal`; empty when there, `None` without a way."""
    if start == goal:
        return ()
    ways: deque[tuple[State, ...]] = deque([(start,)])
    seen = {start}
    while ways:
        way = ways.popleft()
        for following in TRANSITIONS[way[-1]]:
            if following == goal:
                return (*way[1:], following)
            if following not in seen:
                seen.add(following)
                ways.append((*way, following))
    return None
