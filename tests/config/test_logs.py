"""Logging: what a secret looks like never reaches the stream."""

import io
import logging
from collections.abc import Iterator

import pytest

from config.logs import redact, set_up
from events.seams import SystemIds


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    output = io.StringIO()
    set_up("debug", output)
    yield output
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_bearer_token_is_blotted_out_wherever_it_stands(stream: io.StringIO) -> None:
    token = SystemIds().secret()
    log = logging.getLogger("hub.api")
    log.info("Authorization: Bearer %s", token)
    log.info("headers %s", {"authorization": f"Bearer {token}", "x": 1})
    log.info("odd %s end", token)
    try:
        raise ValueError(f"bad token={token}")
    except ValueError:
        log.exception("it broke")
    text = stream.getvalue()
    assert token not in text
    assert text.count("[redacted]") == 4
    assert "it broke" in text and "Traceback" in text


@pytest.mark.parametrize(
    "text",
    [
        "Bearer short-but-secret",
        '{"token": "abcdefghij"}',
        '{"hubToken":"abcdefghij"}',
        "password=hunter22222",
        "MQTT_PASSWORD: hunter22222",
    ],
)
def test_named_secrets_of_any_shape_are_blotted_out(text: str) -> None:
    assert "[redacted]" in redact(text)
    assert not any(secret in redact(text) for secret in ("short-but", "abcdefghij", "hunter2"))


@pytest.mark.parametrize(
    "text",
    [
        "execution exec-0123456789abcdef0123 moved to running",
        "sha256:" + "ab" * 32,
        "the token was refused",
        "cookwala/home/from/demo-hob-robot/execution/exec-1",
    ],
)
def test_ordinary_lines_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_setting_up_twice_writes_every_line_once(stream: io.StringIO) -> None:
    second = io.StringIO()
    set_up("warning", second)
    logging.getLogger("hub").warning("once")
    logging.getLogger("hub").info("never")
    assert stream.getvalue() == ""
    assert second.getvalue().count("once") == 1
    assert "never" not in second.getvalue()
