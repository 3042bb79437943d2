"""Who is asking: where a token is found, and that it stays a secret."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.paths import DataFolder, write_private

OTHER = "other-token-other-token-other-token-other"


@pytest.fixture
def seen(hub: Any) -> Callable[[], str]:
    """The token the hub saw last."""
    hub.on("GET", "/v1/needs", {"needs": []})
    return lambda: hub.asked[-1].headers["authorization"].removeprefix("Bearer ")


def test_the_only_token_in_the_data_folder_is_yours(
    aboyeur: Callable[..., Any], hub: Any, seen: Callable[[], str], token: str
) -> None:
    assert aboyeur("needs", url=hub.url).code == 0
    assert seen() == token


def test_a_token_of_the_environment_goes_before_the_data_folder(
    aboyeur: Callable[..., Any], hub: Any, seen: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABOYEUR_TOKEN", f" {OTHER}\n")
    assert aboyeur("needs", url=hub.url).code == 0
    assert seen() == OTHER


def test_a_token_file_goes_before_everything(
    aboyeur: Callable[..., Any],
    hub: Any,
    seen: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ABOYEUR_TOKEN", "not-this-one")
    write_private(tmp_path / "t", OTHER.encode() + b"\n")
    assert aboyeur("--token-file", str(tmp_path / "t"), "needs", url=hub.url).code == 0
    assert seen() == OTHER


def test_where_several_persons_have_tokens_somebody_must_say_who_asks(
    aboyeur: Callable[..., Any], hub: Any, seen: Callable[[], str], folder: DataFolder
) -> None:
    write_private(folder.token("person:ben"), OTHER.encode())
    unsaid = aboyeur("needs", url=hub.url)
    assert unsaid.code == 2
    assert "person:anna" in unsaid.err and "person:ben" in unsaid.err and "--as" in unsaid.err
    assert aboyeur("--as", "person:ben", "needs", url=hub.url).code == 0
    assert seen() == OTHER


def test_nobodys_token_is_exit_code_4_and_says_how_to_get_one(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder
) -> None:
    folder.token("person:anna").unlink()
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 4
    assert "aboyeur people add" in ended.err
    assert hub.asked == []


def test_a_token_file_that_others_can_read_is_not_used(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder
) -> None:
    folder.token("person:anna").chmod(0o644)
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 4
    assert "chmod 600" in ended.err
    assert hub.asked == []


@pytest.mark.parametrize("content", [b"", b"two words", b"\xff\xfe", b"x" * 600, b"a\nb"])
def test_a_file_without_a_token_is_refused(
    aboyeur: Callable[..., Any], hub: Any, tmp_path: Path, content: bytes
) -> None:
    write_private(tmp_path / "t", content)
    ended = aboyeur("--token-file", str(tmp_path / "t"), "needs", url=hub.url)
    assert ended.code == 4
    assert "does not hold a token" in ended.err


@pytest.mark.parametrize(
    "content", ["secret words", "secret\nsecret", "secret-ä", "secret\udcff", "secret" * 99]
)
def test_an_environment_without_a_token_is_refused_and_not_shown(
    aboyeur: Callable[..., Any], hub: Any, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("ABOYEUR_TOKEN", content)
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 4
    assert "ABOYEUR_TOKEN does not hold a token" in ended.err
    assert "secret" not in ended.out + ended.err
    assert hub.asked == []


def test_a_missing_token_file_is_named(aboyeur: Callable[..., Any], hub: Any, tmp_path: Path) -> None:
    ended = aboyeur("--token-file", str(tmp_path / "none"), "needs", url=hub.url)
    assert ended.code == 4
    assert str(tmp_path / "none") in ended.err


def test_no_error_of_any_kind_shows_the_token(
    aboyeur: Callable[..., Any], hub: Any, folder: DataFolder, token: str
) -> None:
    for status in (400, 401, 403, 404, 500):
        hub.problem("GET", "/v1/needs", status, "no", "why")
        ended = aboyeur("needs", url=hub.url)
        assert token not in ended.out + ended.err
    hub.on("GET", "/v1/needs", {"unexpected": "shape"})
    ended = aboyeur("needs", url=hub.url)
    assert ended.code == 3
    assert "holds no list of needs" in ended.err
    assert token not in ended.out + ended.err
