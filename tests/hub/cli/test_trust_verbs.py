"""hash, sign, verify, keys, disclose, conformance: documents and their signatures from the command line."""

import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from config.paths import DataFolder
from events.canonical import document_hash
from events.documents import read
from hub.cli.errors import CommandError
from hub.cli.known_keys import gather
from hub.key_cache import KeyCache
from mandates.documents import KeyRecord
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import verify_document
from tests.conformance.make_vectors import FOLDER

ORDER = {"kind": "Order", "note": "at 7", "guests": [{"name": "Ida", "diet": "low salt"}], "price": "12.70"}

OTHER_KEY = PrivateKey.from_seed(bytes([74]) * 32, kid="other").public_key()


@pytest.fixture
def order(tmp_path: Path) -> Path:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(ORDER), "utf-8")
    return path


@pytest.fixture
def key(aboyeur: Callable[..., Any], folder: DataFolder) -> KeyRecord:
    """The public record of person:anna's key in the data folder."""
    assert aboyeur("keys", "new", "person:anna").code == 0
    return read(KeyRecord, folder.public_key("person:anna").read_bytes())


def test_hash_prints_the_hash_of_each_file(aboyeur: Callable[..., Any], order: Path) -> None:
    ended = aboyeur("hash", str(order), str(order))
    assert (ended.code, ended.out) == (0, f"{document_hash(ORDER)}  {order}\n" * 2)
    assert aboyeur("hash", str(order), "--json").json() == {
        "files": [{"file": str(order), "hash": document_hash(ORDER), "stated": None, "fits": True}]
    }


def test_hash_finds_a_document_that_states_another(aboyeur: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "stated.json"
    path.write_text(json.dumps({**ORDER, "hash": document_hash(ORDER)}))
    assert aboyeur("hash", str(path)).code == 0
    path.write_text(json.dumps({**ORDER, "note": "at 8", "hash": document_hash(ORDER)}))
    ended = aboyeur("hash", str(path))
    assert ended.code == 1
    assert "another hash" in ended.err


@pytest.mark.parametrize("verb", ["hash", "sign", "verify"])
@pytest.mark.parametrize(
    ("content", "code", "word"),
    [
        (None, 2, "cannot be read"),
        (b"{", 1, "not_json"),
        (b"[]", 1, "object"),
        (b'{"a":1,"a":2}', 1, "duplicate_key"),
        (b"[" * 5000 + b"]" * 5000, 1, "too_deep"),
    ],
)
def test_what_is_no_document_is_said_in_words(
    aboyeur: Callable[..., Any], tmp_path: Path, verb: str, content: bytes | None, code: int, word: str
) -> None:
    path = tmp_path / "document.json"
    if content is not None:
        path.write_bytes(content)
    ended = aboyeur(verb, str(path))
    assert ended.code == code
    assert word in ended.err


@pytest.mark.parametrize(
    "words", [("hash",), ("sign",), ("verify",), ("validate",), ("keys", "import"), ("verify", "--keys")]
)
def test_no_file_is_read_beyond_what_a_document_may_have(
    aboyeur: Callable[..., Any], tmp_path: Path, key: KeyRecord, words: tuple[str, ...]
) -> None:
    vast = tmp_path / "vast.json"
    vast.touch()
    os.truncate(vast, 2**42)  # no disk is taken, and no memory holds it
    before = [str(tmp_path / "order.json")] if words[-1] == "--keys" else []
    (tmp_path / "order.json").write_text(json.dumps(ORDER))
    ended = aboyeur(*words[:1], *before, *words[1:], str(vast))
    assert ended.code == 1
    assert "too_large" in ended.out + ended.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("recipes", "add"), 1),
        (("people", "add", "person:ben", "--key"), 2),
        (("cook", "koshari", "--agent-pass"), 2),
        (("envelope", "cw.op.simmer", "--vocabulary"), 1),
    ],
)
def test_no_file_for_the_hub_is_read_without_end_either(
    aboyeur: Callable[..., Any], tmp_path: Path, hub: Any, words: tuple[str, ...], code: int
) -> None:
    vast = tmp_path / "vast.json"
    vast.touch()
    os.truncate(vast, 2**42)
    ended = aboyeur(*words, str(vast), url=hub.url)
    assert ended.code == code
    assert "vast.json" in ended.out + ended.err
    assert [asked for asked in hub.asked if asked.method == "POST"] == []


@pytest.mark.parametrize("form", ["header", "hash"])
def test_what_is_signed_verifies_in_its_form(
    aboyeur: Callable[..., Any], order: Path, key: KeyRecord, tmp_path: Path, form: str
) -> None:
    out = tmp_path / "signed.json"
    assert aboyeur("sign", str(order), "--as", "person:anna", "--form", form, "--out", str(out)).code == 0
    verdict = verify_document(json.loads(out.read_bytes()), KeyRing([key]))
    assert (verdict.ok, verdict.form) == (True, form)
    ended = aboyeur("verify", str(out))
    assert ended.code == 0
    assert ended.out.startswith("ok\n")
    assert key.kid in ended.out
    assert ("signedAt_unprotected" in ended.out) is (form == "hash")
    told = aboyeur("verify", str(out), "--json").json()
    assert (told["ok"], told["reason"], told["form"], told["actor"]) == (True, "ok", form, "person:anna")
    assert told["keyAgeS"] is None
    assert told["keySource"].endswith("person:anna.pub.json")


def test_sign_prints_the_document_and_takes_the_only_person_here(
    aboyeur: Callable[..., Any], order: Path, key: KeyRecord
) -> None:
    ended = aboyeur("sign", str(order))
    assert verify_document(ended.json(), KeyRing([key])).ok


def test_sign_needs_a_key_and_overwrites_nothing(
    aboyeur: Callable[..., Any], order: Path, tmp_path: Path
) -> None:
    ended = aboyeur("sign", str(order), "--as", "person:ben")
    assert ended.code == 1
    assert "aboyeur keys new person:ben" in ended.err
    aboyeur("keys", "new", "person:ben")
    assert aboyeur("sign", str(order), "--as", "person:ben", "--out", str(order)).code == 2
    assert json.loads(order.read_bytes()) == ORDER
    order.write_text(json.dumps({**ORDER, "hash": "sha256:" + "0" * 64}))
    assert aboyeur("sign", str(order), "--as", "person:ben").code == 1


def test_a_kind_that_the_document_does_not_name_is_part_of_the_signature(
    aboyeur: Callable[..., Any], tmp_path: Path, key: KeyRecord
) -> None:
    path, out = tmp_path / "event.json", tmp_path / "event.signed.json"
    path.write_text('{"mission":"m-1","seq":0}')
    assert aboyeur("sign", str(path), "--kind", "Event", "--out", str(out)).code == 0
    assert aboyeur("verify", str(out), "--kind", "Event").code == 0
    assert aboyeur("verify", str(out)).code == 1


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda document: document.update(note="at 8"), "bad_signature"),
        (lambda document: document.pop("signature"), "unsigned"),
        (lambda document: document["signature"].update(kid="nobody#1"), "unknown_key"),
        (lambda document: document["signature"].pop("signedAt"), "unsigned_time"),
        (lambda document: document["signature"].update(alg="ES256"), "alg_mismatch"),
        (
            lambda document: document["signature"].update(signedAt="2020-01-01T00:00:00Z"),
            "key_not_valid_at_signing_time",
        ),
    ],
)
def test_verify_names_why_a_signature_does_not_hold(
    aboyeur: Callable[..., Any],
    order: Path,
    key: KeyRecord,
    tmp_path: Path,
    spoil: Callable[[dict[str, Any]], Any],
    reason: str,
) -> None:
    document = aboyeur("sign", str(order)).json()
    spoil(document)
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps(document))
    ended = aboyeur("verify", str(path))
    assert ended.code == 1
    assert ended.out.startswith(reason)
    told = aboyeur("verify", str(path), "--json")
    assert (told.code, told.json()["ok"], told.json()["reason"]) == (1, False, reason)


@pytest.fixture
def elsewhere(
    aboyeur: Callable[..., Any], order: Path, key: KeyRecord, folder: DataFolder, tmp_path: Path
) -> tuple[Path, Path]:
    """A signed document and the signer's public record, on a machine that knows nothing of the signer."""
    signed, record = tmp_path / "signed.json", tmp_path / "anna.pub.json"
    aboyeur("sign", str(order), "--out", str(signed))
    shutil.move(folder.public_key("person:anna"), record)
    folder.key("person:anna").unlink()
    return signed, record


def test_a_key_at_hand_or_imported_verifies_offline(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path], folder: DataFolder
) -> None:
    signed, record = elsewhere
    assert aboyeur("verify", str(signed)).out.startswith("unknown_key")
    assert aboyeur("verify", str(signed), "--keys", str(record)).code == 0
    assert aboyeur("keys", "import", str(record)).code == 0
    told = aboyeur("verify", str(signed), "--json").json()
    assert told["ok"]
    assert 0 <= told["keyAgeS"] < 60
    assert "just now" in aboyeur("verify", str(signed)).out
    assert stat.S_IMODE(folder.known_keys.stat().st_mode) == 0o600


def test_a_revocation_that_is_known_counts_against_an_older_file(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path], tmp_path: Path
) -> None:
    signed, record = elsewhere
    revoked = tmp_path / "revoked.json"
    plain = json.loads(record.read_bytes())
    revoked.write_text(json.dumps({**plain, "revokedAt": plain["validFrom"]}))
    assert aboyeur("keys", "import", str(revoked)).code == 0
    told = aboyeur("verify", str(signed), "--keys", str(record), "--json")
    assert (told.code, told.json()["reason"]) == (1, "key_revoked")
    assert "revoked" in told.json()["remarks"][0]


JULY, AUGUST = "2026-07-01T00:00:00Z", "2026-08-01T02:00:00+02:00"


@pytest.mark.parametrize("first", ["named", "named too", "own", "cache"])
@pytest.mark.parametrize("other", ["named", "named too", "own", "cache", None])
def test_the_earliest_revocation_counts_wherever_it_is_known_from(
    folder: DataFolder, tmp_path: Path, first: str, other: str | None
) -> None:
    # In the four places one key can be known from: revoked in July in `first`, in August in `other`.
    key = PrivateKey.from_seed(bytes([75]) * 32, kid="baker#1")
    bare = key.record(actor="baker", valid_from=datetime(2026, 1, 1, tzinfo=UTC))
    record = dict.fromkeys(("named", "named too", "own", "cache"), bare)
    if other is not None:
        record[other] = msgspec.structs.replace(bare, revoked_at=AUGUST, revocation_reason="superseded")
    record[first] = msgspec.structs.replace(bare, revoked_at=JULY, revocation_reason="compromised")
    files = []
    for place in ("named", "named too"):
        files.append(tmp_path / f"{place}.json")
        files[-1].write_bytes(msgspec.json.encode(record[place]))
    folder.public_key("baker").write_bytes(msgspec.json.encode(record["own"]))
    now = datetime(2026, 9, 1, tzinfo=UTC)
    KeyCache(folder.known_keys).learn([record["cache"]], source="a file", at=now)
    (gathered,) = gather(folder, files, now).ring
    assert (gathered.revoked_at, gathered.revocation_reason) == (JULY, "compromised")


def test_two_named_files_may_differ_about_a_revocation_and_nothing_else(
    folder: DataFolder, tmp_path: Path
) -> None:
    now = datetime(2026, 9, 1, tzinfo=UTC)
    bare = PrivateKey.from_seed(bytes([75]) * 32, kid="baker#1").record(actor="baker", valid_from=now)
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    files[0].write_bytes(msgspec.json.encode(bare))
    files[1].write_bytes(msgspec.json.encode(msgspec.structs.replace(bare, actor="miller", revoked_at=JULY)))
    with pytest.raises(CommandError, match="differ"):
        gather(folder, files, now)


def test_a_revocation_of_another_key_by_that_name_is_a_remark(folder: DataFolder, tmp_path: Path) -> None:
    now = datetime(2026, 9, 1, tzinfo=UTC)
    bare = PrivateKey.from_seed(bytes([75]) * 32, kid="baker#1").record(actor="baker", valid_from=now)
    (tmp_path / "one.json").write_bytes(msgspec.json.encode(bare))
    other = msgspec.structs.replace(bare, public_key=OTHER_KEY, revoked_at=JULY)
    KeyCache(folder.known_keys).learn([other], source="a file", at=now)
    known = gather(folder, [tmp_path / "one.json"], now)
    assert list(known.ring) == [bare]
    assert known.remarks[0].startswith("a file knows another key as baker#1")


def test_keys_of_others_are_listed_with_their_age_and_what_they_are_worth(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path]
) -> None:
    assert "aboyeur keys fetch" in aboyeur("keys", "list").out
    _, record = elsewhere
    aboyeur("keys", "import", str(record))
    (row,) = aboyeur("keys", "list", "--json").json()["keys"]
    assert row["record"] == json.loads(record.read_bytes())
    assert (row["source"], row["standing"]) == (str(record), "valid")
    assert 0 <= row["ageS"] < 60
    assert row["record"]["kid"] in aboyeur("keys", "list").out


def test_a_changed_key_is_refused_until_a_person_lets_go_of_the_old_one(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path], tmp_path: Path
) -> None:
    _, record = elsewhere
    aboyeur("keys", "import", str(record))
    plain = json.loads(record.read_bytes())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**plain, "publicKey": OTHER_KEY}))
    refused = aboyeur("keys", "import", str(other))
    assert refused.code == 1
    assert "another key" in refused.out
    assert aboyeur("keys", "list", "--json").json()["keys"][0]["record"] == plain
    assert aboyeur("keys", "forget", plain["kid"]).code == 0
    assert aboyeur("keys", "forget", plain["kid"]).code == 1
    assert aboyeur("keys", "import", str(other)).code == 0


def test_what_was_learned_of_keys_is_told_to_scripts(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path], tmp_path: Path, hub: Any
) -> None:
    plain = json.loads(elsewhere[1].read_bytes())
    kid = plain["kid"]
    nothing: dict[str, list[Any]] = {
        "new": [],
        "changed": [],
        "confirmed": [],
        "noLongerNamed": [],
        "refused": [],
    }
    hub.on("GET", "/.well-known/cookwala.json", {"keys": [plain]})
    fetched = aboyeur("keys", "fetch", hub.url, "--json").json()
    assert fetched == {**nothing, "source": fetched["source"], "new": [kid]}
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**plain, "publicKey": OTHER_KEY}))
    refused = aboyeur("keys", "import", str(other), "--json")
    (one,) = refused.json()["refused"]
    assert (refused.code, refused.json()["source"], one["kid"]) == (1, str(other), kid)
    assert "another key" in one["why"]
    assert aboyeur("keys", "forget", kid, "--json").json() == {"forgot": kid}


def test_keys_are_fetched_from_a_catalogue_and_stay_when_it_goes_silent(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path], hub: Any
) -> None:
    signed, record = elsewhere
    plain = json.loads(record.read_bytes())
    hub.on("GET", "/.well-known/cookwala.json", {"keys": [plain]})
    fetched = aboyeur("keys", "fetch", hub.url)
    assert (fetched.code, fetched.out) == (0, f"new: {plain['kid']}\n")
    assert aboyeur("keys", "fetch", hub.url).out == f"confirmed: {plain['kid']}\n"
    hub.on("GET", "/.well-known/cookwala.json", {"keys": [{**plain, "publicKey": OTHER_KEY}]})
    assert aboyeur("keys", "fetch", hub.url).code == 1
    hub.problem("GET", "/.well-known/cookwala.json", 503, "down")
    silent = aboyeur("keys", "fetch", hub.url)
    assert silent.code == 1
    assert "1 known from it stay, last confirmed just now" in silent.err
    assert aboyeur("verify", str(signed)).code == 0
    hub.on("GET", "/.well-known/cookwala.json", {"keys": [{**plain, "revokedAt": plain["validFrom"]}]})
    assert aboyeur("keys", "fetch", hub.url).out == f"changed: {plain['kid']}\n"
    assert aboyeur("verify", str(signed)).out.startswith("key_revoked")


@pytest.mark.parametrize(
    "address",
    [
        "http://recipes.example",
        "did:key:z6Mk",
        "recipes.example",
        "https://[::1",
        "https://xn--zzzzzz--/",
        "did:web:xn--zzzzzz--",
        "https://recipes.example:port",
        "https://recipes.example/\udcff",
        "did:web:bakery.example:%ff",
    ],
)
def test_an_address_that_may_not_be_asked_is_words(aboyeur: Callable[..., Any], address: str) -> None:
    ended = aboyeur("keys", "fetch", address)
    assert ended.code == 1
    assert ended.err.startswith("aboyeur: ")


def test_a_catalogue_that_leads_nowhere_is_words(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.on("GET", "/.well-known/cookwala.json", b"http://[bad", 302)
    ended = aboyeur("keys", "fetch", hub.url)
    assert ended.code == 1
    assert "redirected to what is no address" in ended.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("hash",), 0),
        (("hash", "--json"), 0),
        (("validate",), 1),
        (("validate", "--json"), 1),
        (("verify",), 1),
        (("keys", "import"), 1),
        (("verify", "--json", "--keys"), 1),
    ],
)
def test_a_file_whose_name_is_no_utf_8_is_named_with_escapes(
    aboyeur: Callable[..., Any], tmp_path: Path, order: Path, words: tuple[str, ...], code: int
) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json"))
    path.write_text(json.dumps(ORDER))
    before = [str(order)] if words[-1] == "--keys" else []
    ended = aboyeur(*words[:1], *before, *words[1:], str(path))
    assert ended.code == code
    if words[0] in ("hash", "validate"):
        assert "caf\\" in ended.out
    if "--json" in words and words[0] != "verify":
        assert ended.json()["files"][0]["file"].endswith("/caf\\udce9.json")


def test_keys_in_a_file_whose_name_is_no_utf_8_are_learned_and_checked_with(
    aboyeur: Callable[..., Any], elsewhere: tuple[Path, Path], tmp_path: Path
) -> None:
    signed, record = elsewhere
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json"))
    shutil.move(record, path)
    for ended in (
        aboyeur("verify", str(signed), "--keys", str(path), "--json"),
        aboyeur("verify", str(signed), "--keys", str(path)),
        aboyeur("keys", "import", str(path)),
        aboyeur("keys", "list", "--json"),
    ):
        assert ended.code == 0
    assert aboyeur("keys", "list", "--json").json()["keys"][0]["source"].endswith("/caf\\udce9.json")


def test_a_cache_that_cannot_be_read_is_words(
    aboyeur: Callable[..., Any], folder: DataFolder, order: Path
) -> None:
    folder.known_keys.write_bytes(b"{")
    for words in (("keys", "list"), ("verify", str(order)), ("keys", "forget", "x")):
        ended = aboyeur(*words)
        assert ended.code == 1
        assert "known-keys.json" in ended.err


def test_a_value_is_concealed_signed_and_revealed_to_whom_one_likes(
    aboyeur: Callable[..., Any], order: Path, key: KeyRecord, tmp_path: Path
) -> None:
    openings, closed = tmp_path / "openings.json", tmp_path / "closed.json"
    signed, shown = tmp_path / "signed.json", tmp_path / "shown.json"
    made = aboyeur(
        "disclose", "make", str(order), "--path", "/guests/0/diet", "--path", "/note",
        "--openings", str(openings), "--out", str(closed),
    )  # fmt: skip
    assert made.code == 0
    assert "low salt" not in closed.read_text()
    assert stat.S_IMODE(openings.stat().st_mode) == 0o600
    assert aboyeur("sign", str(closed), "--out", str(signed)).code == 0
    reveal = ("disclose", "reveal", str(signed), "--openings", str(openings), "--path", "/guests/0/diet")
    assert aboyeur(*reveal, "--out", str(shown)).code == 0
    assert "low salt" in shown.read_text()
    assert "at 7" not in shown.read_text()
    verified = aboyeur("disclose", "verify", str(shown), "--json")
    assert (verified.code, verified.json()["ok"]) == (0, True)
    assert {one["path"]: one["revealed"] for one in verified.json()["disclosures"]} == {
        "/guests/0/diet": True,
        "/note": False,
    }
    assert "concealed" in aboyeur("disclose", "verify", str(shown)).out
    shown.write_text(shown.read_text().replace("low salt", "no salt"))
    lied = aboyeur("disclose", "verify", str(shown))
    assert lied.code == 1
    assert "digest_mismatch" in lied.out


def test_disclose_says_what_it_cannot_do(
    aboyeur: Callable[..., Any], order: Path, key: KeyRecord, tmp_path: Path
) -> None:
    openings = tmp_path / "openings.json"
    make = ("disclose", "make", str(order), "--openings", str(openings), "--path")
    assert aboyeur(*make, "/nothing").code == 1
    assert not openings.exists()
    assert aboyeur(*make, "/note").code == 0
    assert aboyeur(*make, "/note").code == 2
    reveal = ("disclose", "reveal", str(order), "--openings", str(openings), "--path")
    assert aboyeur(*reveal, "/guests").code == 2
    assert aboyeur(*reveal, "/note").code == 1
    assert aboyeur("disclose", "reveal", str(order), "--openings", str(order), "--path", "/note").code == 1
    assert aboyeur("disclose", "verify", str(order)).code == 1


def test_conformance_says_a_line_a_suite_and_nothing_else_when_all_passes(
    aboyeur: Callable[..., Any],
) -> None:
    ended = aboyeur("conformance", str(FOLDER))
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert len(lines) == len(list(FOLDER.rglob("*.json")))
    assert all(line.split()[1].split("/")[0] == line.split()[1].split("/")[1] for line in lines)
    told = aboyeur("conformance", str(FOLDER), "--json").json()
    assert told["ok"]
    assert {row["suite"] for row in told["suites"]} == {line.split()[0] for line in lines}


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """Our vectors with one wrong expectation, and one of a kind that is not run yet."""
    folder = tmp_path / "vectors"
    shutil.copytree(FOLDER, folder)
    path = folder / "disclosure.json"
    vectors = json.loads(path.read_bytes())
    vectors[0]["expected"]["ok"] = False
    path.write_text(json.dumps(vectors))
    (folder / "later.json").write_text(
        json.dumps([{"id": "l-1", "kind": "sms_parse", "description": "", "input": {}, "expected": {}}])
    )
    return folder


def test_a_wrong_expectation_makes_conformance_fail_and_is_shown(
    aboyeur: Callable[..., Any], spoiled: Path
) -> None:
    ended = aboyeur("conformance", str(spoiled))
    assert ended.code == 1
    assert re.search(r"^disclosure +4/5$", ended.out, re.MULTILINE)
    assert '    expected  {"ok":false,"reason":"ok"}\n    got       {"ok":true,"reason":"ok"}' in ended.out
    assert re.search(r"^later +0/1  \(not yet run: sms_parse\)$", ended.out, re.MULTILINE)
    told = aboyeur("conformance", str(spoiled), "--json")
    assert (told.code, told.json()["ok"]) == (1, False)
    failed = {row["suite"]: row["failures"] for row in told.json()["suites"] if row["failures"]}
    assert failed["disclosure"][0]["got"] == {"ok": True, "reason": "ok"}
    assert [row["notRun"] for row in told.json()["suites"] if row["suite"] == "later"] == [["sms_parse"]]


def test_a_report_is_signed_and_claims_a_class_only_if_every_vector_passed(
    aboyeur: Callable[..., Any], spoiled: Path, key: KeyRecord, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    ended = aboyeur("conformance", str(FOLDER), "--report", str(good), "--as", "person:anna")
    assert ended.code == 0
    assert "claims the class verifier" in ended.out
    ended = aboyeur("conformance", str(spoiled), "--report", str(bad))
    assert ended.code == 1
    assert "claims nothing" in ended.out
    for path, claim in ((good, "verifier"), (bad, None)):
        report = json.loads(path.read_bytes())
        assert report.get("claim") == claim
        assert verify_document(report, KeyRing([key])).ok
        assert aboyeur("verify", str(path)).code == 0
    assert aboyeur("conformance", str(FOLDER), "--report", str(good)).code == 2
    ended = aboyeur("conformance", str(FOLDER), "--report", str(tmp_path / "x.json"), "--as", "person:ben")
    assert ended.code == 1
    assert "aboyeur keys new person:ben" in ended.err


def test_conformance_of_no_vectors_is_no_pass(aboyeur: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert aboyeur("conformance", str(tmp_path / "empty")).code == 1
    assert aboyeur("conformance", str(tmp_path / "nowhere")).code == 2
