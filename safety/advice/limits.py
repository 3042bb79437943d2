"""Packs of limits: what a step's figures break, and several packs as one; the stricter wins (Core §6.1).

A limit can only take away. So two packs hold together by holding both, and merging them leaves out nothing
but what another limit already says at least as strictly.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from safety.advice.figures import Asked, Figures
from safety.device_documents import DRASTIC_FIRST, SafetyLimit, SafetyLimits
from safety.vocabulary import Vocabulary

_UNITS: Final = {"max_temp": "°C", "pressure": "kPa"}


def governing(
    limits: SafetyLimits | None, op: str, medium: str | None, vocabulary: Vocabulary
) -> tuple[SafetyLimit, ...]:
    """The limits of a pack that hold for `op`, under whichever of its ids they name it (ruling D4)."""
    if limits is None:
        return ()
    names = vocabulary.names_of(op)
    return tuple(limit for limit in limits.limits if any(limit.governs(name, medium) for name in names))


def broken_limit(limits: Sequence[SafetyLimit], figures: Figures, floor: Asked | None = None) -> str | None:
    """In words, the first of `limits` that the figures of a step break; None when they keep all.

    Args:
        floor: what a heat level brings a pan to at least.
    """
    temperatures = figures.temperatures if floor is None else (*figures.temperatures, floor)
    for limit in limits:
        if limit.kind in _UNITS:
            asked = temperatures if limit.kind == "max_temp" else figures.pressures
            detail = _above(limit, asked)
        elif limit.kind == "min_core_temp":
            detail = _core_below(limit, figures.temperatures)
        else:
            detail = None
        if detail is not None:
            return detail
    return None


def asks_for_a_person(limits: Iterable[SafetyLimit]) -> bool:
    """Whether one of `limits`, all governing, names the step as one that needs a person.

    A limit of that kind without a scope only repeats what every envelope says of itself (Core §6.6).
    """
    return any(
        limit.kind == "unattended"
        and limit.applies_to is not None
        and (limit.applies_to.ops or limit.applies_to.medium is not None)
        for limit in limits
    )


def _above(limit: SafetyLimit, asked: Iterable[Asked]) -> str | None:
    unit = _UNITS[limit.kind]
    for one in asked:
        if limit.max is None:
            return f"local limit {limit.id} names no figure, so {one.name} cannot be allowed"
        if one.value > limit.max:
            return f"{one.name} {one.value:g} {unit} is above local limit {limit.id} ({limit.max:g} {unit})"
    return None


def _core_below(limit: SafetyLimit, temperatures: Iterable[Asked]) -> str | None:
    # Which class a dish's food is of stands in no recipe: a limit for one class is judged when it is served.
    if limit.min is None or (limit.applies_to is not None and limit.applies_to.food_class is not None):
        return None
    for one in temperatures:
        if one.in_food and one.value < limit.min:
            return f"{one.name} {one.value:g} °C is below local limit {limit.id} ({limit.min:g} °C)"
    return None


# --- Several packs as one ---------------------------------------------------------------------------------


def merge(
    packs: Sequence[SafetyLimits], *, pack_id: str, version: str, disclaimer: str
) -> SafetyLimits | None:
    """One pack that is as strict as all of `packs` together; None when there is none.

    A limit that another one of its kind covers (for at least the same steps, with figures and an action at
    least as strict) is left out. Limits of one id that do not cover each other all stay, the later ones under
    `<id>.2` and so on. The order of the packs makes no difference to what the result allows.
    """
    every = [limit for pack in packs for limit in pack.limits]
    if not every:
        return None
    kept: list[SafetyLimit] = []
    for limit in every:
        if any(covers(other, limit) for other in kept):
            continue
        kept = [other for other in kept if not covers(limit, other)]
        kept.append(limit)
    taken: set[str] = set()
    named: list[SafetyLimit] = []
    for limit in kept:
        name, again = limit.id, 2
        while name in taken:
            name, again = f"{limit.id}.{again}", again + 1
        taken.add(name)
        named.append(limit if name == limit.id else msgspec.structs.replace(limit, id=name))
    return SafetyLimits(
        core="0.2.0", kind="SafetyLimits", id=pack_id, version=version, limits=named, disclaimer=disclaimer
    )


def covers(strict: SafetyLimit, loose: SafetyLimit) -> bool:
    """Whether `strict` says all that `loose` says, at least as strictly."""
    return (
        strict.kind == loose.kind
        and _scope_covers(strict, loose)
        and DRASTIC_FIRST.index(strict.action) <= DRASTIC_FIRST.index(loose.action)
        and _figures_cover(strict, loose)
    )


def _scope_covers(strict: SafetyLimit, loose: SafetyLimit) -> bool:
    wide, narrow = strict.applies_to, loose.applies_to
    if strict.kind == "unattended":
        # One without a scope repeats the envelopes; it is not the wider one.
        return wide == narrow
    if wide is None:
        return True
    if narrow is None:
        return not wide.ops and wide.medium is None and wide.food_class is None
    ops = not wide.ops or (bool(narrow.ops) and set(narrow.ops or ()) <= set(wide.ops))
    medium = wide.medium is None or wide.medium == narrow.medium
    food = wide.food_class is None or wide.food_class == narrow.food_class
    return ops and medium and food


def _figures_cover(strict: SafetyLimit, loose: SafetyLimit) -> bool:
    match strict.kind:
        case "max_temp" | "pressure":
            # No figure allows nothing.
            return strict.max is None or (loose.max is not None and strict.max <= loose.max)
        case "min_core_temp":
            return loose.min is None or (strict.min is not None and strict.min >= loose.min)
        case "time_temp":
            if loose.min is None and loose.max is None:
                return strict.min is None and strict.max is None
            lower = loose.min is None or (strict.min is not None and strict.min >= loose.min)
            upper = loose.max is None or (strict.max is not None and strict.max <= loose.max)
            return lower and upper and strict.hold_s <= loose.hold_s
        case "stop":
            return loose.max is None or (strict.max is not None and strict.max <= loose.max)
        case _:
            return (strict.min, strict.max, strict.hold_for) == (loose.min, loose.max, loose.hold_for)
