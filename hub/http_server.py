"""ASGI applications over HTTP in our own task group: bound before they serve, closed within a bound."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import anyio
import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

START_WITHIN_S: Final = 10.0
GRACE_S: Final = 2
END_WITHIN_S: Final = 5.0
CONNECTIONS_MOST: Final = 512
"""Beyond these an idle connection gives way to a new one; how many requests are served is the app's bound."""


class _Connection(H11Protocol):
    """A connection; whoever comes is let in, so that no crowd of silent ones keeps out a stop."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MOST:
            for other in self.connections:
                if isinstance(other, _Connection) and other is not self and other.gives_way():
                    return

    def gives_way(self) -> bool:
        """Close the connection if nothing is served on it; whether it did."""
        # there is no cycle before the first request
        answered = getattr(self.cycle, "response_complete", True)
        if not answered or self.transport.is_closing():
            return False
        self.transport.close()
        return True


class _Server(uvicorn.Server):
    """uvicorn, with its hands off the process's signals, telling when it is ready."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        OSError: the address or the port cannot be had.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(256)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


@asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket) -> AsyncGenerator[None, None]:
    """Serve `app` for the length of the context, from when it answers to when it has closed."""
    application: Any = app  # Litestar's own type of an ASGI application is narrower than uvicorn's
    server = _Server(
        uvicorn.Config(
            application,
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
            http=_Connection,
            timeout_keep_alive=30,
        )
    )
    finished = anyio.Event()

    async def serve() -> None:
        try:
            await server.serve(sockets=[listening])
        finally:
            finished.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, name="http")
            try:
                with anyio.fail_after(START_WITHIN_S):
                    await server.ready.wait()
                yield
            finally:
                server.should_exit = True
                with anyio.move_on_after(END_WITHIN_S, shield=True):
                    await finished.wait()
                tasks.cancel_scope.cancel()
    finally:
        listening.close()
