"""Tokens are kept as hashes, and found by them."""

import hashlib

import pytest

from events.seams import SystemIds
from mandates.tokens import Actor, token_hash


def test_a_token_is_kept_as_its_sha_256() -> None:
    secret = SystemIds().secret()
    assert token_hash(secret) == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in token_hash(secret)


def test_only_the_very_token_has_its_hash() -> None:
    secret = SystemIds().secret()
    stored = token_hash(secret)
    for other in (SystemIds().secret(), secret[:-1], secret + " ", secret.swapcase(), "", stored):
        assert token_hash(other) != stored


@pytest.mark.parametrize("secret", ["\ud800", "ä", "\x00", "𝄞" * 10_000])
def test_no_text_in_place_of_a_token_raises(secret: str) -> None:
    assert token_hash(secret) != token_hash(SystemIds().secret())


def test_an_actor_is_bound_to_one_mandate_and_cannot_change() -> None:
    actor = Actor("agent:planner", "agent", "sha256:" + "0" * 64)
    assert Actor("person:anna", "owner").mandate_hash is None
    with pytest.raises(AttributeError):
        actor.id = "person:anna"  # type: ignore[misc]  # that is what is tried
