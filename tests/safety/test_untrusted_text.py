"""Text is data (Core §6.4): what tries to give orders is named, and changes nothing (ruling Q5)."""

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest
from cookwala_samples import load_bundle

from events.documents import from_plain
from safety.choice import Appliance, choose
from safety.device_documents import Capabilities, SafetyLimits
from safety.documents import Recipe
from safety.untrusted_text import FINDINGS_MOST, look_through, sign_of
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary
from tests.safety import hostile_texts

SAMPLES = load_bundle()
NOW = datetime(2026, 10, 5, 12, 0, tzinfo=UTC)
KINDS = ("GERMAN", "ENGLISH", "ARABIC", "TOOL_CALLS", "MARKUP", "OTHER_WORDS")


def test_there_are_a_hundred_hostile_texts_of_every_kind() -> None:
    assert len(set(hostile_texts.ALL)) == len(hostile_texts.ALL) >= 100
    assert all(len(getattr(hostile_texts, kind)) >= 10 for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_nine_of_ten_hostile_texts_are_recorded(kind: str) -> None:
    texts = getattr(hostile_texts, kind)
    assert sum(sign_of(text) is not None for text in texts) >= 0.9 * len(texts)


def test_at_most_one_in_a_hundred_of_the_sample_recipes_own_texts_is_recorded() -> None:
    for recipe in SAMPLES["recipes"].values():
        own = [text for text in _strings(recipe) if len(text) >= 8]
        assert sum(sign_of(text) is not None for text in own) <= 0.01 * len(own)


def test_kitchen_language_with_the_same_words_is_left_alone() -> None:
    assert [text for text in hostile_texts.HARMLESS if sign_of(text)] == []


def test_an_order_is_found_wherever_it_stands_even_as_a_name() -> None:
    order = hostile_texts.ENGLISH[0]
    document = {"a": [{"b": order}], "x-note": {order: 1}}
    assert {one.path.split(" ")[0].split(".")[1] for one in look_through(document)} == {"a[0]", "x-note"}
    assert len(look_through([order] * 100)) == FINDINGS_MOST


def test_a_long_or_deep_text_costs_little_and_breaks_nothing() -> None:
    nested: Any = hostile_texts.ENGLISH[0]
    for _ in range(5_000):
        nested = [nested]
    assert look_through(nested)
    for text in ("ignore " * 100_000, "(" * 100_000, "{{" * 50_000, '"name":' * 20_000, "a " * 100_000):
        sign_of(text)


# --- Nothing follows from it -----------------------------------------------------------------------------


FIELDS = (
    ("dish", "names", "en"),
    ("dish", "localName"),
    ("verification", "notes"),
    ("text", "en", "title"),
    ("text", "en", "intro"),
    ("text", "en", "culturalNotes"),
    ("text", "en", "steps", "n1"),
    ("text", "en", "tips", 0),
    ("ingredients", 0, "display", "en"),
    ("process", "nodes", 0, "notes", "en"),
    ("process", "nodes", 0, "assignment", "reason"),
    ("safety", "hazards", 0, "mitigation", 0),
    ("safety", "ccps", 0, "corrective"),
    ("safety", "ccps", 0, "monitoring", 0),
    ("safety", "supervision", "reasons", "n1"),
    ("x-note",),
)


def test_hostile_texts_in_every_free_text_field_change_no_verdict_and_no_choice() -> None:
    vocabulary = Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())
    limits = from_plain(SafetyLimits, SAMPLES["safetyLimits"])
    kitchen = [
        Appliance(name, from_plain(Capabilities, device), busy=False, limits=limits)
        for name, device in SAMPLES["devices"].items()
    ]
    recipe = SAMPLES["recipes"]["lentil-soup"]
    for number, field in enumerate(FIELDS):
        # Beside the same member with a harmless text: a field that is new must not itself make a difference.
        plain = choose(_recipe(_with(recipe, field, "as usual")), kitchen, vocabulary, now=NOW)
        assert plain.candidates
        for text in hostile_texts.ALL[number % 7 :: 7]:
            hostile = _with(recipe, field, text)
            assert choose(_recipe(hostile), kitchen, vocabulary, now=NOW) == plain, (field, text)
            assert look_through(hostile), (field, text)


def _recipe(plain: dict[str, Any]) -> Recipe:
    return from_plain(Recipe, plain)


def _with(recipe: dict[str, Any], field: tuple[str | int, ...], text: str) -> dict[str, Any]:
    """A copy of `recipe` with `text` at `field`; what is missing on the way is made."""
    copy: Any = json.loads(json.dumps(recipe))
    at = copy
    for step, following in itertools.pairwise(field):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            if not at:
                at.append(empty)
            at = at[step]
        else:
            at = at.setdefault(step, empty)
    last = field[-1]
    if isinstance(last, int):
        at[last:] = [text]
    else:
        at[last] = text
    return dict(copy)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
