"""A feed that is forged, foreign, older or shortened gives nothing and takes nothing (ruling T6)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.canonical import document_hash
from hub.recall_feed import FeedError, read_feed
from mandates.documents import KeyRecord
from mandates.keys import PrivateKey
from mandates.signature import sign_document
from safety.feed_documents import Recall
from safety.recalls import RecallBook, refuses

NOW = datetime(2026, 10, 5, 12, 0, tzinfo=UTC)
KEY = PrivateKey.from_seed(b"k" * 32, kid="https://cookwala.ai#1")
STRANGER = PrivateKey.from_seed(b"s" * 32, kid="https://cookwala.ai#1")
RECORD = KEY.record(actor="https://cookwala.ai", valid_from=NOW - timedelta(days=9))
ISSUERS = frozenset({"cookwala.ai", "https://cookwala.ai"})


def recall(
    name: str = "rc-1", key: PrivateKey = KEY, at: datetime = NOW, form: Any = "header", **more: Any
) -> dict[str, Any]:
    plain = {
        "core": "0.2.0",
        "kind": "Recall",
        "id": name,
        "issuedAt": "2026-10-04T10:00:00Z",
        "issuer": "cookwala.ai",
        "targets": [{"ref": "cw:cookwala.ai:soup"}],
        "severity": "high",
        "reason": "food_safety",
        "action": "block",
        **more,
    }
    return sign_document(plain, key, signed_at=at, form=form)


def judged(feed: Any, keys: tuple[KeyRecord, ...] = (RECORD,), known: frozenset[str] = frozenset()) -> Any:
    raw = feed if isinstance(feed, bytes) else json.dumps(feed).encode()
    return read_feed(raw, issuers=ISSUERS, keys=keys, known=known, now=NOW, max_bytes=100_000)


def test_a_good_feed_is_learned_and_each_document_kept_as_it_came() -> None:
    one, other = recall("rc-1"), recall("rc-2", form="hash")
    raw = b"[ " + json.dumps(one, indent=3).encode() + b" , " + json.dumps(other).encode() + b"]"
    feed = judged(raw)
    assert [new.recall.id for new in feed.new] == ["rc-1", "rc-2"]
    assert feed.new[0].text == json.dumps(one, indent=3)
    assert feed.new[0].hash == document_hash(one)
    assert judged({"recalls": [one]}).new[0].hash == feed.new[0].hash
    again = judged(raw, known=frozenset(new.hash for new in feed.new))
    assert (again.new, again.known, again.said) == ((), 2, 2)


FORGED: tuple[tuple[str, dict[str, Any], tuple[KeyRecord, ...], str], ...] = (
    ("another's key", recall(key=STRANGER), (RECORD,), "bad_signature"),
    ("a changed value", {**recall(), "action": "warn"}, (RECORD,), "bad_signature"),
    ("no signature", {n: v for n, v in recall().items() if n != "signature"}, (RECORD,), "unreadable"),
    ("no key known", recall(), (), "unknown_key"),
    (
        "the key of somebody else",
        recall(),
        (KEY.record(actor="https://other.example", valid_from=NOW - timedelta(days=9)),),
        "unknown_key",
    ),
    ("another issuer", recall(issuer="other.example"), (RECORD,), "foreign_issuer"),
    ("a key that is over", recall(at=NOW - timedelta(days=20)), (RECORD,), "key_not_valid_at_signing_time"),
    ("an unknown member", {**recall(), "unrecall": True}, (RECORD,), "unreadable"),
    ("another Core", recall(core="0.3.0"), (RECORD,), "unsupported_version"),
    (
        "another Core, with members of its own",
        recall(core="9.9.9", colour="red"),
        (RECORD,),
        "unsupported_version",
    ),
    ("no object", {"core": 5}, (RECORD,), "unreadable"),
)


@pytest.mark.parametrize(
    ("forged", "keys", "reason"), [case[1:] for case in FORGED], ids=[case[0] for case in FORGED]
)
def test_what_does_not_hold_is_named_and_the_others_hold(
    forged: dict[str, Any], keys: tuple[KeyRecord, ...], reason: str
) -> None:
    good = recall("rc-good")
    feed = judged([forged, good], keys)
    assert feed.passed_over[0].reason == reason
    assert [one.recall.id for one in feed.new] == (["rc-good"] if keys == (RECORD,) else [])


def test_a_recall_signed_with_a_key_revoked_before_it_was_seen_is_none() -> None:
    revoked = msgspec.structs.replace(RECORD, revoked_at="2026-10-05T11:00:00Z")
    backdated = recall(at=NOW - timedelta(hours=3), form="hash")
    assert [one.reason for one in judged([backdated], (revoked,)).passed_over] == ["seen_after_revocation"]


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"5", b'{"recalls": {}}', b"[", b'[{"a":1,"a":2}]', b"[" * 100, b"x" * 200_000]
)
def test_what_is_no_feed_is_refused_as_a_whole(raw: bytes) -> None:
    with pytest.raises(FeedError):
        judged(raw)


_SOUPS = ("soup", "stew", "broth")
_POOL = tuple(
    recall(f"rc-{number}", targets=[{"ref": f"cw:cookwala.ai:{_SOUPS[number % 3]}"}], action=action)
    for number, action in enumerate(("warn", "block", "block_and_stop_running", "block", "warn", "block"))
)
_SAID = st.lists(
    st.tuples(st.integers(0, len(_POOL) - 1), st.sampled_from(("good", "forged", "unsigned"))), max_size=6
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(_SAID, st.just("no feed")), max_size=8))
def test_whatever_feeds_come_what_is_refused_is_what_was_ever_said_well(feeds: list[Any]) -> None:
    """Against a model that knows sets and no product code: refused once, refused for ever."""
    kept: dict[str, Recall] = {}
    model: set[str] = set()
    for feed in feeds:
        if feed == "no feed":
            with pytest.raises(FeedError):
                judged(b'"no feed"', known=frozenset(kept))
        else:
            kept.update((new.hash, new.recall) for new in judged(_told(feed), known=frozenset(kept)).new)
            model |= {
                _SOUPS[number % 3]
                for number, how in feed
                if how == "good" and _POOL[number]["action"] != "warn"
            }
        refused = {
            soup
            for soup in _SOUPS
            if (found := RecallBook(kept.values()).strictest(recipe=soup, recipe_hash="sha256:none"))
            and refuses(found)
        }
        assert refused == model


def _told(feed: list[tuple[int, str]]) -> list[dict[str, Any]]:
    """The recalls of the pool as they come: as signed, with an action changed, or without a signature."""
    told = []
    for number, how in feed:
        one = dict(_POOL[number])
        if how == "forged":
            one["action"] = "warn" if one["action"] != "warn" else "block"
        elif how == "unsigned":
            del one["signature"]
        told.append(one)
    return told
