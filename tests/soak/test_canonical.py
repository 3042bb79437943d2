"""The long version of what tests/events promises of canonical JSON: `make soak`."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.events.arbitrary_json import JSON, check_against_the_oracle

pytestmark = pytest.mark.soak


@settings(max_examples=200_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(JSON)
def test_two_hundred_thousand_documents_have_the_oracles_canonical_bytes(value: Any) -> None:
    check_against_the_oracle(value, json.dumps(value, ensure_ascii=False).encode())
