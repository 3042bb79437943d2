"""A small client of the hub's API: an answer is data, everything else is words and an exit code."""

import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from hub.cli.errors import INTERNAL, REFUSED, UNAUTHORIZED, UNREACHABLE, USAGE, CommandError
from hub.cli.tables import plain

MOST_BYTES: Final = 32 * 1024 * 1024
"""No answer of a hub is larger; whatever else listens at its port must not fill our memory."""


class HubProblem(CommandError):
    """The hub answered, and its answer is a problem.

    Attributes:
        status: the HTTP status.
        title: the problem's title; Core's refusal reason where one fits.
        problem: the whole problem document.
    """

    def __init__(
        self, words: str, exit_code: int, status: int, title: str, problem: Mapping[str, Any]
    ) -> None:
        super().__init__(words, exit_code)
        self.status = status
        self.title = title
        self.problem = problem


class HubClient:
    """One connection to one hub. Use it as a context manager."""

    def __init__(self, url: str, token: str | None, *, timeout_s: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(f"{url} is not the address of a hub; write http://HOST:PORT", USAGE)
        if parts.username or parts.password:
            raise CommandError("a hub's address holds no user or password", USAGE)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self.url = url.rstrip("/")
        # Reading the CA certificates takes 40 ms; over plain HTTP nobody asks for them, so none are trusted.
        trusted = (
            ssl.create_default_context()
            if parts.scheme == "https"
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        # A proxy from the environment would be handed the token.
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            verify=trusted,
            timeout=httpx.Timeout(timeout_s, connect=min(5.0, timeout_s)),
            trust_env=False,
            follow_redirects=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        """GET, as the JSON object that every answer of a hub is."""
        return self._object(self.raw("GET", path, query=query))

    def rows(self, path: str, name: str, **query: str | int) -> list[dict[str, Any]]:
        """GET, as the list of objects that the answer's member `name` is."""
        answer = self.get(path, **query)
        rows = answer.get(name)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self._not_a_hub(f"its answer holds no list of {name}")
        return rows

    def post(
        self, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """POST a JSON body (bytes are sent as they are), as a JSON object."""
        content = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        return self._object(self.raw("POST", path, content=content, headers=headers))

    def delete(self, path: str) -> None:
        """DELETE; whatever a success says beyond that is not needed."""
        self.raw("DELETE", path)

    def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The very bytes of the hub's answer.

        Raises:
            CommandError: no hub answers (exit code 3).
            HubProblem: it answers with a problem.
        """
        sent = dict(headers or {})
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            with self._http.stream(
                method, path, params=query or None, content=content, headers=sent
            ) as answer:
                body = bytearray()
                # Never unpacked: a small compressed answer could become a large one in memory.
                for chunk in answer.iter_raw():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise self._not_a_hub("its answer has no end")
        except httpx.ConnectError:
            raise CommandError(
                f"no hub answers at {self.url}; start one with: aboyeur serve", UNREACHABLE
            ) from None
        except httpx.TimeoutException:
            raise CommandError(f"the hub at {self.url} did not answer in time", UNREACHABLE) from None
        except httpx.TransportError as error:
            raise CommandError(
                f"the connection to the hub at {self.url} broke: {error}", UNREACHABLE
            ) from None
        if answer.is_success:
            return bytes(body)
        raise self._problem(answer, bytes(body))

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            raise self._not_a_hub("its answer is not a JSON object") from None

    def _problem(self, answer: httpx.Response, body: bytes) -> CommandError:
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        try:
            problem = msgspec.json.decode(body) if kind == "application/problem+json" else None
        except (msgspec.DecodeError, RecursionError):
            problem = None
        if not isinstance(problem, dict):
            return self._not_a_hub(f"it answers {answer.status_code} without saying why")
        title = plain(problem.get("title") or f"status {answer.status_code}")
        detail = plain(problem.get("detail") or "")
        words = f"{title}: {detail}" if detail else title
        match answer.status_code:
            case 401:
                words = f"the hub does not know this token ({words}); name another with --token-file or --as"
                code = UNAUTHORIZED
            case 403:
                words, code = f"not allowed for you: {words}", UNAUTHORIZED
            case 502 | 504:
                # The hub is well; an appliance is not.
                code = REFUSED
            case 503:
                words, code = f"the hub cannot do this now: {words}", REFUSED
            case status if status >= 500:
                words, code = f"a fault in the hub: {words}", INTERNAL
            case _:
                code = REFUSED
        return HubProblem(words, code, answer.status_code, title, problem)

    def _not_a_hub(self, why: str) -> CommandError:
        return CommandError(f"what listens at {self.url} is no Aboyeur hub: {why}", UNREACHABLE)


def warn_without_broker(hub: HubClient) -> None:
    """Say on stderr that the hub hears no appliance, if it says so itself."""
    import click

    try:
        health = hub.get("/health")
    except CommandError:
        # What was asked for was answered; a remark beside it is not worth an error.
        return
    if health.get("broker") == "not connected":
        click.echo("the hub is not connected to its broker", err=True)


def text(answer: Mapping[str, Any], name: str) -> str:
    """The text that is the member `name` of an answer.

    Raises:
        CommandError: it has none.
    """
    value = answer.get(name)
    if not isinstance(value, str):
        raise CommandError(f"the hub's answer holds no {name}; is it of another version?", UNREACHABLE)
    return value


def segment(text: str) -> str:
    """`text` as one segment of a path."""
    encoded = quote(text, safe=":@")
    return encoded.replace(".", "%2E") if encoded.strip(".") == "" else encoded
