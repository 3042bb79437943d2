"""Keys sign and verify as their standards say, and rings are unambiguous."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from mandates import base64url
from mandates.documents import Alg, KeyRecord
from mandates.keys import DuplicateKid, KeyRing, PrivateKey, encoded, standing, verifies

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
BOTH: tuple[Alg, Alg] = ("EdDSA", "ES256")


def key(alg: Alg = "EdDSA", kid: str = "person:anna#1", first: int = 1) -> PrivateKey:
    return PrivateKey.from_seed(bytes(range(first, first + 32)), kid=kid, alg=alg)


def test_ed25519_signs_as_rfc_8032_test_1_says() -> None:
    signer = PrivateKey.from_seed(
        bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"), kid="k"
    )
    assert signer.public_key() == "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
    assert signer.sign(b"").hex() == (
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd"
        "25bf5f0595bbe24655141438e7a100b"
    )


def test_es256_signs_as_rfc_6979_a_2_5_says() -> None:
    scalar = bytes.fromhex("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721")
    signer = PrivateKey.from_seed(scalar, kid="k", alg="ES256")
    assert base64url.decode(signer.public_key()).hex() == (
        "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
        "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
    )
    assert signer.sign(b"sample").hex() == (
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
        "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
    )


@pytest.mark.parametrize("alg", BOTH)
def test_a_key_comes_back_from_its_seed_and_from_its_pem(alg: Alg) -> None:
    made = key(alg)
    for again in (
        PrivateKey.from_seed(made.seed(), kid=made.kid, alg=alg),
        PrivateKey.from_pem(made.pem(), kid=made.kid),
    ):
        assert (again.kid, again.alg, again.public_key()) == (made.kid, alg, made.public_key())
        assert again.sign(b"soup") == made.sign(b"soup")


@pytest.mark.parametrize("alg", BOTH)
def test_a_key_shows_no_secret_when_printed(alg: Alg) -> None:
    made = key(alg)
    for shown in (repr(made), str(made)):
        assert made.seed().hex() not in shown
        assert "object at" not in shown
        assert "person:anna#1" in shown


@pytest.mark.parametrize("seed", [b"", bytes(31), bytes(33)])
@pytest.mark.parametrize("alg", BOTH)
def test_a_seed_of_another_length_is_refused(alg: Alg, seed: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        PrivateKey.from_seed(seed, kid="k", alg=alg)


@pytest.mark.parametrize("seed", [bytes(32), b"\xff" * 32])
def test_a_seed_that_is_no_scalar_of_the_curve_is_refused(seed: bytes) -> None:
    with pytest.raises(ValueError, match="scalar"):
        PrivateKey.from_seed(seed, kid="k", alg="ES256")


def test_a_pem_of_another_kind_is_refused() -> None:
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ec, x25519

    foreign = ec.derive_private_key(7, ec.SECP384R1())
    exchange = x25519.X25519PrivateKey.from_private_bytes(bytes(32))
    plain = (s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    locked = (s.Encoding.PEM, s.PrivateFormat.PKCS8, s.BestAvailableEncryption(b"secret"))
    own = ec.derive_private_key(7, ec.SECP256R1())
    for pem in (
        b"",
        b"-----BEGIN PRIVATE KEY-----\n",
        foreign.private_bytes(*plain),
        exchange.private_bytes(*plain),
        own.private_bytes(*locked),
    ):
        with pytest.raises(ValueError):
            PrivateKey.from_pem(pem, kid="k")


@pytest.mark.parametrize("alg", BOTH)
def test_a_record_verifies_its_key_and_no_other(alg: Alg) -> None:
    made = key(alg)
    record = made.record(actor="person:anna", valid_from=NOON)
    signature = made.sign(b"soup")
    assert verifies(record, b"soup", signature)
    assert not verifies(record, b"soap", signature)
    assert not verifies(key(alg, first=60).record(actor="person:anna", valid_from=NOON), b"soup", signature)
    for broken in (b"", signature[:-1], signature + b"\0", bytes(64), b"\xff" * 64):
        assert not verifies(record, b"soup", broken)


@pytest.mark.parametrize("alg", BOTH)
@pytest.mark.parametrize("public", ["", "A", "AA==", "AAAA", "A" * 43, "A" * 86, "_" * 43, "!" * 43])
def test_a_record_without_a_real_key_verifies_nothing(alg: Alg, public: str) -> None:
    record = KeyRecord(kid="k", alg=alg, public_key=public, valid_from="2026-01-01T00:00:00Z")
    assert not verifies(record, b"soup", key(alg).sign(b"soup"))


P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P


def added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """The sum of two points of edwards25519 (RFC 8032 §5.1.4, in affine coordinates)."""
    (x1, y1), (x2, y2) = one, other
    product = D * x1 * x2 * y1 * y2
    return (
        (x1 * y2 + x2 * y1) * pow(1 + product, -1, P) % P,
        (y1 * y2 + x1 * x2) * pow(1 - product, -1, P) % P,
    )


def small_order() -> list[tuple[int, int]]:
    """The eight points whose order divides 8, as multiples of one of order 8."""
    # On a point of order 8, doubling gives y = 0: y² = -x², so -x² + y² = 1 + d x² y² reads d y⁴ + 2 y² = 1.
    root = next(r for r in square_roots((1 + D) % P))
    y = next(r for sign in (1, -1) for r in square_roots((sign * root - 1) * pow(D, -1, P) % P))
    x = next(square_roots(-y * y % P))
    points = [(0, 1)]
    for _ in range(7):
        points.append(added(points[-1], (x, y)))
    assert added(points[-1], (x, y)) == (0, 1)
    return points


def square_roots(value: int) -> Iterator[int]:
    root = pow(value, (P + 3) // 8, P)
    for candidate in (root, root * pow(2, (P - 1) // 4, P) % P):
        if candidate * candidate % P == value:
            yield candidate
            return


def test_no_key_of_small_order_verifies_anything() -> None:
    points = small_order()
    assert len(set(points)) == 8
    # Each y also with either sign bit, and spelled beyond the field where that fits.
    spellings = {
        y + beyond + (sign << 255)
        for _, y in points
        for beyond in (0, P)
        for sign in (0, 1)
        if y + beyond < 2**255
    }
    assert len(spellings) == 14
    everybodys = (1).to_bytes(32, "little") + bytes(32)  # R the neutral point, S = 0
    for spelling in spellings:
        public = spelling.to_bytes(32, "little")
        record = KeyRecord(
            kid="k", alg="EdDSA", public_key=base64url.encode(public), valid_from="2026-01-01T00:00:00Z"
        )
        assert not any(verifies(record, bytes([n]), everybodys) for n in range(64))
        with pytest.raises(ValueError, match="small order"):
            encoded(record)


def test_a_key_spelled_beyond_the_field_is_none() -> None:
    public = base64url.encode((P + 3).to_bytes(32, "little"))
    with pytest.raises(ValueError, match="no canonical"):
        encoded(KeyRecord(kid="k", alg="EdDSA", public_key=public, valid_from="2026-01-01T00:00:00Z"))


def test_a_key_is_good_within_its_window_and_before_its_revocation() -> None:
    record = KeyRecord(
        kid="k",
        alg="EdDSA",
        public_key="AAAA",
        valid_from="2026-01-01T00:00:00Z",
        valid_to="2026-12-31T00:00:00Z",
        revoked_at="2026-08-01T00:00:00+02:00",
    )
    start = datetime(2026, 1, 1, tzinfo=UTC)
    end = datetime(2026, 12, 31, tzinfo=UTC)
    revoked = datetime(2026, 7, 31, 22, tzinfo=UTC)
    blink = timedelta(microseconds=1)
    assert standing(record, start - blink) == "outside_window"
    assert standing(record, start) == "valid"
    assert standing(record, revoked - blink) == "valid"
    assert standing(record, revoked) == "revoked"
    assert standing(record, end) == "revoked"
    assert standing(record, end + blink) == "outside_window"


@pytest.mark.parametrize("member", ["valid_from", "valid_to", "revoked_at"])
@pytest.mark.parametrize(
    "text", ["", "soon", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00", "0001-01-01T00:00:00+10:00"]
)
def test_a_key_whose_times_cannot_be_read_vouches_for_nothing(member: str, text: str) -> None:
    times = {"valid_from": "2026-01-01T00:00:00Z", member: text}
    assert standing(KeyRecord(kid="k", alg="EdDSA", public_key="AAAA", **times), NOON) == "unreadable"


def test_two_different_records_of_one_kid_are_refused_by_name() -> None:
    first = key().record(actor="person:anna", valid_from=NOON)
    other = key().record(actor="person:ben", valid_from=NOON)
    with pytest.raises(DuplicateKid, match="person:anna#1") as caught:
        KeyRing([first, other])
    assert caught.value.kid == "person:anna#1"
    with pytest.raises(DuplicateKid):
        KeyRing([*KeyRing([first]), other])


def test_the_same_record_twice_counts_once() -> None:
    first = key().record(actor="person:anna", valid_from=NOON)
    ring = KeyRing([first, key().record(actor="person:anna", valid_from=NOON)])
    assert list(ring) == [first]
    assert len(ring) == 1
    assert ring.get("person:anna#1") == first
    assert ring.get("person:anna#2") is None
