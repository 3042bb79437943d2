"""Finds the days and moments in a document that have the right form and are in no calendar (30 February)."""

import functools
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import date
from typing import Any, Final, cast

from msgspec import inspect

from events.texts import DATE_PATTERN
from events.times import DATE_TIME_PATTERN, parse_date_time

Steps = tuple[str | int, ...]

_READERS: Final[Mapping[str | None, Callable[[str], object]]] = {
    DATE_TIME_PATTERN: parse_date_time,
    DATE_PATTERN: date.fromisoformat,
}


def impossible_times(plain: Any, kind: Any) -> list[Steps]:
    """Where in `plain`, a document of the type `kind`, stands a day or moment that never was or will be.

    Text that has not even the form of one is passed over: a schema tells it.
    """
    return list(dict.fromkeys(_impossible(plain, _shape(cast(Hashable, kind)), ())))


@functools.cache
def _shape(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


def _impossible(value: Any, shape: inspect.Type, steps: Steps) -> Iterator[Steps]:
    match shape, value:
        case inspect.Metadata(), _:
            yield from _impossible(value, shape.type, steps)
        case inspect.UnionType(), _:
            for arm in shape.types:
                yield from _impossible(value, arm, steps)
        case inspect.StructType(), dict():
            for member in shape.fields:
                name = member.encode_name
                if name in value:
                    yield from _impossible(value[name], member.type, (*steps, name))
        case inspect.DictType(), dict():
            for name, child in value.items():
                yield from _impossible(child, shape.value_type, (*steps, name))
        case inspect.CollectionType(), list():
            for index, child in enumerate(value):
                yield from _impossible(child, shape.item_type, (*steps, index))
        case inspect.StrType(), str() if shape.pattern in _READERS and re.match(shape.pattern or "", value):
            try:
                _READERS[shape.pattern](value)
            except ValueError:
                yield steps
