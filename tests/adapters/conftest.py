"""A device on a real socket that answers whatever a test tells it to."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest


@dataclass
class Heard:
    """One request as it stood on the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Reply = Callable[[Heard, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class FakeDevice:
    """Serves one reply to every request; `heard` and `connections` say what reached it."""

    reply: Reply
    heard: list[Heard] = field(default_factory=list)
    connections: int = 0
    url: str = ""
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *lines = head.decode("latin-1").split("\r\n")
                method, path, _ = line.split(" ")
                pairs = (one.split(": ", 1) for one in lines if one)
                headers = {name.lower(): value for name, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                heard = Heard(method, path, headers, body)
                self.heard.append(heard)
                await self.reply(heard, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()


def answer(status: int, body: Any, *extra: str) -> Reply:
    """A reply with `body` (bytes as they are, else as JSON) and `extra` header lines."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def reply(heard: Heard, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(raw)}", *extra, "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + raw)

    return reply


@asynccontextmanager
async def listening(reply: Reply) -> AsyncIterator[FakeDevice]:
    device = FakeDevice(reply)
    server = await asyncio.start_server(device.serve, "127.0.0.1", 0)
    device.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield device
    finally:
        server.close()
        for writer in list(device.writers):
            writer.close()
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Wire:
    """What a test of an adapter needs: a listening device and replies for it."""

    listening: Callable[[Reply], Any]
    answer: Callable[..., Reply]


@pytest.fixture
def wire() -> Wire:
    return Wire(listening, answer)
