"""Finds a `null` that a closed document does not allow.

A Struct cannot tell an optional member that says `null` from one that is left out; the public schemas know no
`null`. Members of any value, extensions and open event data may hold one.
"""

import functools
from collections.abc import Hashable, Iterator
from typing import Any, cast

from msgspec import inspect


def forbidden_null(plain: Any, kind: Any) -> str | None:
    """The path of the first `null` in `plain` (that `kind` reads) where the type only means absence."""
    return next(_nulls(plain, _shape(cast(Hashable, kind)), "$"), None)


@functools.cache
def _shape(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


def _nulls(value: Any, shape: inspect.Type, path: str) -> Iterator[str]:
    if isinstance(shape, inspect.Metadata):
        yield from _nulls(value, shape.type, path)
    elif isinstance(shape, inspect.UnionType):
        for arm in shape.types:
            yield from _nulls(value, arm, path)
    elif isinstance(shape, inspect.StructType) and isinstance(value, dict):
        for member in shape.fields:
            name = member.encode_name
            if name not in value or name.startswith("x-"):
                continue
            if value[name] is not None:
                yield from _nulls(value[name], member.type, f"{path}.{name}")
            elif shape.forbid_unknown_fields and not isinstance(member.type, inspect.AnyType):
                yield f"{path}.{name}"
    elif isinstance(shape, inspect.DictType) and isinstance(value, dict):
        for child in value.values():
            yield from _nulls(child, shape.value_type, f"{path}[...]")
    elif isinstance(shape, inspect.CollectionType) and isinstance(value, list):
        for index, child in enumerate(value):
            yield from _nulls(child, shape.item_type, f"{path}[{index}]")
