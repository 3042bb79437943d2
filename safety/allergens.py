"""Allergens that must not be there, held against a recipe and what is in store (Core §6.7; ruling S5).

Any match refuses. Nothing is substituted to get round one, and what cannot be told is not ruled out: a name
that nobody here knows, in the block or in a declaration, refuses too.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from events.catalogue import InventoryItem
from events.documents import Document, read
from events.texts import Name
from safety.documents import Recipe, Version
from safety.vocabulary import AllergenNames

INGREDIENT_ALLERGENS_RESOURCE: Final = "data/ingredient-allergens-0.2.json"
_BETWEEN_WORDS: Final = re.compile(r"[\s_.:-]+")
_SHOWN: Final = 80


class IngredientAllergens(Document, frozen=True):
    """The data file of what ingredients hold by nature: `exact` by id, else by every word of the id.

    It adds to what a recipe declares and never takes from it; an ingredient that is not in it proves nothing.
    """

    ingredient_allergens: Version
    words: dict[Name, list[Name]]
    exact: dict[Name, list[Name]]

    @classmethod
    def from_bytes(cls, raw: bytes) -> "IngredientAllergens":
        """Read such a file.

        Raises:
            DocumentError: not such a file.
        """
        return read(cls, raw)

    def of(self, ingredient_id: str) -> frozenset[str]:
        """What the ingredient of that id holds by nature; empty where nothing is known of it."""
        exact = self.exact.get(ingredient_id)
        if exact is not None:
            return frozenset(exact)
        words = _BETWEEN_WORDS.split(ingredient_id.casefold())
        return frozenset(name for word in words for name in self.words.get(word, ()))


@dataclass(frozen=True, slots=True)
class AllergenFacts:
    """What is known of allergens here: their names, and the ingredients they are in."""

    names: AllergenNames
    ingredients: IngredientAllergens

    @classmethod
    def from_bytes(cls, names: bytes, ingredients: bytes) -> "AllergenFacts":
        """Read both data files.

        Raises:
            DocumentError: one of them is none.
        """
        return cls(AllergenNames.from_bytes(names), IngredientAllergens.from_bytes(ingredients))


Stock = Mapping[str, Sequence[InventoryItem]]
"""What is in store, by the name of the device that said so."""


def why_blocked(
    blocks: Sequence[str], recipe: Recipe | None, stock: Stock, facts: AllergenFacts
) -> str | None:
    """In words, why a request that must not meet `blocks` is refused; None when nothing speaks against it.

    Args:
        recipe: what is to be cooked; None asks about the names and the store alone.
    """
    if not blocks:
        return None
    wanted: dict[str, str] = {}
    for block in blocks:
        name = normal(block)
        if name not in _known(facts.names):
            return f"unknown_allergen: nobody here knows {block[:_SHOWN]!r}, so it cannot be ruled out"
        for alike in facts.names.all_names_of(name):
            wanted.setdefault(alike, block)
    for found, where in _there(recipe, stock, facts):
        name = normal(found)
        for alike in facts.names.all_names_of(name):
            if alike in wanted:
                return f"{wanted[alike][:_SHOWN]} is blocked: {where}"
        if name not in _known(facts.names):
            return f"unknown_allergen: {where} names {found[:_SHOWN]!r}, which nobody here can tell apart"
    return None


def normal(name: str) -> str:
    """An allergen's name in the one spelling that is compared."""
    words = _BETWEEN_WORDS.split(name.strip().casefold())
    if words[:2] == ["cw", "allergen"]:
        words = words[2:]
    return "_".join(word for word in words if word)


def _known(names: AllergenNames) -> frozenset[str]:
    return frozenset((*names.eu14, *names.us9, *(name for group in names.alike for name in group)))


def _there(recipe: Recipe | None, stock: Stock, facts: AllergenFacts) -> Iterator[tuple[str, str]]:
    """Every allergen that may meet the diners, and where it was found."""
    if recipe is not None:
        declared = recipe.safety.allergens
        for list_name, names in (
            ("eu14", declared.eu14),
            ("us9", declared.us9),
            ("mayContain", declared.may_contain),
        ):
            for name in names or ():
                yield name, f"the recipe's safety.allergens.{list_name}"
        for ingredient in recipe.ingredients:
            for name in ingredient.allergens or ():
                yield name, f"the recipe's ingredient {ingredient.ref}"
            for name in sorted(facts.ingredients.of(ingredient.ingredient_id)):
                yield name, f"{ingredient.ingredient_id} (ingredient {ingredient.ref}) holds it"
    for device, items in stock.items():
        for item in items:
            what = item.name or item.ingredient_id or "an item"
            for name in item.allergens or ():
                yield name, f"{what[:_SHOWN]} in the inventory of {device}"
            for name in sorted(facts.ingredients.of(item.ingredient_id or "")):
                yield name, f"{item.ingredient_id} in the inventory of {device} holds it"
