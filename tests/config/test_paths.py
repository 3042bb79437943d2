"""Paths: where things lie, and that secrets are their owner's alone."""

import os
import stat
from pathlib import Path

import pytest

from config.paths import DataFolder, default_data_folder, file_stem, write_private


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_DATA_HOME": "/x/data", "HOME": "/home/anna"}, "/x/data/aboyeur"),
        ({"HOME": "/home/anna"}, "/home/anna/.local/share/aboyeur"),
        ({"XDG_DATA_HOME": "relative", "HOME": "/home/anna"}, "/home/anna/.local/share/aboyeur"),
        ({"XDG_DATA_HOME": "", "HOME": "/home/anna"}, "/home/anna/.local/share/aboyeur"),
    ],
)
def test_data_lies_where_the_desktop_specification_puts_it(environ: dict[str, str], expected: str) -> None:
    assert default_data_folder(environ) == Path(expected)


def test_a_made_data_folder_is_closed_to_others(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        folder = DataFolder(tmp_path / "a" / "hub")
        folder.make()
    finally:
        os.umask(old)
    assert mode(folder.root) == 0o700
    assert mode(folder.secrets) == 0o700


def test_a_folder_that_stood_open_is_closed_again(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "hub")
    folder.make()
    folder.secrets.chmod(0o755)
    folder.make()
    assert mode(folder.secrets) == 0o700


def test_a_private_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "anna.token"
    for mask in (0, 0o777):
        old = os.umask(mask)
        try:
            write_private(path, b"one")
        finally:
            os.umask(old)
        assert mode(path) == 0o600
        assert path.read_bytes() == b"one"


def test_a_private_file_that_stood_open_is_replaced_by_a_closed_one(tmp_path: Path) -> None:
    path = tmp_path / "anna.token"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, b"new")
    assert (path.read_bytes(), mode(path)) == (b"new", 0o600)


def test_a_private_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "anna.token"
    write_private(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["anna.token"]


def test_a_link_is_replaced_and_never_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("untouched")
    path = tmp_path / "anna.token"
    path.symlink_to(target)
    write_private(path, b"secret")
    assert target.read_text() == "untouched"
    assert not path.is_symlink()


@pytest.mark.parametrize(
    "actor", ["../../etc/passwd", "..", ".", "a/b", "person:anna", "household:h-42/person:p-1"]
)
def test_no_actor_id_leads_out_of_the_secrets_folder(tmp_path: Path, actor: str) -> None:
    folder = DataFolder(tmp_path)
    for path in (folder.token(actor), folder.key(actor), folder.public_key(actor)):
        assert path.resolve().parent == folder.secrets.resolve()
        assert not path.name.startswith(".")


def test_different_actors_have_different_files() -> None:
    actors = ["a/b", "a%2Fb", "a.b", ".a", "%2Ea", "a b"]
    assert len({file_stem(actor) for actor in actors}) == len(actors)
