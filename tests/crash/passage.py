"""A way from the hub to its devices that can be blocked: connections stand, nothing comes through."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup


class Passage:
    """Passes on what comes, until it is `blocked`."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self.blocked = False
        self.swallowed = 0
        """Bytes that came while it was blocked."""

    async def to(self, url: str) -> str:
        """The base URL that leads through here to `url`."""
        port = int(url.rpartition(":")[2])
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

        async def door(near: SocketStream) -> None:
            async with (
                near,
                await anyio.connect_tcp("127.0.0.1", port) as far,
                anyio.create_task_group() as both,
            ):
                both.start_soon(self._copy, near, far, both)
                both.start_soon(self._copy, far, near, both)

        self._tasks.start_soon(listener.serve, door)
        return f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"

    async def _copy(self, source: SocketStream, target: SocketStream, both: TaskGroup) -> None:
        try:
            while True:
                piece = await source.receive()
                if self.blocked:
                    self.swallowed += len(piece)
                else:
                    await target.send(piece)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            both.cancel_scope.cancel()


@asynccontextmanager
async def passage() -> AsyncIterator[Passage]:
    """A passage for the length of the context."""
    async with anyio.create_task_group() as tasks:
        yield Passage(tasks)
        tasks.cancel_scope.cancel()
