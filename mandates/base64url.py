"""base64url without padding, read only in its one canonical spelling (ruling T4).

A decoder that overlooks padding, foreign alphabets or spare bits gives one signature many spellings; then
"the same document" and "the same bytes" part ways. Here a value has exactly one text.
"""

import base64
import re
from typing import Final

_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]*")


def encode(raw: bytes) -> str:
    """`raw` as base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """The bytes that `text` spells.

    Raises:
        ValueError: another alphabet, padding, white space, an impossible length, or spare bits that are set.
    """
    if not _ALPHABET.fullmatch(text):
        raise ValueError("not base64url: only A-Z a-z 0-9 _ - are read, no padding and no white space")
    if len(text) % 4 == 1:
        raise ValueError(f"not base64url: no bytes have a text of {len(text)} characters")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode(raw) != text:
        raise ValueError("not canonical base64url: the spare bits of the last character are set")
    return raw
