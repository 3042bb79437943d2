"""Making a hub, checking its log and writing its broker's configuration: verbs that need no running hub."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from config.paths import DataFolder
from config.settings import load
from hub.keyfiles import read_key
from hub.store.database import open_writer
from mandates.tokens import token_hash


@pytest.fixture
def found(aboyeur: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """`aboyeur` in an empty folder of its own."""

    def call(*arguments: str) -> Any:
        return aboyeur("--data", str(tmp_path / "new"), *arguments)

    return call


@pytest.fixture
def place(tmp_path: Path) -> DataFolder:
    return DataFolder(tmp_path / "new")


def test_init_makes_a_hub_that_is_its_owners_alone(found: Callable[..., Any], place: DataFolder) -> None:
    ended = found("init", "--owner", "person:anna", "--kitchen", "mill")
    assert ended.code == 0, ended.err
    assert "aboyeur serve" in ended.out
    for path in (place.root, *place.root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert load(place.root, {}).kitchen == "mill"
    token = place.token("person:anna").read_text().strip()
    assert token not in ended.out + ended.err
    connection = open_writer(place.database)
    rows = connection.execute("SELECT kitchen, hash, actor, role FROM token").fetchall()
    connection.close()
    ((kitchen, hashed, actor, role),) = rows
    assert (kitchen, actor, role) == ("mill", "person:anna", "owner")
    assert token_hash(token) == hashed
    assert read_key(place, "person:anna").alg == "EdDSA"


def test_init_says_in_json_where_everything_lies(found: Callable[..., Any], place: DataFolder) -> None:
    told = found("init", "--owner", "person:anna", "--json").json()
    assert told["tokenFile"] == str(place.token("person:anna"))
    assert Path(told["keyFile"]).exists() and Path(told["settings"]).exists()


def test_a_second_init_changes_nothing(found: Callable[..., Any], place: DataFolder) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    before = place.token("person:anna").read_bytes()
    again = found("init", "--owner", "person:mallory")
    assert again.code == 1
    assert "already" in again.err
    assert place.token("person:anna").read_bytes() == before
    assert not place.token("person:mallory").exists()


def test_an_unfinished_init_is_told_from_a_hub(found: Callable[..., Any], place: DataFolder) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    place.settings.unlink()
    ended = found("init", "--owner", "person:anna")
    assert ended.code == 1
    assert "without settings" in ended.err


@pytest.mark.parametrize("owner", ["", "two words", "tab\tbed", "x" * 201])
def test_an_owner_has_an_id(found: Callable[..., Any], place: DataFolder, owner: str) -> None:
    assert found("init", "--owner", owner).code == 2
    assert not place.root.exists()


def test_a_kitchen_with_a_name_that_is_none_is_not_made(found: Callable[..., Any], place: DataFolder) -> None:
    assert found("init", "--owner", "person:anna", "--kitchen", "my kitchen").code == 2
    assert not place.root.exists()


def test_a_place_that_cannot_be_made_is_named(aboyeur: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ended = aboyeur("--data", str(tmp_path / "file" / "new"), "init", "--owner", "person:anna")
    assert ended.code == 1
    assert str(tmp_path / "file" / "new") in ended.err


def test_a_whole_log_shows_no_difference(found: Callable[..., Any]) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    ended = found("rebuild", "--check")
    assert ended.code == 0, ended.out
    assert "No difference. Entries replayed: 1" in ended.out
    report = found("rebuild", "--check", "--json").json()
    assert report["ok"] is True and report["differences"] == []


def test_a_projection_that_is_not_what_the_log_says_is_exit_code_1(
    found: Callable[..., Any], place: DataFolder
) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    connection = open_writer(place.database)
    connection.execute("UPDATE person SET role = 'person'")
    connection.commit()
    connection.close()
    ended = found("rebuild", "--check")
    assert ended.code == 1
    assert "person row 1" in ended.out and "differ" in ended.out
    report = found("rebuild", "--check", "--json")
    assert report.code == 1
    assert report.json()["differences"][0]["table"] == "person"


def test_a_changed_log_is_exit_code_1(found: Callable[..., Any], place: DataFolder) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    connection = open_writer(place.database)
    connection.execute("UPDATE payload SET body = x'7b7d'")
    connection.commit()
    connection.close()
    ended = found("rebuild", "--check")
    assert ended.code == 1
    assert "log: " in ended.out


def test_rebuild_never_repairs_in_silence(found: Callable[..., Any]) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    assert found("rebuild").code == 2


def test_a_broker_configuration_lets_the_hub_in_and_shows_no_password(
    found: Callable[..., Any], place: DataFolder, tmp_path: Path
) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    ended = found("broker", "config", str(tmp_path / "mosquitto"))
    assert ended.code == 0, ended.err
    passwords = (tmp_path / "mosquitto" / "passwd").read_text()
    assert passwords.startswith("hub:$7$")
    secret = (place.secrets / "hub.broker").read_text().strip()
    assert secret not in passwords + ended.out + ended.err
    assert "listener 1883 127.0.0.1" in (tmp_path / "mosquitto" / "mosquitto.conf").read_text()
    assert 'kind = "mosquitto"' in ended.out


def test_what_the_broker_verb_says_to_write_makes_valid_settings(
    found: Callable[..., Any], place: DataFolder, tmp_path: Path
) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    ended = found("broker", "config", str(tmp_path / "m"), "--listen", "0.0.0.0", "--port", "2883")
    advice = ended.out.partition("aboyeur.toml:\n")[2]
    place.settings.write_text(advice)
    broker = load(place.root, {}).broker
    assert (broker.kind, broker.host, broker.port, broker.protocol) == ("mosquitto", "127.0.0.1", 2883, "5")
    assert "passwords travel readable" in ended.err


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user of this machine can get to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.mosquitto
@pytest.mark.parametrize("closed", [False, True], ids=["where mosquitto can enter", "where it cannot"])
def test_mosquitto_takes_the_configuration_as_whoever_wrote_it(
    found: Callable[..., Any], open_folder: Path, closed: bool
) -> None:
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed (tests/install-system.sh)")
    if closed:
        open_folder.chmod(0o700)
    assert found("init", "--owner", "person:anna").code == 0
    ended = found("broker", "config", str(open_folder / "m"), "--port", "28831", "--json")
    assert ended.code == 0, ended.err
    wanted = None if os.geteuid() else "root" if closed else "mosquitto"
    assert ended.json() == {
        "configuration": str(open_folder / "m" / "mosquitto.conf"),
        "host": "127.0.0.1",
        "port": 28831,
        "runAs": wanted,
    }
    assert ("Mosquitto will run as root" in ended.err) == (wanted == "root")
    # It listens until it is ended; a configuration it cannot take ends it at once, with words.
    process = subprocess.Popen(
        [program, "-c", str(open_folder / "m" / "mosquitto.conf")], stderr=subprocess.PIPE
    )
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.terminate()
    _, words = process.communicate(timeout=10)
    assert b"Error" not in words


def test_root_gives_the_files_to_the_user_it_names(found: Callable[..., Any], tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    assert found("init", "--owner", "person:anna").code == 0
    nobody = pwd.getpwnam("nobody").pw_uid
    assert found("broker", "config", str(tmp_path / "m"), "--run-as", "nobody").code == 0
    assert {path.stat().st_uid for path in (tmp_path / "m").iterdir()} == {nobody}
    assert "user nobody\n" in (tmp_path / "m" / "mosquitto.conf").read_text()


@pytest.mark.parametrize(
    ("options", "code"), [(("--tls-cert", "a.pem"), 2), (("--tls-key", "a.pem"), 2), (("--listen", "a b"), 2)]
)
def test_a_broker_that_cannot_be_configured_so_is_wrong_usage(
    found: Callable[..., Any], tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    assert found("broker", "config", str(tmp_path / "m"), *options).code == code


def test_a_hub_whose_secrets_are_gone_is_not_configured(
    found: Callable[..., Any], place: DataFolder, tmp_path: Path
) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    (place.secrets / "hub.broker").unlink()
    ended = found("broker", "config", str(tmp_path / "m"))
    assert ended.code == 1
    assert "hub.broker" in ended.err


def test_the_token_of_init_is_the_one_the_verbs_use(
    found: Callable[..., Any], aboyeur: Callable[..., Any], hub: Any, place: DataFolder
) -> None:
    assert found("init", "--owner", "person:anna").code == 0
    hub.on("GET", "/v1/needs", {"needs": []})
    assert aboyeur("--data", str(place.root), "needs", url=hub.url).code == 0
    token = place.token("person:anna").read_text().strip()
    assert hub.asked[0].headers["authorization"] == f"Bearer {token}"
    assert json.loads(place.public_key("person:anna").read_bytes())["actor"] == "person:anna"


def test_an_agent_owns_no_hub(found: Callable[..., Any], place: DataFolder) -> None:
    told = found("init", "--owner", "agent:planner")
    assert told.code == 1
    assert "person:anna" in told.err
    assert not place.settings.exists()
