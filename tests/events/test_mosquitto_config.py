"""What is written for Mosquitto, and that Mosquitto reads it so."""

import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from events.mosquitto import (
    Listener,
    TlsFiles,
    access_list,
    password_hash,
    verify_password,
    write_configuration,
)

SALT = bytes(range(12))
HASH = password_hash("s", SALT)


def write(directory: Path, **changes: Any) -> Path:
    given: dict[str, Any] = {
        "kitchen": "home",
        "data_directory": directory / "data",
        "listeners": [Listener("127.0.0.1", 1883)],
        "passwords": {"hub": HASH, "oven": HASH},
        "devices": ["oven"],
    }
    return write_configuration(directory, **(given | changes))


def test_a_password_is_known_again_and_no_other() -> None:
    assert verify_password("s", HASH)
    assert verify_password(b"s", HASH)
    assert not verify_password("S", HASH)
    assert not verify_password("", HASH)
    assert password_hash("s", bytes(12)) != HASH


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "s",
        "$6$1$AA==$AA==",
        "$7$0$AA==$AA==",
        "$7$-1$AA==$AA==",
        "$7$99999999999$AAAA$AAAA",
        "$7$1000$?$?",
        HASH + "$",
        HASH[:-8],
        HASH.replace("$1000$", "$1001$"),
        HASH.replace("$1000$", "$²$"),
    ],
)
def test_an_unreadable_hash_matches_nothing(stored: str) -> None:
    assert not verify_password("s", stored)


@pytest.mark.mosquitto
def test_a_hash_by_mosquittos_own_tool_is_understood(tmp_path: Path) -> None:
    if shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed (tests/install-system.sh)")
    file = tmp_path / "made"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(file), "oven", "geheim ä"], check=True)
    stored = file.read_text().strip().partition(":")[2]
    assert verify_password("geheim ä", stored)
    assert not verify_password("geheim", stored)


def test_a_salt_mosquitto_cannot_read_is_refused() -> None:
    with pytest.raises(ValueError, match="12 bytes"):
        password_hash("s", bytes(16))


def test_secrets_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    write(tmp_path)
    for name in ("passwd", "acl", "mosquitto.conf"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acl", "data", "mosquitto.conf", "passwd"]


def test_what_the_home_relies_on_is_switched_on(tmp_path: Path) -> None:
    lines = write(tmp_path).read_text().splitlines()
    for line in (
        "allow_anonymous false",
        "use_username_as_clientid true",
        "persistence true",
        "autosave_on_changes true",
        "autosave_interval 1",
        "queue_qos0_messages false",
        "listener 1883 127.0.0.1",
        f"persistence_location {tmp_path}/data/",
    ):
        assert lines.count(line) == 1


def test_the_login_decides_the_client_id_on_every_listener(tmp_path: Path) -> None:
    listeners = [Listener("127.0.0.1", 1883), Listener("::1", 1883)]
    sections = write(tmp_path, listeners=listeners).read_text().split("\nlistener ")
    assert [section.count("use_username_as_clientid true") for section in sections] == [0, 1, 1]


def test_tls_files_stand_with_their_listener(tmp_path: Path) -> None:
    tls = TlsFiles(Path("/etc/c.pem"), Path("/etc/k.pem"))
    text = write(tmp_path, listeners=[Listener("127.0.0.1", 1883), Listener("::", 8883, tls)]).read_text()
    assert text.split("listener 8883 ::\n")[1].splitlines()[2:4] == [
        "certfile /etc/c.pem",
        "keyfile /etc/k.pem",
    ]
    assert "certfile" not in text.split("listener 8883")[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"listeners": []},
        {"listeners": [Listener("127.0.0.1\nallow_anonymous true", 1883)]},
        {"listeners": [Listener("127.0.0.1", 0)]},
        {"data_directory": Path("/tmp/a\nallow_anonymous true")},
        {"passwords": {"hub": HASH}},
        {"passwords": {"hub": HASH, "oven": HASH, "gone": HASH}},
        {"passwords": {"hub": HASH, "oven": "clear text"}},
        {"passwords": {"hub": HASH, "oven": HASH + "\nroot:x"}},
        {"devices": ["oven", "#"], "passwords": {"hub": HASH, "oven": HASH, "#": HASH}},
        {"devices": ["oven\ntopic #"], "passwords": {"hub": HASH, "oven\ntopic #": HASH}},
        {"devices": ["oven", "hub"]},
        {"readers": ["oven"]},
        {"run_as": "root\nallow_anonymous true"},
    ],
)
def test_nothing_is_written_that_mosquitto_would_misread(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        write(tmp_path / "config", **changes)
    assert not (tmp_path / "config").exists()


def test_the_access_list_names_each_user_once() -> None:
    text = access_list("home", ["oven", "hob"], ["display"])
    assert [line for line in text.splitlines() if line.startswith("user ")] == [
        "user hub",
        "user hob",
        "user oven",
        "user display",
    ]
    assert "pattern" not in text
