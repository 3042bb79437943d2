"""What a device takes from the hub it is paired with is bounded too."""

import gzip
from typing import Any

import httpx
import pytest

from events.documents import MAX_DOCUMENT_BYTES
from sim.acceptance import HubSilent, RecipeUnavailable
from sim.pairing import BrokerAddress, Pairing, RecipeSource

PAIRING = Pairing(
    kitchen="home",
    device="hob",
    token="t",
    hub_token="h",
    hub_url="http://hub.invalid:8080",
    broker=BrokerAddress(host="hub.invalid", port=1883, protocol="5"),
)


async def fetched(status: int, content: bytes, **headers: Any) -> bytes:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        source = RecipeSource(client)
        source.pairing = PAIRING
        return await source.fetch("sha256:" + "0" * 64)


async def test_a_recipe_is_taken_up_to_the_bound_of_a_document() -> None:
    whole = bytes(MAX_DOCUMENT_BYTES)
    assert await fetched(200, whole) == whole
    with pytest.raises(RecipeUnavailable, match="longer than"):
        await fetched(200, whole + b"0")


async def test_a_packed_recipe_is_not_unpacked() -> None:
    packed = gzip.compress(bytes(64 * MAX_DOCUMENT_BYTES))
    assert len(packed) < MAX_DOCUMENT_BYTES
    assert await fetched(200, packed, **{"Content-Encoding": "gzip"}) == packed


@pytest.mark.parametrize(("status", "kind"), [(404, RecipeUnavailable), (503, HubSilent)])
async def test_a_hub_that_has_none_is_told_from_one_that_cannot_say(
    status: int, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        await fetched(status, b"{}")
