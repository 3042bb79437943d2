"""Backup and restore as a person does them: the store, and what belongs to it."""

import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from config.paths import DataFolder, write_private
from hub import belongings
from hub.records.log.head import HeadFile
from hub.store import migrations
from hub.store.database import DataFolderLock, open_writer
from hub.store.writer import Journal, Transaction, commit_group, log_identity


class Ids:
    def new(self, prefix: str) -> str:
        return f"{prefix}-1"

    def secret(self) -> str:
        return "secret"


def note(text: bytes, transaction: Transaction) -> int:
    return transaction.append("note", text)


@pytest.fixture
def stored(folder: DataFolder) -> DataFolder:
    """The data folder with a log of two entries."""
    connection = open_writer(folder.database)
    migrations.migrate(connection, migrations.available())
    log_id = log_identity(connection, Ids())
    with HeadFile(folder.head) as keeper:
        journal = Journal(log_id, "home", keeper)
        for text in (b'{"n":1}', b'{"n":2}'):
            commit_group(connection, journal, [partial(note, text)], "2026-05-01T18:00:00.000Z")
    connection.close()
    return folder


def entries(folder: Path) -> int:
    connection = open_writer(folder / "hub.db")
    try:
        (count,) = connection.execute("SELECT count(*) FROM log").fetchone()
        return int(count)
    finally:
        connection.close()


def test_a_backup_holds_everything_a_hub_needs_and_is_private(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path, token: str
) -> None:
    target = tmp_path / "backup"
    ended = aboyeur("backup", str(target))
    assert ended.code == 0, ended.err
    assert {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()} == {
        "hub.db",
        "head",
        "aboyeur.toml",
        "secrets/person:anna.token",
    }
    for path in target.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert token not in ended.out + ended.err


def test_a_backup_comes_back_whole_in_an_empty_place(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path
) -> None:
    target, place = tmp_path / "backup", DataFolder(tmp_path / "new")
    assert aboyeur("backup", str(target), "--json").json()["findings"] == []
    ended = aboyeur("--data", str(place.root), "restore", str(target))
    assert ended.code == 0, ended.err
    assert "aboyeur serve" in ended.out
    assert entries(place.root) == 2
    assert place.token("person:anna").read_bytes() == stored.token("person:anna").read_bytes()
    assert place.settings.read_bytes() == stored.settings.read_bytes()
    assert stat.S_IMODE(place.secrets.stat().st_mode) == 0o700


def test_a_hub_that_is_there_is_only_replaced_when_told_and_its_secrets_stay(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path
) -> None:
    target = tmp_path / "backup"
    assert aboyeur("backup", str(target)).code == 0
    write_private(stored.token("person:anna"), b"a-newer-token")
    refused = aboyeur("restore", str(target))
    assert refused.code == 1
    assert "--replace" in refused.err
    assert aboyeur("restore", str(target), "--replace").code == 0
    assert stored.token("person:anna").read_bytes() == b"a-newer-token"
    assert (stored.root / "before-restore-1" / "hub.db").exists()


def test_nothing_is_restored_under_a_running_hub(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path
) -> None:
    target = tmp_path / "backup"
    assert aboyeur("backup", str(target)).code == 0
    with DataFolderLock(stored.root):
        assert aboyeur("backup", str(tmp_path / "second")).code == 0
        ended = aboyeur("restore", str(target), "--replace")
    assert ended.code == 1
    assert "in use" in ended.err and "stop that hub first" in ended.err


def test_secrets_can_stay_out_of_a_backup(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path
) -> None:
    assert aboyeur("backup", str(tmp_path / "b"), "--without-secrets").code == 0
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["head", "hub.db"]


def test_a_damaged_log_is_told_and_copied_only_when_told(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path
) -> None:
    connection = open_writer(stored.database)
    connection.execute("UPDATE payload SET body = x'7b7d' WHERE seq = 1")
    connection.commit()
    connection.close()
    refused = aboyeur("backup", str(tmp_path / "b"))
    assert refused.code == 1 and "damaged" in refused.err
    assert not (tmp_path / "b").exists()
    made = aboyeur("backup", str(tmp_path / "b"), "--even-damaged")
    assert made.code == 1 and "damaged in 1 place" in made.err
    assert (tmp_path / "b" / "hub.db").exists()


@pytest.mark.parametrize("name", ["full", "missing/deep"])
def test_a_place_that_cannot_take_a_backup_is_named(
    aboyeur: Callable[..., Any], stored: DataFolder, tmp_path: Path, name: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("x")
    (tmp_path / "missing").write_text("a file, not a folder")
    ended = aboyeur("backup", str(tmp_path / name))
    assert ended.code == 1
    assert str(tmp_path / name.split("/", maxsplit=1)[0]) in ended.err
    assert (tmp_path / "full" / "precious").exists()


def test_what_is_no_backup_is_not_restored(aboyeur: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = aboyeur("--data", str(tmp_path / "new"), "restore", str(tmp_path / "empty"))
    assert ended.code == 1
    assert "is no backup" in ended.err


@pytest.mark.parametrize(
    "verb", [("backup", "x"), ("rebuild", "--check"), ("serve",), ("broker", "config", "x")]
)
def test_without_a_hub_it_is_said_how_to_make_one(
    aboyeur: Callable[..., Any], tmp_path: Path, verb: tuple[str, ...]
) -> None:
    ended = aboyeur("--data", str(tmp_path / "none"), *verb)
    assert ended.code == 1
    assert "aboyeur init --owner" in ended.err
    assert not (tmp_path / "none").exists()


def test_links_in_the_secrets_are_not_followed_into_a_backup(folder: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("not ours")
    (folder.secrets / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "target").mkdir()
    packed = belongings.pack(folder, tmp_path / "target")
    assert Path("secrets/link") not in packed
    assert Path("secrets/person:anna.token") in packed
