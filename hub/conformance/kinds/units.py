"""`units`: a quantity in another unit, or whether a quantity is one at all (Core §4)."""

import functools
from collections.abc import Mapping
from typing import Any

from events.documents import Document, DocumentError, from_plain
from hub.vocabularies import own_units
from safety.documents import Quantity
from safety.units import ConversionRefusal, Units, exact


class Question(Document, frozen=True):
    """A quantity, and the unit it is wanted in."""

    value: float
    unit: str
    to: str
    density: float | None = None


def answer(given: Any) -> Mapping[str, Any]:
    """`{value}`, or `{error}` with its reason, or for a `{quantity}` `{schemaValid}`.

    Raises:
        DocumentError: neither of the two questions.
        ValueError: a number that no document can hold.
    """
    if isinstance(given, dict) and given.keys() == {"quantity"}:
        return {"schemaValid": _is_quantity(given["quantity"])}
    question = from_plain(Question, given)
    density = None if question.density is None else exact(question.density)
    done = _units().convert(exact(question.value), question.unit, question.to, density_g_per_ml=density)
    return {"error": done.reason} if isinstance(done, ConversionRefusal) else {"value": float(done.value)}


def _is_quantity(plain: Any) -> bool:
    try:
        from_plain(Quantity, plain)
    except DocumentError:
        return False
    return True


@functools.cache
def _units() -> Units:
    return own_units()
