"""Which recall concerns which revision (Core §6.8): in doubt it does."""

from typing import Any

import pytest

from mandates.documents import Signature
from safety.feed_documents import Recall, RecallTarget
from safety.recalls import concerns, refuses, stops, strictest

HASH, OTHER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def recall(*targets: dict[str, Any], action: str = "block", name: str = "rc-1") -> Recall:
    return Recall(
        core="0.2.0",
        kind="Recall",
        id=name,
        issued_at="2026-10-04T10:00:00Z",
        issuer="cookwala.ai",
        targets=[RecallTarget(**target) for target in targets],
        severity="high",
        reason="food_safety",
        action=action,  # type: ignore[arg-type] # one of the words
        signature=Signature(alg="EdDSA", kid="k", signed_at="2026-10-04T10:00:00Z", sig="x" * 86),
    )


@pytest.mark.parametrize(
    ("targets", "concerned"),
    [
        ([{"ref": "cw:cookwala.ai:soup", "hash": HASH}], True),
        ([{"ref": "cw:cookwala.ai:soup", "hash": OTHER}], False),
        ([{"ref": "cw:other.example:stew", "hash": HASH}], True),
        ([{"ref": "cw:cookwala.ai:soup", "all_revisions": True}], True),
        ([{"ref": "https://a.example/r#soup", "all_revisions": True}], True),
        ([{"ref": "soup", "all_revisions": True}], True),
        ([{"ref": "cw:other.example:soup", "all_revisions": True}], True),
        ([{"ref": "cw:cookwala.ai:soup"}], True),
        ([{"ref": "cw:cookwala.ai:soup", "all_revisions": False}], True),
        ([{"ref": "cw:cookwala.ai:soup", "hash": OTHER, "all_revisions": True}], True),
        ([{"ref": "cw:cookwala.ai:stew", "all_revisions": True}], False),
        ([{"ref": "cw:cookwala.ai:stew"}, {"ref": "cw:cookwala.ai:soup"}], True),
    ],
)
def test_a_target_hits_by_hash_or_by_the_recipe_as_a_whole(
    targets: list[dict[str, Any]], concerned: bool
) -> None:
    one = recall(*targets)
    for name in ("soup", "cw:cookwala.ai:soup", "https://b.example/recipes#soup"):
        assert concerns(one, recipe=name, recipe_hash=HASH) is concerned


def test_of_several_recalls_the_strictest_counts() -> None:
    target = {"ref": "soup"}
    warn, block = recall(target, action="warn"), recall(target, action="block")
    stop = recall(target, action="block_and_stop_running")
    for several in ((warn, block, stop), (stop, block, warn)):
        assert strictest(several, recipe="soup", recipe_hash=HASH) == stop
    assert strictest((warn,), recipe="soup", recipe_hash=HASH) == warn
    assert strictest((warn, block), recipe="stew", recipe_hash=HASH) is None
    assert [refuses(one) for one in (warn, block, stop)] == [False, True, True]
    assert [stops(one) for one in (warn, block, stop)] == [False, False, True]
