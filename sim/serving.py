"""ASGI applications on loopback, several in one process, each with a bounded end."""

import ipaddress
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import anyio
import uvicorn
from litestar import Litestar

START_WITHIN_S: Final = 10.0
GRACE_S: Final = 1
END_WITHIN_S: Final = 3.0


class _Server(uvicorn.Server):
    """uvicorn, without its hand on the process's signals and with a sign when it is ready."""

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
    """A listening socket on a loopback address; port 0 takes a free one.

    Raises:
        ValueError: the address is not loopback: what is simulated has no business in a network.
        OSError: the port is taken.
    """
    if not ipaddress.ip_address(host).is_loopback:
        raise ValueError(f"{host} is not a loopback address")
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


@asynccontextmanager
async def serving(app: Litestar, sock: socket.socket) -> AsyncGenerator[None, None]:
    """Serve `app` on `sock` for the length of the context, from when it answers to when it has closed."""
    config = uvicorn.Config(
        _asgi(app),
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=256,
        timeout_keep_alive=30,
    )
    server = _Server(config)
    finished = anyio.Event()

    async def serve() -> None:
        try:
            await server.serve(sockets=[sock])
        finally:
            finished.set()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            try:
                with anyio.fail_after(START_WITHIN_S):
                    await server.ready.wait()
                yield
            finally:
                server.should_exit = True
                with anyio.move_on_after(END_WITHIN_S, shield=True):
                    await finished.wait()
                group.cancel_scope.cancel()
    finally:
        sock.close()


def _asgi(app: Litestar) -> Any:
    # Litestar's own type of an ASGI application is narrower than uvicorn's.
    return app
