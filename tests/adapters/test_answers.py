"""A body is read up to its bound, and never unpacked."""

import gzip

import httpx

from adapters.answers import read_whole


async def read(content: bytes, most_bytes: int, **headers: str) -> bytes | None:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(content))

    async with (
        httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client,
        client.stream("GET", "http://device.invalid/") as response,
    ):
        return await read_whole(response, most_bytes)


async def test_a_body_is_read_as_far_as_its_bound_and_not_a_byte_further() -> None:
    assert await read(b"", 0) == b""
    assert await read(b"four", 4) == b"four"
    assert await read(b"fives", 4) is None


async def test_the_bound_holds_for_an_answer_that_is_in_memory_already() -> None:
    assert await read_whole(httpx.Response(200, content=b"four"), 4) == b"four"
    assert await read_whole(httpx.Response(200, content=b"fives"), 4) is None


async def test_a_small_answer_cannot_become_a_large_one() -> None:
    packed = gzip.compress(gzip.compress(bytes(32 * 1024 * 1024)))
    assert len(packed) < 1_000
    got = await read(packed, 1_000, **{"Content-Encoding": "gzip, gzip"})
    assert got == packed
