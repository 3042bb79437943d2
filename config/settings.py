"""The settings of a hub: environment before file before defaults, each value checked where it is read.

The file is `aboyeur.toml` in the data folder. A setting `key` of table `[table]` is the environment variable
`ABOYEUR_TABLE_KEY`; `kitchen` is `ABOYEUR_KITCHEN`.
"""

import ipaddress
import tomllib
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from config.paths import DataFolder

PREFIX: Final = "ABOYEUR_"

_Port = Annotated[int, Meta(ge=1, le=65535, description="a whole number from 1 to 65535")]
_Host = Annotated[str, Meta(min_length=1, max_length=253, description="a host name or an IP address")]
_Seconds = Annotated[float, Meta(gt=0, le=600, description="seconds, more than 0 and at most 600")]
_Metres = Annotated[float, Meta(ge=-500, le=9_000, description="metres, from -500 to 9000")]
_Count = Annotated[int, Meta(ge=1, le=10_000_000, description="a whole number from 1 to 10000000")]
_PayloadBytes = Annotated[
    int, Meta(ge=1_024, le=1_048_576, description="bytes, a whole number from 1024 to 1048576")
]
_Kitchen = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,64}\Z", description="1 to 64 of letters, digits and . _ : -")
]
_File = Annotated[str, Meta(min_length=1, description="the path of a file in PEM form")]
_Kind = Annotated[Literal["embedded", "mosquitto"], Meta(description='"embedded" or "mosquitto"')]
_Protocol = Annotated[Literal["3.1.1", "5"], Meta(description='"3.1.1" or "5", in quotes')]
_Urls = Annotated[
    tuple[Annotated[str, Meta(min_length=8, max_length=512)], ...],
    Meta(max_length=20, description='at most 20 base addresses, as ["https://HOST"]'),
]
_PollSeconds = Annotated[float, Meta(ge=1, le=86_400, description="seconds, a number from 1 to 86400")]
_Level = Annotated[
    Literal["debug", "info", "warning", "error"], Meta(description='"debug", "info", "warning" or "error"')
]


class SettingsError(ValueError):
    """A setting that cannot be used. The text names the place, the key, what was found, what is allowed."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Http(_Table, frozen=True):
    """Where the hub's API listens."""

    host: _Host = "127.0.0.1"
    port: _Port = 7878


class Broker(_Table, frozen=True):
    """The MQTT broker. The embedded one listens on loopback only and speaks 3.1.1 only."""

    kind: _Kind = "embedded"
    host: _Host = "127.0.0.1"
    port: _Port = 18830
    protocol: _Protocol = "3.1.1"
    tls_ca: _File | None = None
    """CA certificate of the broker; set means TLS."""


class Place(_Table, frozen=True):
    """Where the kitchen is."""

    altitude_m: _Metres = 0.0
    """Height above the sea in metres: water boils cooler higher up (Core §3)."""


class Quotas(_Table, frozen=True):
    """What one device may ask of the hub (ruling E5)."""

    events_per_device_per_minute: _Count = 6_000
    open_subjects_per_device: _Count = 200
    payload_bytes: _PayloadBytes = 262_144


class Forward(_Table, frozen=True):
    """How long the hub waits for a device, in seconds."""

    answer_s: _Seconds = 10.0
    stop_answer_s: _Seconds = 3.0
    """Of one try; a stop is tried again until it landed."""


class Catalogues(_Table, frozen=True):
    """Which catalogues are asked for recalls, and given incident reports."""

    urls: _Urls = ()
    """Base addresses; in the environment parted by blanks."""
    every_s: _PollSeconds = 900.0
    """How often each is asked while it answers."""


class Log(_Table, frozen=True):
    """What the hub writes to stderr."""

    level: _Level = "info"


class Settings(_Table, frozen=True):
    """All settings of one hub."""

    data: Path
    """The data folder; chosen by `--data` or ABOYEUR_DATA, never by the file inside it."""
    kitchen: _Kitchen = "home"
    http: Http = Http()
    broker: Broker = Broker()
    place: Place = Place()
    quotas: Quotas = Quotas()
    forward: Forward = Forward()
    catalogues: Catalogues = Catalogues()
    log: Log = Log()

    @property
    def folder(self) -> DataFolder:
        return DataFolder(self.data)

    def url(self) -> str:
        """Where a client on this machine reaches the hub's API."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.http.host, self.http.host)  # noqa: S104 - read, not bound
        return f"http://[{host}]:{self.http.port}" if ":" in host else f"http://{host}:{self.http.port}"

    def warnings(self) -> list[str]:
        """What somebody should know who starts a hub with these settings."""
        found = []
        if not is_loopback(self.http.host):
            found.append(
                f"http.host = {self.http.host}: the API is open to the network, and over plain HTTP "
                "tokens can be read on the way; put a TLS proxy before it or keep 127.0.0.1"
            )
        if self.http.host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
            found.append(
                f"http.host = {self.http.host}: appliances are told {self.url()} when they are paired, which "
                "others than those on this machine cannot reach; write this machine's address in your network"
            )
        if (
            self.broker.kind != "embedded"
            and self.broker.tls_ca is None
            and not is_loopback(self.broker.host)
        ):
            found.append(
                f"broker.host = {self.broker.host} without broker.tls_ca: passwords travel readable; "
                "set broker.tls_ca to the broker's CA certificate"
            )
        return found


_TABLES: Final[Mapping[str, type[_Table]]] = {
    "http": Http,
    "broker": Broker,
    "place": Place,
    "quotas": Quotas,
    "forward": Forward,
    "catalogues": Catalogues,
    "log": Log,
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`. A name other than `localhost` is not looked up: no."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def load(data: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of the hub whose data folder is `data`.

    Raises:
        SettingsError: a file that is not TOML, an unknown key, a value that is not allowed, or values that do
            not go together.
    """
    file = DataFolder(data).settings
    given: dict[str, dict[str, Any]] = {table: {} for table in ("", *_TABLES)}
    origin: dict[tuple[str, str], str] = {}
    for (table, key), value in _from_file(file).items():
        given[table][key] = _checked(value, table, key, str(file), _name(table, key), strict=True)
        origin[table, key] = f"{file}: {_name(table, key)}"
    for variable, (table, key), text in _from_environment(environ):
        given[table][key] = _checked(text, table, key, "environment", variable, strict=False)
        origin[table, key] = f"environment: {variable}"
    _default_of_kind(given["broker"])
    tables: dict[str, Any] = {table: kind(**given[table]) for table, kind in _TABLES.items()}
    settings = Settings(data=data, **given[""], **tables)
    _refuse_contradictions(settings, origin)
    return settings


def _name(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def _from_file(file: Path) -> dict[tuple[str, str], Any]:
    try:
        read = tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: not TOML: {error}") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    found: dict[tuple[str, str], Any] = {}
    for name, value in read.items():
        if name == "data":
            raise SettingsError(f"{file}: data: not a key of this file; use --data or {PREFIX}DATA")
        if name == "kitchen":
            found["", name] = value
        elif name not in _TABLES:
            allowed = ", ".join(["kitchen", *(f"[{table}]" for table in _TABLES)])
            raise SettingsError(f"{file}: {name}: unknown; allowed are {allowed}")
        elif not isinstance(value, dict):
            raise SettingsError(f"{file}: {name}: must be a table, written [{name}]")
        else:
            found.update(((name, key), inner) for key, inner in value.items())
    return found


def _from_environment(environ: Mapping[str, str]) -> list[tuple[str, tuple[str, str], str]]:
    found = []
    for variable, text in sorted(environ.items()):
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        table, _, key = name.partition("_")
        if name == "kitchen":
            found.append((variable, ("", "kitchen"), text))
        elif table in _TABLES:
            # A misspelt key of a table of ours would otherwise be a setting that silently does not hold.
            found.append((variable, (table, key), text))
    return found


def _checked(value: Any, table: str, key: str, place: str, shown: str, *, strict: bool) -> Any:
    owner = _TABLES[table] if table else Settings
    types = typing.get_type_hints(owner, include_extras=True)
    if not strict and table == "catalogues" and key == "urls":
        value = value.split()
    if key not in types:
        names = ", ".join(typing.get_type_hints(owner))
        raise SettingsError(f"{place}: {shown}: unknown; [{table}] has {names}")
    try:
        return msgspec.convert(value, types[key], strict=strict)
    except msgspec.ValidationError:
        raise SettingsError(f"{place}: {shown} = {value!r}: allowed is {_allowed(types[key])}") from None


def _allowed(kind: Any) -> str:
    """The words that describe an annotated type, found inside unions too."""
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.description:
            return meta.description
    return next(filter(None, (_allowed(part) for part in typing.get_args(kind))), "")


def _default_of_kind(broker: dict[str, Any]) -> None:
    """A real broker's usual port and protocol, where nobody said otherwise."""
    if broker.get("kind") == "mosquitto":
        broker.setdefault("port", 8883 if broker.get("tls_ca") else 1883)
        broker.setdefault("protocol", "5")


def _refuse_contradictions(settings: Settings, origin: Mapping[tuple[str, str], str]) -> None:
    broker = settings.broker
    for url in settings.catalogues.urls:
        why = _no_catalogue(url)
        if why is not None:
            raise SettingsError(f"{origin['catalogues', 'urls']}: {url!r}: {why}")
    if len(set(settings.catalogues.urls)) != len(settings.catalogues.urls):
        raise SettingsError(f"{origin['catalogues', 'urls']}: a catalogue stands there twice")
    if broker.kind == "embedded":
        if not is_loopback(broker.host):
            raise SettingsError(
                f"{origin['broker', 'host']} = {broker.host!r}: the embedded broker listens on "
                'loopback only; allowed is "127.0.0.1", or set broker.kind = "mosquitto"'
            )
        if broker.protocol != "3.1.1":
            raise SettingsError(
                f"{origin['broker', 'protocol']} = {broker.protocol!r}: "
                'the embedded broker speaks "3.1.1" only'
            )
        if broker.tls_ca is not None:
            raise SettingsError(
                f"{origin['broker', 'tls_ca']}: the embedded broker has no TLS; "
                'leave it out, or set broker.kind = "mosquitto"'
            )


def _no_catalogue(url: str) -> str | None:
    """Why `url` is no base address of a catalogue."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "no address"
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        return "no address; write https://HOST"
    if parts.path or parts.query or parts.fragment:
        return "a base address ends with its host (and port)"
    if parts.scheme != "https" and not is_loopback(host):
        return "recalls are asked for over https only, except on this machine"
    return None


def starting_file(settings: Settings) -> str:
    """The text of a first `aboyeur.toml`: what differs from the defaults is set, the rest are comments."""
    lines = [
        "# Settings of this hub. A line without # is in force; the others show the defaults.",
        f"# The environment goes before this file: {PREFIX}HTTP_PORT=7979 for port of [http].",
        "",
        f"kitchen = {_toml(settings.kitchen)}",
    ]
    for table, kind in _TABLES.items():
        lines += ["", f"[{table}]"]
        values = getattr(settings, table)
        for field in msgspec.structs.fields(kind):
            value = getattr(values, field.name)
            if value is None:
                lines.append(f'# {field.name} = "..."')
            else:
                lines.append(f"{'# ' if value == field.default else ''}{field.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: str | int | float | tuple[str, ...]) -> str:
    # A JSON string of these characters is a TOML basic string, a list of them a TOML array, and JSON numbers
    # are TOML numbers.
    return msgspec.json.encode(value).decode()
