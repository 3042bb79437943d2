"""What ties a device to its hub, and what the device fetches there (ruling X2)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Final, Literal
from urllib.parse import quote

import anyio
import httpx
from msgspec import Meta

from adapters.answers import read_whole
from events.documents import MAX_DOCUMENT_BYTES, Document
from events.mqtt import MqttSettings
from sim.acceptance import HubSilent, RecipeUnavailable
from sim.withdrawn import FEED_MOST_BYTES

FETCH_WITHIN_S: Final = 3.0
"""Shorter than a hub waits for the answer to a start."""


class BrokerAddress(Document, frozen=True):
    """Where the household's broker is."""

    host: str
    port: Annotated[int, Meta(ge=1, le=65535)]
    protocol: Literal["3.1.1", "5"]


class Pairing(Document, frozen=True):
    """What a hub prints when a device is added. `token` is the device's secret, `hub_token` the hub's."""

    kitchen: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,64}$")]
    device: Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    token: str
    hub_token: str
    hub_url: Annotated[str, Meta(pattern=r"^https?://")]
    broker: BrokerAddress

    def mqtt(self) -> MqttSettings:
        """How the device connects to the broker: its name is user and client id."""
        return MqttSettings(
            host=self.broker.host,
            port=self.broker.port,
            username=self.device,
            password=self.token,
            client_id=self.device,
            protocol=self.broker.protocol,
        )


class RecipeSource:
    """The hub a device is paired with, as the place its recipes and recalls come from."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.pairing: Pairing | None = None

    async def fetch(self, recipe_hash: str) -> bytes:
        """The recipe with this hash, as the hub gives it; whoever asked checks it.

        Raises:
            RecipeUnavailable: no pairing, no recipe, or too long.
            HubSilent: no hub, not in time, or it cannot answer now.
        """
        pairing = self.pairing
        if pairing is None:
            raise RecipeUnavailable("the device is not paired")
        url = f"{pairing.hub_url.rstrip('/')}/v1/recipes/{quote(recipe_hash, safe=':')}"
        headers = {"Authorization": f"Bearer {pairing.token}", "Accept-Encoding": "identity"}
        try:
            with anyio.fail_after(FETCH_WITHIN_S):
                async with self._client.stream("GET", url, headers=headers) as response:
                    return await _whole(response)
        except TimeoutError:
            raise HubSilent(f"no answer within {FETCH_WITHIN_S:g} s") from None
        except httpx.HTTPError as error:
            raise HubSilent(type(error).__name__) from None

    async def recalls(self) -> tuple[bytes, bytes]:
        """The hub's feed of recalls, and the keys they were verified with; both are open.

        Raises:
            ConnectionError: no pairing, no hub, or no whole answer in time.
        """
        if self.pairing is None:
            raise ConnectionError("the device is not paired")
        base = self.pairing.hub_url.rstrip("/")
        return await self._open(f"{base}/v1/recalls"), await self._open(f"{base}/v1/recalls/keys")

    async def _open(self, url: str) -> bytes:
        try:
            with anyio.fail_after(FETCH_WITHIN_S):
                async with self._client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as answer:
                    return await _whole(answer, FEED_MOST_BYTES)
        except TimeoutError:
            raise ConnectionError(f"{url}: no answer within {FETCH_WITHIN_S:g} s") from None
        except (httpx.HTTPError, HubSilent, RecipeUnavailable) as error:
            raise ConnectionError(f"{url}: {str(error) or type(error).__name__}") from None


@asynccontextmanager
async def recipe_source() -> AsyncGenerator[RecipeSource, None]:
    """A recipe source with a client of its own."""
    timeout = httpx.Timeout(FETCH_WITHIN_S)
    async with httpx.AsyncClient(timeout=timeout, follow_redirects=False, trust_env=False) as client:
        yield RecipeSource(client)


async def _whole(response: httpx.Response, most: int = MAX_DOCUMENT_BYTES) -> bytes:
    if response.status_code >= 500:
        raise HubSilent(f"the hub answers {response.status_code}")
    if response.status_code != 200:
        raise RecipeUnavailable(f"the hub answers {response.status_code}")
    body = await read_whole(response, most)
    if body is None:
        raise RecipeUnavailable(f"longer than {most} bytes")
    return body
