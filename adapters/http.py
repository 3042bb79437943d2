"""The Core API over HTTP, as a `DeviceAdapter` (Core §7; ruling X4).

Whatever a device does, a call here ends: in bounded time, with a bounded answer, and with one of three
results: what the device said, `DeviceError` (it said no) or `DeviceUnreachable` (nobody knows). A stop has a
client and a new connection of its own each time, so that it never waits behind other calls and never dies
with a connection the device gave up.
"""

import hashlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import count
from typing import Any, Final
from urllib.parse import quote

import anyio
import httpx
import msgspec

from adapters.answers import read_whole
from adapters.documents import CORE_VERSION, ExecuteRequest, ExecutionStatus, PresenceWord, StopRequest
from adapters.protocol import DeviceError, DeviceUnreachable, StopAnswer
from adapters.states import FINAL
from events.documents import DocumentError, from_plain, parse, write
from events.versions import SPOKEN, speaks

MAX_ANSWER_BYTES: Final = 1_048_576
MAX_PROBLEM_BYTES: Final = 16_384
MAX_CONNECTIONS: Final = 16
"""Connections for everything but stops; a call beyond them waits, and then was certainly not sent."""
KEEPALIVE_S: Final = 2.0
"""Shorter than servers commonly keep an idle connection, so that the device is not the first to close."""

_NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
)
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{2,127}")
_HEADER_TEXT: Final = re.compile(r"[!-~]([ -~]*[!-~])?")


@dataclass(frozen=True, slots=True)
class _Line:
    """A client and how long a whole exchange over it may take."""

    client: httpx.AsyncClient
    timeout_s: float


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes


class HttpAdapter:
    """One device behind a base URL such as `http://127.0.0.1:9101`."""

    def __init__(
        self,
        base_url: str,
        hub_token: str,
        *,
        timeout_s: float = 5.0,
        stop_timeout_s: float = 2.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            base_url: `http` or `https`, without credentials, query or fragment.
            hub_token: what the hub shows the device; sent only where the device needs it, never with a stop.
            timeout_s: most seconds for a whole call; half of them for getting a connection.
            stop_timeout_s: the same for a stop.
            transport: replaces sockets (simulation, tests); must not make a stop wait behind other calls.

        Raises:
            ValueError: `base_url` is not such a URL, or `hub_token` cannot stand in a header.
        """
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL as error:
            raise ValueError(f"not the base URL of a device: {base_url!r}: {error}") from None
        if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
            raise ValueError(f"not the base URL of a device: {base_url!r}")
        self._base = str(url).rstrip("/")
        self._bearer = {"Authorization": _header_text(f"Bearer {hub_token}")}
        # Plain HTTP needs no certificates; a context without any trusts nobody.
        tls = (
            httpx.create_ssl_context(trust_env=False)
            if url.scheme == "https"
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        some = httpx.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE_S)
        fresh = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._calls = _Line(_client(tls, timeout_s, some, transport), timeout_s)
        self._stops = _Line(_client(tls, stop_timeout_s, fresh, transport), stop_timeout_s)
        self._stop_count = count()
        self._closed = False

    async def capabilities(self) -> bytes:
        """The capabilities document, byte for byte as the device serves it.

        Raises:
            DeviceError, DeviceUnreachable
        """
        return (await self._call("GET", "/v1/capabilities", {})).body

    async def safety_limits(self) -> bytes:
        """The SafetyLimits pack in force, byte for byte.

        Raises:
            DeviceError, DeviceUnreachable
        """
        return (await self._call("GET", "/v1/safety-limits", {})).body

    async def start(self, request: ExecuteRequest) -> ExecutionStatus:
        """Ask for an execution. The same `idempotency_key` again returns the same execution.

        Raises:
            DeviceError, DeviceUnreachable
            ValueError: the key cannot stand in a header; nothing was sent.
        """
        headers = {**self._bearer, "Idempotency-Key": _header_text(request.idempotency_key)}
        answer = await self._call("POST", "/v1/executions", headers, write(request))
        return _status(answer.body, request.id)

    async def status(self, execution: str) -> ExecutionStatus:
        """The status of a device's execution, by its id or by the id of its request.

        Raises:
            DeviceError: 404 when the device knows neither.
            DeviceUnreachable
        """
        answer = await self._call("GET", _path(execution), self._bearer)
        return _status(answer.body, execution)

    async def stop(self, execution: str, requested_by: str, reason: str | None = None) -> StopAnswer:
        """Stop an execution, by its id or by the id of its request, over a connection of its own.

        Raises:
            DeviceError: anything but 404.
            DeviceUnreachable
        """
        if not _ID.fullmatch(execution):
            return StopAnswer("not_found")
        body = write(
            StopRequest(
                core=CORE_VERSION,
                kind="StopRequest",
                execution=execution,
                requested_by=requested_by,
                reason=None if reason is None else reason[:300],
            )
        )
        # A repeated stop wants the state now, not the first answer again: each gets a key of its own.
        headers = {"Idempotency-Key": f"{_key('stop', body)}-{next(self._stop_count)}"}
        try:
            answer = await self._exchange(self._stops, "POST", f"{_path(execution)}/stop", headers, body)
        except DeviceError as error:
            if error.status == 404:
                return StopAnswer("not_found")
            raise
        plain = _plain(answer.body)
        if isinstance(plain, dict) and plain.get("x-aboyeur-barred") is True:
            if plain.get("execution") != execution:
                raise _unreadable("the bar is for another execution")
            return StopAnswer("landed")
        status = _status(answer.body, execution)
        return StopAnswer("landed" if status.state in FINAL else "stopping", status)

    async def resume(self, execution: str, seq: int, key: str, by: str) -> ExecutionStatus:
        """Go on after a person acted; `seq` is the device's.

        Raises:
            DeviceError: 412 when the device has moved on.
            DeviceUnreachable
            ValueError: the key cannot stand in a header; nothing was sent.
        """
        headers = {**self._bearer, "If-Match": f'"{seq}"', "Idempotency-Key": _header_text(key)}
        answer = await self._call(
            "POST", f"{_path(execution)}/resume", headers, msgspec.json.encode({"by": by})
        )
        return _status(answer.body, execution)

    async def log(self, execution: str) -> bytes:
        """The execution's signed log, byte for byte as the device serves it.

        Raises:
            DeviceError: 404 as long as the execution is not final.
            DeviceUnreachable
        """
        return (await self._call("GET", f"{_path(execution)}/log", self._bearer)).body

    async def present(self, word: PresenceWord) -> None:
        """Pass on a person's word that she is there, in answer to the device's own question.

        Raises:
            DeviceError, DeviceUnreachable
        """
        body = write(word)
        headers = {**self._bearer, "Idempotency-Key": _key("here", body)}
        await self._call("POST", "/v1/presence", headers, body)

    async def close(self) -> None:
        """Give up connections. Idempotent; a call after it is unreachable, and was not delivered."""
        self._closed = True
        try:
            await self._calls.client.aclose()
        finally:
            await self._stops.client.aclose()

    async def _call(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> _Answer:
        return await self._exchange(self._calls, method, path, headers, body)

    async def _exchange(
        self,
        line: _Line,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> _Answer:
        if self._closed:
            raise DeviceUnreachable("the adapter is closed", "no")
        all_headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        if body is not None:
            all_headers["Content-Type"] = "application/json"
        try:
            # httpx bounds each read; only the whole is a bound against a device that answers drop by drop.
            with anyio.fail_after(line.timeout_s):
                request = line.client.stream(method, self._base + path, headers=all_headers, content=body)
                async with request as response:
                    answer = await _read(response)
        except TimeoutError:
            raise DeviceUnreachable(f"no whole answer within {line.timeout_s:g} s", "unknown") from None
        except _NEVER_SENT as error:
            raise DeviceUnreachable(_words(error), "no") from None
        except httpx.HTTPError as error:
            raise DeviceUnreachable(_words(error), "unknown") from None
        _refuse_errors(answer)
        return answer


def _client(
    tls: ssl.SSLContext, timeout_s: float, limits: httpx.Limits, transport: httpx.AsyncBaseTransport | None
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        verify=tls,
        timeout=httpx.Timeout(timeout_s, connect=timeout_s / 2, pool=timeout_s / 2),
        limits=limits,
        follow_redirects=False,
        trust_env=False,
        # A device has no business setting cookies; without this a jar would grow as it likes.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        transport=transport,
    )


async def _read(response: httpx.Response) -> _Answer:
    """The answer's body as it came, up to the bound that fits its status."""
    success = response.is_success
    bound = MAX_ANSWER_BYTES if success else MAX_PROBLEM_BYTES
    if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        if success:
            raise _unreadable("encoded in a way that was not asked for")
        return _Answer(response.status_code, b"")
    body = await read_whole(response, bound)
    if body is None and success:
        raise _unreadable(f"longer than {bound} bytes")
    return _Answer(response.status_code, body or b"")


def _refuse_errors(answer: _Answer) -> None:
    if 200 <= answer.status < 300:
        return
    title, detail = _problem(answer)
    if answer.status >= 500:
        # The device, or something in front of it, broke while it worked: whether it took effect is not said.
        raise DeviceUnreachable(f"{answer.status} {title}: {detail}"[:500], "unknown")
    raise DeviceError(answer.status, title, detail)


def _problem(answer: _Answer) -> tuple[str, str]:
    """Title and detail of an RFC 9457 problem, as far as there is one; the status alone is an answer too."""
    try:
        plain = parse(answer.body)
    except DocumentError:
        plain = None
    members = plain if isinstance(plain, dict) else {}
    title, detail = members.get("title"), members.get("detail")
    return (
        title[:200] if isinstance(title, str) and title else f"HTTP {answer.status}",
        detail if isinstance(detail, str) else "",
    )


def _plain(body: bytes) -> Any:
    try:
        return parse(body)
    except DocumentError as error:
        raise _unreadable(str(error)) from None


def _status(body: bytes, execution: str) -> ExecutionStatus:
    """`body` as the status of `execution` and of no other."""
    try:
        status = from_plain(ExecutionStatus, _plain(body))
    except DocumentError as error:
        raise _unreadable(str(error)) from None
    if not speaks(status.core):
        raise _unreadable(f"Core {status.core[:20]}, not {SPOKEN}")
    if execution not in (status.id, status.request):
        raise _unreadable("the status is of another execution")
    return status


def _unreadable(why: str) -> DeviceUnreachable:
    return DeviceUnreachable(f"unreadable answer: {why}"[:500], "unknown")


def _path(execution: str) -> str:
    if not _ID.fullmatch(execution):
        raise DeviceError(404, "not_found", "no device can have an execution of that name")
    return f"/v1/executions/{quote(execution, safe='')}"


def _key(verb: str, body: bytes) -> str:
    """A key that is the same only for the same body."""
    return f"{verb}-{hashlib.sha256(body).hexdigest()[:40]}"


def _header_text(value: str) -> str:
    if not _HEADER_TEXT.fullmatch(value):
        raise ValueError("not printable ASCII, so it cannot stand in a header")
    return value


def _words(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")[:500]
