"""Arbitrary JSON, with what trips a canonicalizer made likely, and the oracle it is held to (ruling D5)."""

import struct
from typing import Any

import rfc8785
from hypothesis import strategies as st

from events.canonical import canonical, canonical_text
from events.documents import parse

TRICKY = st.lists(
    st.sampled_from(
        (":", ",", "[", "]", "{", "}", '"', "\\", "1.0", "2.0,", "1e16", "9" * 17, "0e0", "\ufb00", "😀", "ä")
    ),
    max_size=5,
).map("".join)
TEXT = st.one_of(st.text(max_size=6), TRICKY)
ANY_BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    ANY_BITS.filter(lambda x: x - x == 0),
    st.integers(-(2**60), 2**60).map(float),
    st.builds(lambda digits, power: float(f"{digits}e{power}"), st.integers(-999, 999), st.integers(-30, 30)),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**53 - 1), 2**53 - 1), DOUBLES, TEXT)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
"""Values that the oracle accepts as they are."""


def check_against_the_oracle(value: Any, raw: bytes) -> None:
    """Hold every way to canonical bytes to `rfc8785`; `raw` is `value` as JSON text."""
    expected = rfc8785.dumps(value)
    assert canonical(value) == expected
    assert canonical_text(raw) == expected
    assert canonical(parse(raw)) == expected
    assert canonical_text(expected) == expected
