"""Asking a catalogue, a did:web host or a device for its public keys: bounded in time, size and reach.

Encrypted only, except on this machine itself; a redirect may move within the host that was asked and nowhere
else, because the host's name is all that says whose keys they are.
"""

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

import anyio
import httpx

from adapters.answers import read_whole
from config.settings import is_loopback
from mandates.key_addresses import KeySourceError, catalogue_url, did_web_url, is_url, origin
from mandates.key_sources import Published, read_published

MAX_BYTES: Final = 1_048_576
WITHIN_S: Final = 10.0
REDIRECTS_MOST: Final = 3


class KeyFetchError(Exception):
    """A source that could not be asked, or gave no keys; the text says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source publishes now.

    Attributes:
        source: its name in the cache: the did, or the URL.
        published: its records, and what was skipped.
    """

    source: str
    published: Published


def where(address: str) -> tuple[str, str]:
    """The source's name and the URL it is asked at.

    Raises:
        KeyFetchError: neither a did:web nor an address that may be asked.
    """
    try:
        if address.startswith("did:"):
            did = address.partition("#")[0]
            return did, did_web_url(did)
        url = catalogue_url(address)
    except KeySourceError as error:
        raise KeyFetchError(str(error)) from None
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise KeyFetchError(f"{address}: keys are asked for over https only, except on this machine")
    return url, url


async def fetch(address: str, *, transport: httpx.AsyncBaseTransport | None = None) -> Fetched:
    """The keys that `address` (a URL or a did:web) publishes now.

    Args:
        address: `https://HOST` (its well-known place), a whole URL, or `did:web:HOST[:PATH]`.
        transport: what carries the requests; the network where none is given.

    Raises:
        KeyFetchError: it may not be asked, did not answer as it should, or publishes nothing readable.
    """
    source, url = where(address)
    try:
        with anyio.fail_after(WITHIN_S):
            raw = await _get(url, transport)
        return Fetched(source, read_published(raw, source=source))
    except KeySourceError as error:
        raise KeyFetchError(f"{url}: {error}") from None
    except TimeoutError:
        raise KeyFetchError(f"{url}: no whole answer within {WITHIN_S:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ssl.SSLError, OSError) as error:
        # UnicodeError: the host's name, or the one redirected to, cannot be written for the network.
        raise KeyFetchError(f"{url}: {str(error) or type(error).__name__}") from None


async def _get(url: str, transport: httpx.AsyncBaseTransport | None) -> bytes:
    async with httpx.AsyncClient(
        # A proxy from the environment could answer in the host's name.
        trust_env=False,
        follow_redirects=False,
        timeout=httpx.Timeout(WITHIN_S),
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        transport=transport,
    ) as client:
        at = url
        for _ in range(REDIRECTS_MOST + 1):
            async with client.stream("GET", at) as answer:
                if answer.is_redirect:
                    at = _onward(at, answer.headers.get("Location", ""))
                    continue
                if answer.status_code != 200:
                    raise KeyFetchError(f"{at}: it answered {answer.status_code}")
                body = await read_whole(answer, MAX_BYTES)
                if body is None:
                    raise KeyFetchError(f"{at}: more than {MAX_BYTES} bytes")
                return body
        raise KeyFetchError(f"{url}: redirected more than {REDIRECTS_MOST} times")


def _onward(at: str, location: str) -> str:
    try:
        target = urljoin(at, location)
    except ValueError:
        raise KeyFetchError(f"{at}: redirected to what is no address") from None
    if not is_url(target) or origin(target) != origin(at):
        raise KeyFetchError(f"{at}: redirected to another host, which does not speak for this one")
    return target
