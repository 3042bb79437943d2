"""What a person reads when the hub says no, or is no hub."""

import gzip
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from hub.cli.client import HubClient, segment
from hub.cli.errors import CommandError


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_no_hub_is_exit_code_3_and_says_how_to_start_one(aboyeur: Callable[..., Any]) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    ended = aboyeur("needs", url=url)
    assert ended.code == 3
    assert f"no hub answers at {url}; start one with: aboyeur serve" in ended.err


def test_without_url_the_settings_say_where_the_hub_is(
    aboyeur: Callable[..., Any], hub: Any, folder: Any
) -> None:
    folder.settings.write_text(f"[http]\nport = {hub.url.rpartition(':')[2]}\n")
    hub.on("GET", "/v1/needs", {"needs": []})
    assert aboyeur("needs").code == 0


def test_a_hub_that_does_not_answer_is_exit_code_3() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        with (
            HubClient(f"http://127.0.0.1:{deaf.getsockname()[1]}", None, timeout_s=0.2) as client,
            pytest.raises(CommandError, match="did not answer in time") as caught,
        ):
            client.get("/v1/needs")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, 1, "busy: the why"),
        (401, 4, "does not know this token"),
        (403, 4, "not allowed for you"),
        (404, 1, "busy: the why"),
        (409, 1, "busy: the why"),
        (412, 1, "busy: the why"),
        (422, 1, "busy: the why"),
        (428, 1, "busy: the why"),
        (500, 70, "a fault in the hub"),
        (503, 1, "cannot do this now"),
    ],
)
def test_a_problem_becomes_words_and_an_exit_code(
    aboyeur: Callable[..., Any], hub: Any, status: int, code: int, words: str
) -> None:
    hub.problem("GET", "/v1/needs", status, "busy", "the why")
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == code
    assert words in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b"<html>hello</html>", "text/html"),
        (200, b"[" * 100_000, "application/json"),
        (200, b"\xff\xfe", "application/json"),
        (404, b"<html>no</html>", "text/html"),
        (500, b"[]", "application/problem+json"),
        (500, b"{", "application/problem+json"),
    ],
)
def test_something_else_at_the_port_is_told_from_a_hub(
    aboyeur: Callable[..., Any], hub: Any, status: int, body: bytes, kind: str
) -> None:
    hub.answers["GET", "/v1/needs"] = lambda asked: (status, body, kind)
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 3
    assert "is no Aboyeur hub" in ended.err


def test_an_answer_without_end_is_given_up(
    aboyeur: Callable[..., Any], hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.cli.client.MOST_BYTES", 1000)
    hub.on("GET", "/v1/needs", {"needs": ["x" * 2000]})
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 3
    assert "has no end" in ended.err


def test_a_packed_answer_is_neither_asked_for_nor_unpacked(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.headers["Content-Encoding"] = "gzip"
    hub.on("GET", "/v1/needs", gzip.compress(b'{"needs": []}' + b" " * 100_000))
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 3
    assert "is no Aboyeur hub" in ended.err
    assert hub.only("GET", "/v1/needs").headers["accept-encoding"] == "identity"


def test_a_token_is_never_carried_on_to_another_address(aboyeur: Callable[..., Any], hub: Any) -> None:
    hub.answers["GET", "/v1/needs"] = lambda asked: (307, f"{hub.url}/elsewhere".encode(), "text/plain")
    assert aboyeur("needs", url=hub.url).code == 3
    assert [asked.path for asked in hub.asked] == ["/v1/needs"]


def test_a_proxy_of_the_environment_is_not_handed_the_token(
    aboyeur: Callable[..., Any], hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    hub.on("GET", "/v1/needs", {"needs": []})
    assert aboyeur("needs", url=hub.url).code == 0


@pytest.mark.parametrize("url", ["kitchen.local", "ftp://kitchen.local", "http://", "http://anna:pw@kitchen"])
def test_an_address_that_is_none_is_wrong_usage(aboyeur: Callable[..., Any], url: str) -> None:
    assert aboyeur("needs", url=url).code == 2


def test_what_a_device_wrote_cannot_steer_the_terminal(aboyeur: Callable[..., Any], hub: Any) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold]x[/bold]\r\nfake: line"
    hub.problem("GET", "/v1/needs", 409, evil, evil)
    ended = aboyeur("needs", url=hub.url)
    assert "\x1b" not in ended.err and "\x07" not in ended.err
    assert ended.err.count("\n") == 1
    hub.on(
        "GET", "/v1/devices", {"devices": [{"name": "hob", "model": evil, "liveness": "alive", "url": "u"}]}
    )
    listing = aboyeur("devices", "list", url=hub.url)
    assert "\x1b" not in listing.out and "\x07" not in listing.out
    assert "[bold]" in listing.out


@pytest.mark.parametrize(
    ("text", "expected"),
    [("person:anna", "person:anna"), ("a/b", "a%2Fb"), ("..", "%2E%2E"), ("a?b#c", "a%3Fb%23c")],
)
def test_an_id_stays_one_segment_of_a_path(text: str, expected: str) -> None:
    assert segment(text) == expected


def test_the_token_travels_in_the_header_and_nowhere_else(
    aboyeur: Callable[..., Any], hub: Any, token: str
) -> None:
    hub.on("GET", "/v1/needs", {"needs": []})
    ended = aboyeur("needs", url=hub.url)
    asked = hub.only("GET", "/v1/needs")
    assert asked.headers["authorization"] == f"Bearer {token}"
    others = json.dumps([asked.path, *(v for k, v in asked.headers.items() if k != "authorization")])
    assert token not in others + ended.out + ended.err
