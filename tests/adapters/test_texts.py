"""An identifier ends where it ends: none carries a newline into a header, a topic or a log line."""

import json
from typing import Any

import pytest

from adapters.documents import ExecuteRequest, StopRequest
from events.documents import DocumentError, read
from mandates.documents import KeyRecord, Money

REQUEST = {
    "core": "0.2.0",
    "kind": "ExecuteRequest",
    "id": "req-0001",
    "recipe": "cw:cookwala.ai:example-koshari",
    "recipeHash": "sha256:" + "0a" * 32,
    "requestedBy": "person:anna",
    "idempotencyKey": "key-00000001",
    "serveBy": "2026-11-30T19:00:00Z",
}
STOP = {"core": "0.2.0", "kind": "StopRequest", "execution": "exe-0001", "requestedBy": "person:anna"}
KEY = {"kid": "k", "alg": "EdDSA", "publicKey": "AAAA", "validFrom": "2026-11-30T19:00:00Z"}
MONEY = {"amount": "5.00", "currency": "EUR"}


@pytest.mark.parametrize(
    ("kind", "plain", "member"),
    [
        *((ExecuteRequest, REQUEST, name) for name in ("core", "id", "recipe", "recipeHash", "serveBy")),
        *((StopRequest, STOP, name) for name in ("core", "execution")),
        *((KeyRecord, KEY, name) for name in ("publicKey", "validFrom")),
        *((Money, MONEY, name) for name in MONEY),
    ],
)
def test_a_newline_at_the_end_of_an_identifier_is_refused(
    kind: type, plain: dict[str, Any], member: str
) -> None:
    read(kind, json.dumps(plain).encode())
    with pytest.raises(DocumentError) as caught:
        read(kind, json.dumps({**plain, member: plain[member] + "\n"}).encode())
    assert (caught.value.reason, caught.value.path) == ("invalid", f"$.{member}")
