"""What the tests of this room share: our vocabulary, and the public samples' documents."""

import json
from datetime import datetime
from importlib.resources import files
from typing import Any

import pytest

from events.times import parse_date_time
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return Vocabulary.from_bytes(files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())


@pytest.fixture(scope="session")
def samples() -> dict[str, Any]:
    bundle: dict[str, Any] = json.loads(files("cookwala_samples").joinpath("data/bundle.json").read_bytes())
    return bundle


@pytest.fixture(scope="session")
def now(samples: dict[str, Any]) -> datetime:
    return parse_date_time(samples["now"])
