"""The vocabularies that come with this package, or others from files: the one place that reads them."""

from importlib.resources import files
from pathlib import Path

from config.paths import read_at_most
from events.documents import MAX_DOCUMENT_BYTES
from safety.allergens import INGREDIENT_ALLERGENS_RESOURCE, AllergenFacts
from safety.units import UNITS_RESOURCE, Units
from safety.vocabulary import (
    ALLERGENS_RESOURCE,
    INCIDENTS_RESOURCE,
    VOCABULARY_RESOURCE,
    AllergenNames,
    IncidentTypes,
    Vocabulary,
)


def own_vocabulary() -> Vocabulary:
    """Operations and heat levels."""
    return Vocabulary.from_bytes(_own(VOCABULARY_RESOURCE))


def read_vocabulary(path: Path | None) -> Vocabulary:
    """Operations and heat levels from `path`, or our own where there is none.

    Raises:
        OSError: the file cannot be read.
        DocumentError: it holds no vocabulary.
    """
    return own_vocabulary() if path is None else Vocabulary.from_bytes(read_at_most(path, MAX_DOCUMENT_BYTES))


def own_units() -> Units:
    """Units."""
    return Units.from_bytes(_own(UNITS_RESOURCE))


def own_incident_types() -> IncidentTypes:
    """What an incident can be."""
    return IncidentTypes.from_bytes(_own(INCIDENTS_RESOURCE))


def own_allergen_names() -> AllergenNames:
    """Allergens by the names that recipes and households use."""
    return AllergenNames.from_bytes(_own(ALLERGENS_RESOURCE))


def own_allergen_facts() -> AllergenFacts:
    """Allergens by name, and the ingredients that hold them."""
    return AllergenFacts.from_bytes(_own(ALLERGENS_RESOURCE), _own(INGREDIENT_ALLERGENS_RESOURCE))


def _own(resource: str) -> bytes:
    return files("safety").joinpath(resource).read_bytes()
