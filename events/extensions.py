"""Takes members that nobody declared and that begin with `x-` off plain JSON values, following a type.

Core readers ignore unknown `x-` members (Core §9). The type decides where that holds: an `x-` member that
the type declares stays, and so does every key of a free map.
"""

import functools
from collections.abc import Hashable, Mapping
from typing import Any, cast

from msgspec import inspect


def without_extensions(plain: Any, kind: Any) -> Any:
    """`plain` without the undeclared `x-` members of the objects that `kind` reads as Structs."""
    return _strip(plain, _shape(cast(Hashable, kind)))


@functools.cache
def _shape(kind: Hashable) -> inspect.Type:
    return inspect.type_info(kind)


def _strip(value: Any, shape: inspect.Type) -> Any:
    if isinstance(shape, inspect.Metadata):
        return _strip(value, shape.type)
    if isinstance(shape, inspect.UnionType):
        return _strip(value, _arm(value, shape))
    if isinstance(value, dict):
        if isinstance(shape, inspect.StructType):
            members = _members(shape.cls)
            return {
                name: _strip(child, members[name]) if name in members else child
                for name, child in value.items()
                if name in members or not name.startswith("x-")
            }
        if isinstance(shape, inspect.DictType):
            return {name: _strip(child, shape.value_type) for name, child in value.items()}
    elif isinstance(value, list) and isinstance(shape, inspect.CollectionType):
        return [_strip(child, shape.item_type) for child in value]
    return value


@functools.cache
def _members(struct: type) -> Mapping[str, inspect.Type]:
    shape = _shape(struct)
    assert isinstance(shape, inspect.StructType)
    members = {member.encode_name: member.type for member in shape.fields}
    if shape.tag_field is not None:
        members[shape.tag_field] = inspect.AnyType()
    return members


def _arm(value: Any, union: inspect.UnionType) -> inspect.Type:
    """The arm of `union` that a JSON value of this form is read as."""
    arms = [arm.type if isinstance(arm, inspect.Metadata) else arm for arm in union.types]
    if isinstance(value, dict):
        for arm in arms:
            if isinstance(arm, inspect.DictType):
                return arm
            if isinstance(arm, inspect.StructType) and (
                arm.tag_field is None or value.get(arm.tag_field) == arm.tag
            ):
                return arm
    if isinstance(value, list):
        for arm in arms:
            if isinstance(arm, inspect.CollectionType):
                return arm
    return inspect.AnyType()
