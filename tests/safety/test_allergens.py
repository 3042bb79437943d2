"""Any blocked allergen refuses, wherever it is found, and nothing gets round it (Core §6.7; ruling S5)."""

import json
from importlib.resources import files
from typing import Any

import pytest
from cookwala_samples import load_bundle

from events.catalogue import InventoryItem
from events.documents import DocumentError, from_plain
from safety.allergens import INGREDIENT_ALLERGENS_RESOURCE, AllergenFacts, normal, why_blocked
from safety.documents import Recipe
from safety.vocabulary import ALLERGENS_RESOURCE

SAMPLES = load_bundle()
SOUP = SAMPLES["recipes"]["lentil-soup"]


@pytest.fixture(scope="module")
def facts() -> AllergenFacts:
    room = files("safety")
    return AllergenFacts.from_bytes(
        room.joinpath(ALLERGENS_RESOURCE).read_bytes(),
        room.joinpath(INGREDIENT_ALLERGENS_RESOURCE).read_bytes(),
    )


def soup(declared: dict[str, Any] | None = None, **first_ingredient: Any) -> Recipe:
    copy = json.loads(json.dumps(SOUP))
    copy["safety"]["allergens"].update(declared or {})
    copy["ingredients"][0].update(first_ingredient)
    return from_plain(Recipe, copy)


OFFER = [{"ingredientId": "cw.ing.olive_oil", "note": "free of milk"}]
CASES: tuple[tuple[str, Recipe, dict[str, list[InventoryItem]], list[str], str | None], ...] = (
    ("nothing there", soup(), {}, ["milk"], None),
    ("no block", soup({"eu14": ["milk"]}), {}, [], None),
    ("declared, European list", soup({"eu14": ["milk"]}), {}, ["milk"], "milk is blocked"),
    ("declared, American list", soup({"us9": ["wheat"]}), {}, ["wheat"], "wheat is blocked"),
    ("the other list's word", soup({"us9": ["wheat"]}), {}, ["cereals_gluten"], "cereals_gluten is blocked"),
    ("the other list's word, back", soup({"eu14": ["nuts"]}), {}, ["tree_nuts"], "tree_nuts is blocked"),
    ("may contain", soup({"mayContain": ["sesame"]}), {}, ["sesame"], "mayContain"),
    ("an ingredient's own", soup(allergens=["celery"]), {}, ["celery"], "ingredient oil"),
    ("by nature", soup(ingredientId="cw.ing.butter_unsalted"), {}, ["milk"], "cw.ing.butter_unsalted"),
    ("by nature, named otherwise", soup(ingredientId="cw.ing.coconut_milk"), {}, ["milk"], None),
    ("a substitute is offered", soup(allergens=["milk"], substitutions=OFFER), {}, ["milk"], "is blocked"),
    (
        "by nature, a substitute is offered",
        soup(ingredientId="cw.ing.butter", substitutions=OFFER),
        {},
        ["milk"],
        "is blocked",
    ),
    ("optional all the same", soup(allergens=["fish"], optional=True), {}, ["fish"], "is blocked"),
    (
        "in store",
        soup(),
        {"fridge": [InventoryItem(name="tahini", allergens=["sesame"])]},
        ["sesame"],
        "fridge",
    ),
    (
        "in store, by nature",
        soup(),
        {"fridge": [InventoryItem(ingredient_id="cw.ing.egg_chicken_large")]},
        ["eggs"],
        "fridge",
    ),
    (
        "in store, another",
        soup(),
        {"fridge": [InventoryItem(name="oil", allergens=["fish"])]},
        ["eggs"],
        None,
    ),
    ("a second block", soup({"eu14": ["milk"]}), {}, ["fish", "milk"], "milk is blocked"),
    ("another spelling", soup({"eu14": ["milk"]}), {}, ["cw.allergen.Milk"], "is blocked"),
    ("capitals and blanks", soup({"us9": ["tree_nuts"]}), {}, [" Tree Nuts "], "is blocked"),
    ("a block nobody knows", soup(), {}, ["moonlight"], "unknown_allergen"),
    ("an empty block", soup(), {}, [""], "unknown_allergen"),
    ("a declaration nobody knows", soup({"mayContain": ["dairy-ish"]}), {}, ["milk"], "unknown_allergen"),
    ("a declaration nobody knows, no block", soup({"mayContain": ["dairy-ish"]}), {}, [], None),
)


@pytest.mark.parametrize(
    ("recipe", "stock", "blocks", "why"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_a_block_refuses_what_it_must_and_nothing_else(
    recipe: Recipe,
    stock: dict[str, list[InventoryItem]],
    blocks: list[str],
    why: str | None,
    facts: AllergenFacts,
) -> None:
    found = why_blocked(blocks, recipe, stock, facts)
    assert (found is None) == (why is None), found
    assert why is None or why in (found or "")


def test_more_blocks_never_let_more_through(facts: AllergenFacts) -> None:
    every = (*facts.names.eu14, *facts.names.us9)
    for recipe in SAMPLES["recipes"].values():
        read = from_plain(Recipe, recipe)
        refused = {name for name in every if why_blocked([name], read, {}, facts)}
        declared = {*recipe["safety"]["allergens"]["eu14"], *recipe["safety"]["allergens"]["us9"]}
        assert declared <= refused
        for name in refused:
            assert why_blocked([*every, name], read, {}, facts)


def test_every_fact_names_an_allergen_that_is_known(facts: AllergenFacts) -> None:
    known = {*facts.names.eu14, *facts.names.us9}
    for names in (*facts.ingredients.words.values(), *facts.ingredients.exact.values()):
        assert set(names) <= known
    assert all(normal(name) == name for name in known)


def test_an_item_that_says_nothing_of_itself_is_no_item() -> None:
    with pytest.raises(DocumentError):
        from_plain(InventoryItem, {"qty": 3})
    assert from_plain(InventoryItem, {"name": "rice", "qty": 3}) == InventoryItem(name="rice")
