"""ASGI applications over HTTP in our own task group: bound before they serve, closed within a bound."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import anyio
import uvicorn
from litestar import Litestar

START_WITHIN_S: Final = 10.0
GRACE_S: Final = 2
END_WITHIN_S: Final = 5.0
_CONNECTIONS_MOST: Final = 4_096
"""Beyond it uvicorn answers 503, a stop too: so it stands far above what a household opens."""


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
async def serving(app: Litestar, listening: socket.socket) -> AsyncGenerator[None, None]:
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
            limit_concurrency=_CONNECTIONS_MOST,
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
