"""Keys: private ones that sign, public records that verify, and rings of records (Core §5).

Nothing here draws randomness or touches a file: seeds come in as bytes, PEM goes out as bytes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from events.times import format_date_time, parse_date_time
from mandates import base64url
from mandates.documents import Alg, KeyRecord

SEED_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64
"""Of both algorithms: Ed25519's R || S, and ES256's r || s at 32 bytes each."""

_FIELD: Final = 2**255 - 19
"""The prime that Ed25519's coordinates are counted by."""
_ORDER_8: Final = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""`y` of two of the four points of order 8; that of the other two is its negative."""
_SMALL_ORDER: Final = frozenset({0, 1, _FIELD - 1, _ORDER_8, _FIELD - _ORDER_8})
"""`y` of the eight points whose order divides 8."""

Standing = Literal["valid", "outside_window", "revoked", "unreadable"]


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A key that signs, under the `kid` its public record is found by. Its secret never shows in `repr`."""

    kid: str
    alg: Alg
    _secret: Ed25519PrivateKey | ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def from_seed(cls, seed: bytes, *, kid: str, alg: Alg = "EdDSA") -> "PrivateKey":
        """The key of 32 random bytes: Ed25519's seed, or P-256's private scalar (big-endian).

        Raises:
            ValueError: not 32 bytes, or (ES256) no scalar of the curve.
        """
        if len(seed) != SEED_BYTES:
            raise ValueError(f"a seed has {SEED_BYTES} bytes, this one {len(seed)}")
        if alg == "EdDSA":
            return cls(kid, alg, Ed25519PrivateKey.from_private_bytes(seed))
        try:
            secret = ec.derive_private_key(int.from_bytes(seed, "big"), ec.SECP256R1())
        except ValueError:
            raise ValueError("the seed is no private scalar of P-256; draw another") from None
        return cls(kid, alg, secret)

    @classmethod
    def from_pem(cls, pem: bytes, *, kid: str) -> "PrivateKey":
        """The key in an unencrypted PEM file; the algorithm follows from the key.

        Raises:
            ValueError: not such a file, or a key that is neither Ed25519 nor P-256.
        """
        try:
            secret = serialization.load_pem_private_key(pem, password=None)
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(f"not an unencrypted PEM private key: {error}") from None
        if isinstance(secret, Ed25519PrivateKey):
            return cls(kid, "EdDSA", secret)
        if isinstance(secret, ec.EllipticCurvePrivateKey) and isinstance(secret.curve, ec.SECP256R1):
            return cls(kid, "ES256", secret)
        raise ValueError("the PEM holds neither an Ed25519 nor a P-256 key")

    def seed(self) -> bytes:
        """The 32 bytes that `from_seed` reads; for a file only its owner can read (mode 0600)."""
        if isinstance(self._secret, Ed25519PrivateKey):
            return self._secret.private_bytes_raw()
        return self._secret.private_numbers().private_value.to_bytes(SEED_BYTES, "big")

    def pem(self) -> bytes:
        """The key as unencrypted PKCS #8 PEM; for a file only its owner can read (mode 0600)."""
        return self._secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, message: bytes) -> bytes:
        """64 bytes over `message`; the same message always gets the same ones (RFC 8032, RFC 6979)."""
        if isinstance(self._secret, Ed25519PrivateKey):
            return self._secret.sign(message)
        r, s = decode_dss_signature(
            self._secret.sign(message, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
        )
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def public_key(self) -> str:
        """The raw public key as base64url: Ed25519's 32 bytes, or P-256's uncompressed point (65)."""
        if isinstance(self._secret, Ed25519PrivateKey):
            return base64url.encode(self._secret.public_key().public_bytes_raw())
        point = self._secret.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        return base64url.encode(point)

    def record(self, *, actor: str, valid_from: datetime, valid_to: datetime | None = None) -> KeyRecord:
        """The public record of this key as `actor`'s; times are aware."""
        return KeyRecord(
            kid=self.kid,
            alg=self.alg,
            public_key=self.public_key(),
            valid_from=format_date_time(valid_from),
            actor=actor,
            valid_to=None if valid_to is None else format_date_time(valid_to),
        )


class DuplicateKid(ValueError):
    """Two records claim one kid with different content; which of them is meant cannot be known.

    Attributes:
        kid: the kid.
    """

    def __init__(self, kid: str) -> None:
        super().__init__(f"two different key records claim the kid {kid[:200]!r}")
        self.kid = kid


class KeyRing:
    """Public key records by kid; never changes once made."""

    __slots__ = ("_by_kid",)

    def __init__(self, records: Iterable[KeyRecord] = ()) -> None:
        """
        Raises:
            DuplicateKid: two records of one kid differ. Equal ones count once.
        """
        by_kid: dict[str, KeyRecord] = {}
        for record in records:
            if by_kid.setdefault(record.kid, record) != record:
                raise DuplicateKid(record.kid)
        self._by_kid: Mapping[str, KeyRecord] = MappingProxyType(by_kid)

    def get(self, kid: str) -> KeyRecord | None:
        """The record of `kid`, if it is here."""
        return self._by_kid.get(kid)

    def __iter__(self) -> Iterator[KeyRecord]:
        return iter(self._by_kid.values())

    def __len__(self) -> int:
        return len(self._by_kid)

    def __repr__(self) -> str:
        return f"KeyRing({sorted(self._by_kid)!r})"


def read_time(text: str) -> datetime | None:
    """An RFC 3339 time in UTC, or None where `text` is none that can be reckoned with."""
    try:
        return parse_date_time(text)
    except ValueError:
        return None


def standing(record: KeyRecord, at: datetime) -> Standing:
    """What a key is worth at the moment `at` (aware), by its window and its revocation (Core §5).

    Both ends of the window belong to it; the instant of revocation is already revoked. A record whose times
    cannot be read vouches for nothing.
    """
    valid_from = read_time(record.valid_from)
    valid_to = None if record.valid_to is None else read_time(record.valid_to)
    revoked_at = None if record.revoked_at is None else read_time(record.revoked_at)
    if (
        valid_from is None
        or (record.valid_to is not None and valid_to is None)
        or (record.revoked_at is not None and revoked_at is None)
    ):
        return "unreadable"
    if at < valid_from or (valid_to is not None and at > valid_to):
        return "outside_window"
    if revoked_at is not None and at >= revoked_at:
        return "revoked"
    return "valid"


def revoked_by(record: KeyRecord, at: datetime) -> bool:
    """Whether the key was revoked at the moment `at` (aware) or before; also where its time is unreadable."""
    if record.revoked_at is None:
        return False
    revoked_at = read_time(record.revoked_at)
    return revoked_at is None or at >= revoked_at


def encoded(record: KeyRecord) -> bytes:
    """The one encoding of a record's public key: equal if and only if the keys are.

    Ed25519's 32 bytes, or P-256's uncompressed point (65) however the record spells it.

    Raises:
        ValueError: no public key of its algorithm, or one that anybody can sign for.
    """
    key = _loaded(record)
    if isinstance(key, Ed25519PublicKey):
        return key.public_bytes_raw()
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def _loaded(record: KeyRecord) -> Ed25519PublicKey | ec.EllipticCurvePublicKey:
    public = base64url.decode(record.public_key)
    if record.alg != "EdDSA":
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
    if len(public) != SEED_BYTES:
        raise ValueError(f"an Ed25519 key has {SEED_BYTES} bytes, this one {len(public)}")
    y = int.from_bytes(public, "little") & (2**255 - 1)
    # RFC 8032 §5.1.3 takes no y beyond the field: it would be a second spelling of another point.
    if y >= _FIELD or y in _SMALL_ORDER:
        # One signature holds for such a key over an eighth or more of all messages, and needs no secret.
        raise ValueError("an Ed25519 key of small order or no canonical encoding; anybody can sign for it")
    return Ed25519PublicKey.from_public_bytes(public)


def verifies(record: KeyRecord, message: bytes, signature: bytes) -> bool:
    """Whether `signature` is this key's over `message`. False also for a public key that is none."""
    if len(signature) != SIGNATURE_BYTES:
        return False
    try:
        key = _loaded(record)
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, message)
        else:
            r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            key.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True
