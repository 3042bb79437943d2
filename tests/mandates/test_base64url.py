"""base64url has one spelling per value (ruling T4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mandates import base64url


@given(st.binary(max_size=80))
def test_every_value_has_a_text_and_comes_back(raw: bytes) -> None:
    text = base64url.encode(raw)
    assert "=" not in text
    assert base64url.decode(text) == raw


@given(st.text(alphabet="ABab019-_=+/ \n", max_size=12))
def test_no_value_has_a_second_text(text: str) -> None:
    try:
        raw = base64url.decode(text)
    except ValueError:
        return
    assert base64url.encode(raw) == text


@pytest.mark.parametrize(
    "text",
    [
        "AA==",
        "AAA=",
        "A",
        "AAAAA",
        "AB",
        "AAB",
        "AA+A",
        "AA/A",
        "AA A",
        "AAAA\n",
        "\nAAAA",
        "ÄAAA",
        "ＡＡＡＡ",
        "AA\x00A",
    ],
)
def test_another_spelling_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base64url"):
        base64url.decode(text)
