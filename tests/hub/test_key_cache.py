"""Keys others published, kept for when they cannot be asked: age, rotation, revocation, changed keys."""

import json
import os
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hub.key_cache import KNOWN_MOST, KeyCache, KeyCacheError, KnownKey, learn
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import sign_document, verify_document

SOURCE = "https://recipes.example/.well-known/cookwala.json"
AT = datetime(2026, 7, 1, tzinfo=UTC)
LATER = AT + timedelta(days=3)
OLD = PrivateKey.from_seed(bytes([61]) * 32, kid="https://recipes.example#1")
NEW = PrivateKey.from_seed(bytes([62]) * 32, kid="https://recipes.example#2")
STOLEN = PrivateKey.from_seed(bytes([63]) * 32, kid=OLD.kid)


def record(key: PrivateKey = OLD, **times: str) -> KeyRecord:
    bare = key.record(actor="recipes", valid_from=datetime(2026, 1, 1, tzinfo=UTC))
    return msgspec.structs.replace(bare, **times)


@pytest.fixture
def cache(tmp_path: Path) -> KeyCache:
    return KeyCache(tmp_path / "known-keys.json")


def ring(cache: KeyCache) -> KeyRing:
    return KeyRing(key.record for key in cache.read())


def test_what_was_fetched_once_verifies_offline_ever_after(cache: KeyCache) -> None:
    cache.learn([record()], source=SOURCE, at=AT)
    signed = sign_document({"kind": "Recall"}, OLD, signed_at=AT)
    assert verify_document(signed, ring(cache)).ok
    (known,) = cache.read()
    assert (known.source, known.age_s(LATER)) == (SOURCE, 3 * 86_400)
    assert known.age_s(AT - timedelta(hours=1)) == 0


def test_a_confirmed_key_is_young_again_and_an_absent_one_grows_old(cache: KeyCache) -> None:
    cache.learn([record(OLD), record(NEW)], source=SOURCE, at=AT)
    learned = cache.learn([record(NEW)], source=SOURCE, at=LATER)
    assert (learned.confirmed, learned.absent) == ((NEW.kid,), (OLD.kid,))
    assert {key.record.kid: key.age_s(LATER) for key in cache.read()} == {OLD.kid: 3 * 86_400, NEW.kid: 0}


def test_rotation_and_revocation_are_honoured(cache: KeyCache) -> None:
    cache.learn([record(OLD)], source=SOURCE, at=AT)
    learned = cache.learn(
        [record(OLD, revoked_at="2026-07-02T00:00:00Z"), record(NEW)], source=SOURCE, at=LATER
    )
    assert (learned.added, learned.changed, learned.refused) == ((NEW.kid,), (OLD.kid,), ())
    before = sign_document({"kind": "Recall"}, OLD, signed_at=AT)
    after = sign_document({"kind": "Recall"}, OLD, signed_at=LATER)
    assert verify_document(before, ring(cache)).ok
    assert verify_document(after, ring(cache)).reason == "key_revoked"
    assert verify_document(sign_document({"kind": "Recall"}, NEW, signed_at=LATER), ring(cache)).ok


@pytest.mark.parametrize(
    ("known", "found", "word"),
    [
        (record(), record(STOLEN), "another key"),
        (record(), msgspec.structs.replace(record(), actor="mallory"), "another owner"),
        (record(), msgspec.structs.replace(record(), alg="ES256"), "another algorithm"),
        (record(revoked_at="2026-07-02T00:00:00Z"), record(), "revocation back"),
        (
            record(revoked_at="2026-07-02T00:00:00Z"),
            record(revoked_at="2026-08-02T00:00:00Z"),
            "puts it off",
        ),
    ],
)
def test_what_would_change_a_known_key_is_refused_said_and_leaves_it_as_it_was(
    cache: KeyCache, known: KeyRecord, found: KeyRecord, word: str
) -> None:
    cache.learn([known], source=SOURCE, at=AT)
    learned = cache.learn([found, record(NEW)], source=SOURCE, at=LATER)
    assert [one.kid for one in learned.refused] == [OLD.kid]
    assert word in learned.refused[0].why
    assert learned.added == (NEW.kid,)
    kept = {key.record.kid: key for key in cache.read()}
    assert kept[OLD.kid].record == known
    assert kept[OLD.kid].age_s(LATER) == 3 * 86_400


def test_a_kid_can_be_learned_anew_after_a_person_let_go_of_it(cache: KeyCache) -> None:
    cache.learn([record()], source=SOURCE, at=AT)
    assert cache.forget(OLD.kid)
    assert not cache.forget(OLD.kid)
    assert cache.learn([record(STOLEN)], source=SOURCE, at=LATER).added == (OLD.kid,)


def test_another_source_may_revoke_a_key_and_nothing_else(cache: KeyCache) -> None:
    cache.learn([record()], source=SOURCE, at=AT)
    wider = cache.learn([record(valid_to="2030-01-01T00:00:00Z")], source="keys.json", at=LATER)
    assert "alone may change it" in wider.refused[0].why
    same = cache.learn([record()], source="keys.json", at=LATER)
    assert (same.refused, same.confirmed, same.changed) == ((), (), ())
    assert cache.read()[0].age_s(LATER) == 3 * 86_400
    revoked = cache.learn([record(revoked_at="2026-07-01T00:00:00Z")], source="keys.json", at=LATER)
    assert revoked.changed == (OLD.kid,)
    assert cache.read()[0].source == SOURCE
    assert cache.learn([record()], source=SOURCE, at=LATER).refused


def test_the_file_is_private_and_whole(cache: KeyCache, tmp_path: Path) -> None:
    assert cache.read() == ()
    cache.learn([record()], source=SOURCE, at=AT)
    path = tmp_path / "known-keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("content", [b"", b"{", b'{"version":2,"keys":[]}', b'{"version":1,"keys":[{}]}'])
def test_a_file_that_is_none_is_named_and_not_overwritten(
    cache: KeyCache, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "known-keys.json"
    path.write_bytes(content)
    with pytest.raises(KeyCacheError, match=r"known-keys\.json"):
        cache.learn([record()], source=SOURCE, at=AT)
    assert path.read_bytes() == content


def test_a_cache_without_end_is_not_read_to_it(cache: KeyCache, tmp_path: Path) -> None:
    (tmp_path / "known-keys.json").touch()
    os.truncate(tmp_path / "known-keys.json", 2**42)
    with pytest.raises(KeyCacheError, match="too_large"):
        cache.read()


def test_a_link_in_the_locks_place_is_not_followed(cache: KeyCache, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / ".known-keys.json.lock").symlink_to(elsewhere)
    with pytest.raises(KeyCacheError, match=r"known-keys\.json\.lock cannot be opened"):
        cache.learn([record()], source=SOURCE, at=AT)
    with pytest.raises(KeyCacheError, match=r"known-keys\.json\.lock cannot be opened"):
        cache.forget(OLD.kid)
    assert not elsewhere.exists()
    assert cache.read() == ()


def test_readings_at_the_same_time_lose_none_of_what_was_learned(tmp_path: Path) -> None:
    keys = [PrivateKey.from_seed(bytes([n, *[7] * 31]), kid=f"k{n}") for n in range(1, 17)]

    def learn_one(key: PrivateKey) -> None:
        KeyCache(tmp_path / "known-keys.json").learn([record(key)], source=f"file-{key.kid}", at=AT)

    threads = [threading.Thread(target=learn_one, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = {key.record.kid for key in KeyCache(tmp_path / "known-keys.json").read()}
    assert kept == {key.kid for key in keys}


def test_no_source_fills_the_cache_beyond_its_bound() -> None:
    one: Any = KnownKey(record=record(), source=SOURCE, fetched_at="2026-07-01T00:00:00Z")
    full = [
        msgspec.structs.replace(one, record=msgspec.structs.replace(record(), kid=f"k{n}"))
        for n in range(KNOWN_MOST)
    ]
    learned = learn(full, [record(NEW)], source=SOURCE, at=AT)
    assert len(learned.known) == KNOWN_MOST
    assert learned.refused[0].kid == NEW.kid


def test_the_file_reads_as_what_it_is(cache: KeyCache, tmp_path: Path) -> None:
    cache.learn([record()], source=SOURCE, at=AT)
    plain = json.loads((tmp_path / "known-keys.json").read_text())
    assert plain["keys"][0]["source"] == SOURCE
    assert plain["keys"][0]["fetchedAt"] == "2026-07-01T00:00:00.000Z"
    assert plain["keys"][0]["record"]["publicKey"] == OLD.public_key()
