"""Reading an answer over HTTP up to a bound, for whoever asks another machine."""

import httpx


async def read_whole(answer: httpx.Response, most_bytes: int) -> bytes | None:
    """The body of a streamed answer, as the bytes that came over the wire; `None` where it is longer.

    It is never unpacked: a small compressed answer could become a large one in memory.

    Raises:
        httpx.HTTPError: the answer broke off.
    """
    if answer.is_stream_consumed:  # a transport in memory gave it whole
        return answer.content if len(answer.content) <= most_bytes else None
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > most_bytes:
            return None
    return bytes(body)
