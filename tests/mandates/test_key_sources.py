"""Keys as catalogues, did:web documents, devices and files publish them (Core §5)."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mandates import base64url
from mandates.documents import KeyRecord
from mandates.key_addresses import KeySourceError, catalogue_url, did_web_url, may_publish
from mandates.key_sources import KEYS_MOST, Published, read_published
from mandates.keys import KeyRing, PrivateKey
from mandates.signature import sign_document, verify_document

DID = "did:web:bakery.example"
ED = PrivateKey.from_seed(bytes([51]) * 32, kid=f"{DID}#ed")
EC = PrivateKey.from_seed(bytes([52]) * 32, kid=f"{DID}#ec", alg="ES256")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def jwk(key: PrivateKey) -> dict[str, Any]:
    public = base64url.decode(key.public_key())
    if key.alg == "EdDSA":
        return {"kty": "OKP", "crv": "Ed25519", "x": key.public_key()}
    x, y = base64url.encode(public[1:33]), base64url.encode(public[33:])
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def multikey(key: PrivateKey) -> str:
    public = base64url.decode(key.public_key())
    raw = (
        b"\xed\x01" + public
        if key.alg == "EdDSA"
        else b"\x80\x24" + bytes([2 + public[-1] % 2]) + public[1:33]
    )
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return "z" + text


def did_document(*methods: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({"id": DID, "verificationMethod": list(methods), **members}).encode()


def method(key: PrivateKey, **members: Any) -> dict[str, Any]:
    return {
        "id": key.kid,
        "type": "JsonWebKey2020",
        "controller": DID,
        "publicKeyJwk": jwk(key),
        **members,
    }


@pytest.mark.parametrize(
    ("did", "url"),
    [
        ("did:web:bakery.example", "https://bakery.example/.well-known/did.json"),
        ("did:web:Bakery.Example", "https://bakery.example/.well-known/did.json"),
        ("did:web:bakery.example%3A8443", "https://bakery.example:8443/.well-known/did.json"),
        ("did:web:bakery.example%3a8443:ovens", "https://bakery.example:8443/ovens/did.json"),
        ("did:web:bakery.example:people:ida", "https://bakery.example/people/ida/did.json"),
        ("did:web:bakery.example:a%20b", "https://bakery.example/a%20b/did.json"),
        ("did:web:localhost", "https://localhost/.well-known/did.json"),
    ],
)
def test_a_did_web_is_found_where_its_method_says(did: str, url: str) -> None:
    assert did_web_url(did) == url


@pytest.mark.parametrize(
    "did",
    [
        "did:web:",
        "did:key:z6Mk",
        "did:web:bakery.example#k1",
        "did:web:bakery.example?x=1",
        "did:web:bakery.example/x",
        "did:web:ida@bakery.example",
        "did:web:192.0.2.1",
        "did:web:2130706433",
        "did:web:127.1",
        "did:web:0x7f000001",
        "did:web:127.0.0.0X1",
        "did:web:bakery.0x",
        "did:web:bakery..example",
        "did:web:bakery.example%3A0",
        "did:web:bakery.example%3A99999",
        "did:web:bakery.example:8443:",
        "did:web:bakery.example:..:x",
        "did:web:bakery.example:%2E%2E",
        "did:web:bakery.example:a%2Fb",
        "did:web:bakery.example:a%5Cb",
        "did:web:bakery.example:a%00b",
        "did:web:bakery.example:%ff",
        "did:web:bakery.example:%C3%28",
        "did:web:bakery.example:%",
        "did:web:bakery.example:a%2",
        "did:web:bakery.example:%zz",
        "did:web:bakery.example\n",
        "did:web:bäckerei.example",
    ],
)
def test_what_is_no_did_web_is_asked_nowhere(did: str) -> None:
    with pytest.raises(KeySourceError):
        did_web_url(did)


@given(st.text(max_size=40))
def test_no_text_makes_a_did_web_lead_off_its_host(text: str) -> None:
    try:
        url = did_web_url(f"did:web:bakery.example:{text}")
    except KeySourceError:
        return
    assert url.startswith("https://bakery.example/")
    assert url.endswith("/did.json")
    assert "/../" not in url and "//" not in url[len("https://") :]


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://recipes.example", "https://recipes.example/.well-known/cookwala.json"),
        ("https://recipes.example/", "https://recipes.example/.well-known/cookwala.json"),
        ("https://recipes.example/keys.json", "https://recipes.example/keys.json"),
        ("HTTPS://Recipes.Example:8443/Keys.json", "https://recipes.example:8443/Keys.json"),
        ("HTTP://127.0.0.1:9101", "http://127.0.0.1:9101/.well-known/cookwala.json"),
    ],
)
def test_an_address_alone_means_its_well_known_place(address: str, url: str) -> None:
    assert catalogue_url(address) == url


@pytest.mark.parametrize(
    "address",
    [
        "ftp://x.example",
        "recipes.example",
        "https://",
        "https://u:p@x.example",
        "https://@x.example",
        "https://[::1",
        "https://x.example:port",
        "https://x.example:99999",
        "https://x.example?v=1",
        "https://x.example/keys.json?",
        "https://x.example/keys.json#1",
        "https://x.example#",
        "https://x.example/a b",
        "https://x.exam\nple",
        " https://x.example",
        "https://x.example\\y",
    ],
)
def test_what_is_no_address_is_asked_nowhere(address: str) -> None:
    with pytest.raises(KeySourceError):
        catalogue_url(address)


@pytest.mark.parametrize("key", [ED, EC], ids=["ed25519", "p256"])
@pytest.mark.parametrize("spelling", ["jwk", "multibase", "relative id"])
def test_keys_of_a_did_document_verify_what_was_signed_with_them(key: PrivateKey, spelling: str) -> None:
    entry = method(key)
    if spelling == "multibase":
        del entry["publicKeyJwk"]
        entry["publicKeyMultibase"] = multikey(key)
    if spelling == "relative id":
        entry["id"] = "#" + key.kid.partition("#")[2]
    published = read_published(did_document(entry), source=DID)
    assert (published.kind, published.skipped) == ("did", ())
    (record,) = published.records
    assert (record.kid, record.actor, record.alg) == (key.kid, DID, key.alg)
    assert record.public_key == key.public_key()
    signed = sign_document({"kind": "Recall"}, key, signed_at=datetime(2026, 7, 1, tzinfo=UTC))
    assert verify_document(signed, KeyRing(published.records)).ok


def test_one_key_has_one_spelling_wherever_it_comes_from() -> None:
    raw = base64url.decode(EC.public_key())
    squeezed = base64url.encode(bytes([2 + raw[-1] % 2]) + raw[1:33])
    bare = {"kid": "baker#1", "alg": "ES256", "validFrom": "2026-01-01T00:00:00Z"}
    written = json.dumps([{**bare, "publicKey": squeezed}]).encode()
    (record,) = read_published(written, source="keys.json").records
    assert record.public_key == EC.public_key()


def test_a_did_document_says_when_a_key_ends_and_that_it_was_revoked() -> None:
    entry = method(ED, expires="2026-12-31T00:00:00Z", revoked="2026-06-01T00:00:00Z")
    (record,) = read_published(did_document(entry), source=DID).records
    assert (record.valid_to, record.revoked_at) == ("2026-12-31T00:00:00Z", "2026-06-01T00:00:00Z")
    signed = sign_document({"kind": "Recall"}, ED, signed_at=datetime(2026, 7, 1, tzinfo=UTC))
    assert verify_document(signed, KeyRing([record])).reason == "key_revoked"


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        (method(ED, id="did:web:other.example#k"), "no key of"),
        (method(ED, id=DID), "no key of"),
        (method(ED, controller="did:web:other.example"), "controls"),
        (method(ED, publicKeyJwk={**jwk(ED), "d": "AAAA"}), "private key"),
        (method(ED, publicKeyJwk={**jwk(ED), "x": "AAAA"}), "32 bytes"),
        (method(ED, publicKeyJwk={**jwk(ED), "x": jwk(ED)["x"] + "="}), "base64url"),
        (method(ED, publicKeyJwk={**jwk(ED), "x": base64url.encode(bytes(32))}), "small order"),
        (method(ED, publicKeyJwk={**jwk(ED), "crv": "X25519"}), "neither"),
        (method(ED, publicKeyJwk={**jwk(EC), "y": jwk(EC)["x"]}), ""),
        (method(ED, publicKeyJwk={**jwk(ED), "use": "enc"}), "not a key for signatures"),
        (method(ED, publicKeyJwk="x"), "no object"),
        (method(ED, expires="some day"), "validTo"),
        (method(ED, revoked=True), "revokedAt"),
        ({"id": "#x", "publicKeyMultibase": "z0OIl"}, "base58"),
        ({"id": "#x", "publicKeyMultibase": "zABC"}, "neither"),
        ({"id": "#x", "publicKeyMultibase": multikey(ED)[:-2]}, ""),
        ({"id": "#x"}, "neither"),
        ({"publicKeyJwk": jwk(ED)}, "without an id"),
        ("key", "without an id"),
    ],
)
def test_a_key_that_cannot_be_taken_is_named_and_the_others_are(entry: Any, word: str) -> None:
    published = read_published(did_document(entry, method(EC)), source=DID)
    assert [record.kid for record in published.records] == [EC.kid]
    (skipped,) = published.skipped
    assert word in skipped.why


@pytest.mark.parametrize(
    ("raw", "source", "word"),
    [
        (did_document(method(ED), id="did:web:other.example"), DID, "asked for"),
        (did_document(method(ED)), "https://other.example/.well-known/did.json", "does not belong"),
        (json.dumps({"keys": []}).encode(), DID, "no did document"),
        (b'{"verificationMethod": []}', DID, "without an id"),
        (b"{", "https://recipes.example", "not_json"),
        (b'{"keys":[],"keys":[]}', "https://recipes.example", "duplicate_key"),
        (b'"keys"', "https://recipes.example", "neither"),
        (b'{"name": "catalogue"}', "https://recipes.example", "no keys"),
        (b'{"keys": {}}', "https://recipes.example", "no list"),
    ],
)
def test_a_source_that_is_not_what_was_asked_for_gives_nothing(raw: bytes, source: str, word: str) -> None:
    with pytest.raises(KeySourceError, match=word):
        read_published(raw, source=source)


RECIPES = "https://recipes.example/.well-known/cookwala.json"
RECORD = {
    "kid": "https://recipes.example#1",
    "alg": "EdDSA",
    "publicKey": ED.public_key(),
    "actor": "recipes",
    "validFrom": "2026-01-01T00:00:00Z",
    "validTo": "2027-01-01T00:00:00Z",
    "x-note": "kept out",
}


def catalogue(*entries: Any) -> Published:
    raw = json.dumps({"cookwala": "0.1.0", "name": "Recipes", "keys": list(entries), "terms": "…"}).encode()
    return read_published(raw, source=RECIPES)


def test_a_catalogue_publishes_records_and_web_keys() -> None:
    published = catalogue(RECORD, {"kid": "recipes-2", **jwk(EC), "expires": "2027-01-01T00:00:00Z"})
    assert (published.kind, published.skipped) == ("catalogue", ())
    first, second = published.records
    assert (first.kid, first.actor, first.valid_to) == (RECORD["kid"], "recipes", RECORD["validTo"])
    assert (second.kid, second.alg, second.actor) == ("recipes-2", "ES256", "https://recipes.example")
    assert second.valid_to == "2027-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ({**RECORD, "kid": "did:web:bakery.example#ed"}, "does not speak"),
        ({**RECORD, "kid": "https://other.example#1"}, "does not speak"),
        ({**RECORD, "publicKey": "AAAA"}, "32 bytes"),
        ({**RECORD, "alg": "ES256"}, ""),
        ({**RECORD, "validFrom": "2026"}, "validFrom"),
        ({**RECORD, "extra": 1}, "extra"),
        ({"kid": "", **jwk(ED)}, "without a kid"),
        (7, "no object"),
    ],
)
def test_an_entry_a_catalogue_may_not_make_is_named_and_left_out(entry: Any, word: str) -> None:
    published = catalogue(entry)
    assert published.records == ()
    assert word in published.skipped[0].why


def test_two_entries_of_one_kid_that_differ_give_none() -> None:
    published = catalogue(
        RECORD, {**RECORD, "publicKey": PrivateKey.from_seed(bytes(31) + b"1", kid="x").public_key()}
    )
    assert published.records == ()
    assert "differ" in published.skipped[0].why
    assert len(catalogue(RECORD, RECORD).records) == 1


def test_a_source_without_end_is_read_to_its_bound() -> None:
    published = catalogue(*({**RECORD, "kid": f"k{n}"} for n in range(KEYS_MOST + 5)))
    assert len(published.records) == KEYS_MOST
    assert "5 more" in published.skipped[0].why


def test_a_device_publishes_its_keys_in_its_capabilities() -> None:
    raw = json.dumps({"x-aboyeur-keys": [{**RECORD, "kid": "hob#1", "actor": "hob"}]}).encode()
    published = read_published(raw, source="http://127.0.0.1:9101/v1/capabilities")
    assert (published.kind, published.records[0].actor) == ("device", "hob")


@pytest.mark.parametrize("wrapped", [lambda one: one, lambda one: [one], lambda one: {"keys": [one]}])
def test_a_file_holds_one_record_or_many(wrapped: Any) -> None:
    raw = json.dumps(wrapped({**RECORD, "kid": "did:web:bakery.example#ed"})).encode()
    assert [one.kid for one in read_published(raw, source="anna.pub.json").records] == [f"{DID}#ed"]


@pytest.mark.parametrize(
    ("source", "kid", "may"),
    [
        (DID, f"{DID}#1", True),
        (DID, "did:web:bakery.example:ovens#1", False),
        (DID, "person:anna#1", False),
        (DID, "https://bakery.example#1", False),
        (RECIPES, "https://recipes.example#1", True),
        (RECIPES, "https://recipes.example/v1#1", True),
        (RECIPES, "https://recipes.example.evil#1", False),
        (RECIPES, "http://recipes.example#1", False),
        (RECIPES, f"{DID}#1", False),
        ("HTTP://127.0.0.1:9101", f"{DID}#1", False),
        ("HTTPS://recipes.example", "https://other.example#1", False),
        ("HTTPS://Recipes.Example/keys", "https://recipes.example#1", True),
        (RECIPES, "HTTPS://other.example#1", False),
        (RECIPES, "https://[other", False),
        (RECIPES, "recipes-1", True),
        ("keys.json", f"{DID}#1", True),
        ("keys.json", "https://recipes.example#1", True),
    ],
)
def test_a_place_speaks_for_its_own_keys_only(source: str, kid: str, may: bool) -> None:
    assert may_publish(source, kid) is may


plain = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.sampled_from([DID, f"{DID}#ed", "z6Mk"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["id", "kid", "kty", "crv", "x", "y", "keys", "verificationMethod", "publicKeyJwk",
                         "publicKeyMultibase", "publicKey", "alg", "controller", "x-aboyeur-keys"]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(plain, st.sampled_from([DID, RECIPES, "keys.json"]))
def test_whatever_a_source_says_there_is_an_answer_and_every_record_is_a_key(value: Any, source: str) -> None:
    try:
        published = read_published(json.dumps(value).encode(), source=source)
    except KeySourceError:
        return
    assert all(isinstance(record, KeyRecord) for record in published.records)
    assert all(may_publish(source, record.kid) or source == RECIPES for record in published.records)
