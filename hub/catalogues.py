"""Asking a catalogue over HTTP: its recalls, and taking an incident report (Core §7, catalogue side).

Bounded in time, size and reach like the asking for keys; no redirect is followed, because the host that was
configured is the only one that may answer.
"""

import ssl
from typing import Final
from urllib.parse import urlsplit

import anyio
import httpx

from adapters.answers import read_whole
from mandates.key_addresses import origin

FEED_MOST_BYTES: Final = 4 * 1024 * 1024
WITHIN_S: Final = 10.0
_ANSWER_MOST_BYTES: Final = 64 * 1024


class CatalogueError(Exception):
    """A catalogue that could not be asked or did not answer as it should; the text says why.

    Attributes:
        status: the HTTP status it answered with; None where it did not answer.
    """

    def __init__(self, words: str, status: int | None = None) -> None:
        super().__init__(words)
        self.status = status


def names_of(base: str) -> frozenset[str]:
    """What a catalogue at `base` may call itself as an issuer: its host (with its port), or its address."""
    parts = urlsplit(base)
    return frozenset({parts.netloc.lower(), origin(base)})


class CatalogueClient:
    """Asks catalogues.

    Args:
        transport: what carries the requests; the network where none is given.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.transport = transport

    async def recalls(self, base: str) -> bytes:
        """The feed of recalls as it stands there now.

        Raises:
            CatalogueError: no such answer.
        """
        return await self._ask("GET", f"{base}/v1/recalls", most=FEED_MOST_BYTES)

    async def report(self, base: str, report: bytes, key: str) -> None:
        """Give the catalogue an incident report; the same `key` again is the same report.

        Raises:
            CatalogueError: it has not taken it.
        """
        await self._ask("POST", f"{base}/v1/incidents", content=report, key=key, most=_ANSWER_MOST_BYTES)

    async def _ask(
        self, method: str, url: str, *, most: int, content: bytes | None = None, key: str | None = None
    ) -> bytes:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            with anyio.fail_after(WITHIN_S):
                async with (
                    httpx.AsyncClient(
                        # A proxy from the environment could answer in the host's name.
                        trust_env=False,
                        follow_redirects=False,
                        timeout=httpx.Timeout(WITHIN_S),
                        headers=headers,
                        transport=self.transport,
                    ) as client,
                    client.stream(method, url, content=content) as answer,
                ):
                    if not answer.is_success:
                        raise CatalogueError(f"{url}: it answered {answer.status_code}", answer.status_code)
                    body = await read_whole(answer, most)
                    if body is None:
                        raise CatalogueError(f"{url}: more than {most} bytes")
                    return body
        except TimeoutError:
            raise CatalogueError(f"{url}: no whole answer within {WITHIN_S:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            raise CatalogueError(f"{url}: {str(error) or type(error).__name__}") from None
