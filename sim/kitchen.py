"""A kitchen of simulated appliances in one process, kept in one folder.

Each device answers over HTTP from the beginning, so that a hub can read what it is; it joins the bus when its
pairing file appears. Devices are the ones of the public package `cookwala-samples` (extra `demo`).
"""

import json
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import msgspec
from msgspec import Meta

from config.paths import write_private
from events import documents
from events.documents import Document, DocumentError
from events.mqtt import MqttTransport
from events.seams import Clock, Ids, SystemClock, SystemIds
from events.times import DATE_TIME_PATTERN, format_date_time, parse_date_time
from hub.http_server import serving
from mandates import base64url
from mandates.documents import KeyRecord
from mandates.keys import PrivateKey
from safety.vocabulary import VOCABULARY_RESOURCE, Vocabulary
from sim.appliance import Appliance, served_capabilities
from sim.device_api import Access, device_api
from sim.link import Link
from sim.loopback import listen
from sim.memory import DeviceMemory
from sim.pairing import Pairing, RecipeSource, recipe_source
from sim.withdrawn import POLL_S, keep_asking

HOST: Final = "127.0.0.1"
LOOK_EVERY_S: Final = 0.25
ADDRESSES: Final = "kitchen.json"
"""In the kitchen's folder: the devices and their base URLs, written once all of them answer."""

_log = logging.getLogger(__name__)


class PortTaken(OSError):
    """A device cannot have the port it is to answer at."""


class SamplesMissing(Exception):
    """The extra `demo` is not installed."""


@dataclass(frozen=True, slots=True)
class DeviceData:
    """What a simulated device is: its documents, as bytes."""

    name: str
    capabilities: bytes
    limits: bytes


class _KeyFile(Document, frozen=True):
    kid: str
    seed: str
    valid_from: Annotated[str, Meta(pattern=DATE_TIME_PATTERN)]


def sample_devices() -> list[DeviceData]:
    """The devices of `cookwala-samples`.

    Raises:
        SamplesMissing: the package is not there.
    """
    bundle = _sample_bundle()
    limits = msgspec.json.encode(bundle["safetyLimits"])
    return [
        DeviceData(name, msgspec.json.encode(capabilities), limits)
        for name, capabilities in bundle["devices"].items()
    ]


def sample_recipes() -> dict[str, bytes]:
    """The recipes of `cookwala-samples` by short name: `koshari`, `lentil-soup` and others.

    Raises:
        SamplesMissing: the package is not there.
    """
    return {name: msgspec.json.encode(recipe) for name, recipe in _sample_bundle()["recipes"].items()}


def own_vocabulary() -> Vocabulary:
    """The vocabulary that comes with this package."""
    return Vocabulary.from_bytes(resources.files("safety").joinpath(VOCABULARY_RESOURCE).read_bytes())


async def run_kitchen(
    folder: Path,
    *,
    speed: float = 120.0,
    base_port: int = 9101,
    devices: list[DeviceData] | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    heartbeat_s: float = 10.0,
    presence_interval_s: float = 600.0,
    progress_interval_s: float = 1.0,
    recall_interval_s: float = POLL_S,
    ready: Callable[[Mapping[str, str]], None] | None = None,
) -> None:
    """Run the kitchen until cancelled.

    Args:
        folder: holds each device's memory, key and (put there by somebody else) pairing file.
        speed: how much faster than life the physics runs.
        base_port: the first device's port, the others follow; 0 takes free ones.
        devices: `sample_devices()` unless given.
        recall_interval_s: how often each device asks its hub for recalls.
        ready: told the base URL of every device once all of them answer.

    Raises:
        SamplesMissing: no devices given, and the package with them is not there.
        PortTaken: a port cannot be had.
        OSError: the folder cannot be written.
    """
    clock = clock or SystemClock()
    ids = ids or SystemIds()
    vocabulary = own_vocabulary()
    _make(folder)
    places: list[_Place] = []
    async with AsyncExitStack() as stack:
        for number, device in enumerate(sample_devices() if devices is None else devices):
            sock = _listen(device.name, base_port + number if base_port else 0)
            url = f"http://{HOST}:{sock.getsockname()[1]}"
            source = await stack.enter_async_context(recipe_source())
            memory = stack.enter_context(closing(DeviceMemory(folder / f"{device.name}.sqlite")))
            key, record = device_key(folder / f"{device.name}.key", device.name, clock, ids)
            appliance = Appliance(
                name=device.name,
                capabilities=served_capabilities(
                    device.capabilities, url=url, keys=[msgspec.to_builtins(record)]
                ),
                limits=device.limits,
                vocabulary=vocabulary,
                clock=clock,
                ids=ids,
                key=key,
                memory=memory,
                fetch=source.fetch,
                speed=speed,
                presence_interval_s=presence_interval_s,
                progress_interval_s=progress_interval_s,
            )
            access = Access()
            await stack.enter_async_context(serving(device_api(appliance, access), sock))
            places.append(_Place(appliance, access, source, folder / f"{device.name}.pairing.json", url))
        urls = {place.appliance.name: place.url for place in places}
        write_private(folder / ADDRESSES, msgspec.json.encode({"devices": urls}))
        if ready is not None:
            ready(urls)
        # Innermost, so that nobody works any more when memories and sockets are closed.
        async with anyio.create_task_group() as group:
            for place in places:
                group.start_soon(place.appliance.run)
                group.start_soon(_join, place, clock, heartbeat_s, recall_interval_s)


def device_key(path: Path, device: str, clock: Clock, ids: Ids) -> tuple[PrivateKey, KeyRecord]:
    """The device's signing key and its public record, made and kept in `path` the first time.

    Raises:
        DocumentError, ValueError: the file is not such a key.
        OSError: it cannot be read or written.
    """
    if not path.exists():
        kid = ids.new(f"{device}-key")
        made = _KeyFile(kid=kid, seed=ids.secret(), valid_from=format_date_time(clock.wall()))
        write_private(path, documents.write(made))
    kept = documents.read(_KeyFile, path.read_bytes())
    key = PrivateKey.from_seed(base64url.decode(kept.seed), kid=kept.kid)
    return key, key.record(actor=device, valid_from=parse_date_time(kept.valid_from))


@dataclass(frozen=True, slots=True)
class _Place:
    """A device in this kitchen, and what its pairing will unlock."""

    appliance: Appliance
    access: Access
    source: RecipeSource
    pairing: Path
    url: str


async def _join(place: _Place, clock: Clock, heartbeat_s: float, recall_interval_s: float) -> None:
    """Wait for the device's pairing, then be its hub's until cancelled."""
    complaint: str | None = None
    while isinstance(found := _read_pairing(place), str | None):
        if found is not None and found != complaint:
            _log.warning("%s cannot be used: %s", place.pairing, found)
        complaint = found
        await clock.sleep(LOOK_EVERY_S)
    voice = place.appliance.join(found.kitchen)
    place.source.pairing = found
    place.access.hub_token = found.hub_token
    link = Link(place.appliance, voice, MqttTransport(found.mqtt(), clock), clock, heartbeat_s)
    async with anyio.create_task_group() as group:
        group.start_soon(link.run)
        group.start_soon(
            keep_asking, place.source.recalls, place.appliance.learn_recalls, clock, recall_interval_s
        )


def _read_pairing(place: _Place) -> Pairing | str | None:
    """The device's pairing; None while there is none, words when it is not usable."""
    try:
        pairing = documents.read(Pairing, place.pairing.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, DocumentError) as error:
        return str(error)
    return pairing if pairing.device == place.appliance.name else f"it is for {pairing.device}"


def _listen(device: str, port: int) -> socket.socket:
    try:
        return listen(HOST, port)
    except OSError as error:
        raise PortTaken(error.errno, f"port {port} of {device}: {error.strerror}") from None


def _sample_bundle() -> dict[str, Any]:
    try:
        raw = resources.files("cookwala_samples").joinpath("data/bundle.json").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        raise SamplesMissing("install the extra `demo`: pip install 'aboyeur[demo]'") from None
    bundle: dict[str, Any] = json.loads(raw)
    return bundle


def _make(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


if __name__ == "__main__":
    import_module("sim.commands").kitchen()
