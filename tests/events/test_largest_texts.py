"""The largest texts that are read cost no more than their length: nobody makes the hub think for minutes."""

import json
import subprocess
import sys

import pytest

from events.documents import MAX_DOCUMENT_BYTES
from tests.household import ROOT

LARGEST = {
    "emoji in one string": json.dumps({"x": "😀" * 250_000}, ensure_ascii=False),
    "escaped emoji": json.dumps({"x": "😀" * 80_000}),
    "an emoji as a name": json.dumps({"😀": "a" * 1_000_000}, ensure_ascii=False),
    "many strings with emoji": json.dumps(["😀"] * 120_000, ensure_ascii=False),
    "quotation marks": json.dumps({"x": '"' * 500_000}),
    "backslashes": json.dumps({"x": "\\" * 500_000}),
    "brackets in a string": json.dumps({"x": "[{" * 500_000}),
    "colons, escaped": '{"x":"' + "\\u003a" * 170_000 + '"}',
    "deep and wide": "[" * 60 + ",".join(["1.0"] * 200_000) + "]" * 60,
    "numbers with exponents": json.dumps([1.5e-7] * 100_000),
    "digits in a string": json.dumps({"x": "1234567890123456," * 60_000}),
    "many names": json.dumps({f"k{number}": number for number in range(60_000)}),
    "one name many times": "{" + ",".join(['"a":1'] * 150_000) + "}",
    "a string without an end": '{"a":"' + '\\"' * 500_000,
}

# A text of this size takes well under a second; where the work grows with its square it takes hours.
CHILD = """
import resource, sys
from events.canonical import canonical, canonical_text, same_content
from events.documents import DocumentError, parse
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
raw = sys.stdin.buffer.read()
spaced = raw + b" "
for work in (
    parse,
    canonical_text,
    lambda raw: canonical(parse(raw)),
    lambda raw: same_content(raw, spaced),
):
    try:
        work(raw)
    except DocumentError as error:
        print(error.reason)
"""


@pytest.mark.parametrize("text", LARGEST.values(), ids=LARGEST)
def test_the_largest_texts_are_done_with_in_one_pass(text: str) -> None:
    raw = text.encode()
    assert 0.5 * MAX_DOCUMENT_BYTES < len(raw) < MAX_DOCUMENT_BYTES
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=raw, cwd=ROOT, capture_output=True, check=False
    )
    assert child.returncode == 0, child.stderr.decode()
