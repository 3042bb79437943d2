"""How each place that publishes public keys writes them down (Core §5). Pure: bytes in, records out.

A catalogue's `/.well-known/cookwala.json`, a did:web document, a device's capabilities, a file at hand. What
is read here is *known*, not trusted: authority needs an enrolment besides (DESIGN §8).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from events.documents import DocumentError, from_plain, parse
from mandates import base64url
from mandates.documents import Alg, KeyRecord
from mandates.key_addresses import KeySourceError, did_web_url, is_url, may_publish, origin
from mandates.keys import encoded

KEYS_MOST: Final = 1_000
"""Of one source; what comes after them is reported, not read."""
SINCE_EVER: Final = "1970-01-01T00:00:00Z"
"""`validFrom` of a key whose source does not say when it began."""

SourceKind = Literal["catalogue", "did", "device", "file"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry of a source that gave no record: which, and why."""

    kid: str
    why: str


@dataclass(frozen=True, slots=True)
class Published:
    """What a source publishes."""

    kind: SourceKind
    records: tuple[KeyRecord, ...]
    skipped: tuple[Skipped, ...] = ()


def read_published(raw: bytes, *, source: str) -> Published:
    """The records in `raw`, whatever kind of source wrote it.

    Args:
        raw: the source's bytes.
        source: whose bytes they are: the did:web they were asked for by, the URL they came from, or a file's
            name. Entries a source may not speak for are skipped.

    Raises:
        KeySourceError: nothing that holds keys.
    """
    try:
        plain = parse(raw)
    except DocumentError as error:
        raise KeySourceError(str(error)) from None
    if isinstance(plain, list):
        return _bounded("file", plain, lambda entry: _entry(entry, source))
    if not isinstance(plain, dict):
        raise KeySourceError("neither an object nor a list")
    if "verificationMethod" in plain or str(plain.get("id", "")).startswith("did:"):
        return _read_did(plain, source)
    if source.startswith("did:"):
        raise KeySourceError(f"no did document of {source}")
    if "publicKey" in plain or "kty" in plain:
        return _bounded("file", [plain], lambda entry: _entry(entry, source))
    if "x-aboyeur-keys" in plain:
        return _bounded("device", plain["x-aboyeur-keys"], lambda entry: _entry(entry, source))
    if "keys" in plain:
        return _bounded("catalogue", plain["keys"], lambda entry: _entry(entry, source))
    raise KeySourceError("it holds no keys: no `keys`, `x-aboyeur-keys` or `verificationMethod`")


def _bounded(kind: SourceKind, entries: object, read: Callable[[Any], KeyRecord | Skipped]) -> Published:
    if not isinstance(entries, list):
        raise KeySourceError("its keys are no list")
    records: dict[str, KeyRecord] = {}
    skipped: list[Skipped] = []
    for entry in entries[:KEYS_MOST]:
        found = read(entry)
        if isinstance(found, KeyRecord) and records.setdefault(found.kid, found) != found:
            # Which of the two is meant cannot be known, so neither is taken.
            skipped.append(Skipped(found.kid, "two entries of one kid differ"))
        elif isinstance(found, Skipped):
            skipped.append(found)
    if len(entries) > KEYS_MOST:
        skipped.append(
            Skipped("", f"{len(entries) - KEYS_MOST} more keys than the {KEYS_MOST} that are read")
        )
    doubtful = {one.kid for one in skipped}
    return Published(kind, tuple(one for one in records.values() if one.kid not in doubtful), tuple(skipped))


def _entry(entry: Any, source: str) -> KeyRecord | Skipped:
    """A KeyRecord, or a JSON Web Key with a `kid`, as catalogues write them."""
    if not isinstance(entry, dict):
        return Skipped("", "no object")
    kid = str(entry.get("kid", ""))[:300]
    try:
        record = _of_jwk(entry, kid, source) if "kty" in entry else from_plain(KeyRecord, entry)
        return _checked(record, source)
    except DocumentError as error:
        return Skipped(kid, f"{error.path}: {error.detail}")
    except ValueError as error:
        return Skipped(kid, str(error))


def _of_jwk(entry: Mapping[str, Any], kid: str, source: str) -> KeyRecord:
    if not kid:
        raise ValueError("a key without a kid")
    alg, public = _jwk(entry)
    return _made(
        kid, alg, public, actor=origin(source) if is_url(source) else None, valid_to=entry.get("expires")
    )


def _read_did(plain: Mapping[str, Any], source: str) -> Published:
    did = plain.get("id")
    if not isinstance(did, str) or not did.startswith("did:"):
        raise KeySourceError("a did document without an id")
    if source.startswith("did:") and did != source:
        raise KeySourceError(f"asked for {source}, got the document of {did[:200]}")
    if not source.startswith("did:") and is_url(source):
        try:
            own = did_web_url(did)
        except KeySourceError:
            own = ""
        if own != source:
            raise KeySourceError(f"the document of {did[:200]} does not belong to {source}")
    return _bounded("did", plain.get("verificationMethod", []), lambda entry: _method(entry, did))


def _method(entry: Any, did: str) -> KeyRecord | Skipped:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        return Skipped("", "a verification method without an id")
    kid = f"{did}{entry['id']}" if entry["id"].startswith("#") else entry["id"]
    shown = kid[:300]
    if kid.partition("#")[0] != did or "#" not in kid:
        return Skipped(shown, f"no key of {did}")
    if entry.get("controller", did) != did:
        return Skipped(shown, "somebody else controls it")
    try:
        if "publicKeyJwk" in entry:
            alg, public = _jwk(entry["publicKeyJwk"])
        elif "publicKeyMultibase" in entry:
            alg, public = _multikey(entry["publicKeyMultibase"])
        else:
            return Skipped(shown, "neither publicKeyJwk nor publicKeyMultibase")
        return _checked(
            _made(
                kid,
                alg,
                public,
                actor=did,
                valid_from=entry.get("validFrom", SINCE_EVER),
                valid_to=entry.get("expires"),
                revoked_at=entry.get("revoked"),
            ),
            did,
        )
    except DocumentError as error:
        return Skipped(shown, f"{error.path}: {error.detail}")
    except ValueError as error:
        return Skipped(shown, str(error))


def _made(
    kid: str,
    alg: Alg,
    public: bytes,
    *,
    actor: str | None,
    valid_from: object = SINCE_EVER,
    valid_to: object = None,
    revoked_at: object = None,
) -> KeyRecord:
    plain = {
        "kid": kid,
        "alg": alg,
        "publicKey": base64url.encode(public),
        "actor": actor,
        "validFrom": valid_from,
        "validTo": valid_to,
        "revokedAt": revoked_at,
    }
    return from_plain(KeyRecord, {name: value for name, value in plain.items() if value is not None})


def _checked(record: KeyRecord, source: str) -> KeyRecord:
    """`record` with its key in its one encoding, if it is a key and `source` may speak for it."""
    if not may_publish(source, record.kid):
        raise ValueError(f"{source[:200]} does not speak for that kid")
    return msgspec.structs.replace(record, public_key=base64url.encode(encoded(record)))


def _jwk(jwk: object) -> tuple[Alg, bytes]:
    if not isinstance(jwk, dict):
        raise ValueError("the key is no object")  # noqa: TRY004 - what is wrong is the document's text
    if "d" in jwk:
        raise ValueError("a private key was published; whoever read it can sign with it")
    if jwk.get("use", "sig") != "sig":
        raise ValueError("not a key for signatures")
    kind = (jwk.get("kty"), jwk.get("crv"))
    if kind == ("OKP", "Ed25519"):
        return "EdDSA", _coordinate(jwk, "x")
    if kind == ("EC", "P-256"):
        return "ES256", b"\x04" + _coordinate(jwk, "x") + _coordinate(jwk, "y")
    raise ValueError("neither an Ed25519 nor a P-256 key")


def _coordinate(jwk: Mapping[str, Any], name: str) -> bytes:
    text = jwk.get(name)
    raw = base64url.decode(text) if isinstance(text, str) else b""
    if len(raw) != 32:
        raise ValueError(f"{name} has no 32 bytes")
    return raw


_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_ED25519_CODE, _P256_CODE = b"\xed\x01", b"\x80\x24"


def _multikey(text: object) -> tuple[Alg, bytes]:
    """A key in multibase base58btc behind its multicodec prefix."""
    if not isinstance(text, str) or not re.fullmatch(rf"z[{_BASE58}]{{1,100}}", text):
        raise ValueError("publicKeyMultibase is not base58btc")
    number = 0
    for sign in text[1:]:
        number = number * 58 + _BASE58.index(sign)
    zeros = len(text[1:]) - len(text[1:].lstrip("1"))
    raw = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    code, key = raw[:2], raw[2:]
    if code == _ED25519_CODE:
        return "EdDSA", key
    if code == _P256_CODE:
        return "ES256", key
    raise ValueError("neither an Ed25519 nor a P-256 key")
