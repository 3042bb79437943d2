"""A network cable between a client and a broker that a test can cut or hold."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Cable:
    """Listens on loopback and passes bytes on to `port` and back."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._ends: list[asyncio.StreamWriter] = []
        self._pumps: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Where the client connects."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def cut(self) -> None:
        """Break every connection at once, without a goodbye."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    def hold(self) -> None:
        """Let nothing through any more; connections stay."""
        self._flowing.clear()

    def release(self) -> None:
        """Let everything through again."""
        self._flowing.set()

    @asynccontextmanager
    async def plugged(self) -> AsyncGenerator["Cable", None]:
        """Pass bytes for the length of the context."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        try:
            yield self
        finally:
            self._server.close()
            self.cut()
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to_port)
        self._ends += [writer, back]
        for source, sink in ((reader, back), (there, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass  # cut: the other end is closed below
        finally:
            sink.close()
