"""Where a hub keeps its things: the data folder, the files in it, and files only their owner may read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

PRIVATE_FILE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The names inside one hub's data folder. Naming a file neither makes nor reads it."""

    root: Path

    @property
    def settings(self) -> Path:
        return self.root / "aboyeur.toml"

    @property
    def database(self) -> Path:
        return self.root / "hub.db"

    @property
    def head(self) -> Path:
        return self.root / "head"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def known_keys(self) -> Path:
        """Public keys that others published, kept for when their sources cannot be asked."""
        return self.root / "known-keys.json"

    @property
    def last_failure(self) -> Path:
        """Details of the last unexpected error of a command; the next one overwrites it."""
        return self.root / "last-failure.txt"

    def token(self, actor: str) -> Path:
        """The bearer token of a person who uses this machine."""
        return self.secrets / f"{file_stem(actor)}.token"

    def key(self, actor: str) -> Path:
        """The private signing key of a person who uses this machine."""
        return self.secrets / f"{file_stem(actor)}.key"

    def public_key(self, actor: str) -> Path:
        """The KeyRecord (JSON) that belongs to `key`."""
        return self.secrets / f"{file_stem(actor)}.pub.json"

    def make(self) -> None:
        """Make the folder and its `secrets`, closed to others; existing ones are closed again.

        Raises:
            OSError: it cannot be made, or belongs to somebody else.
        """
        self.root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        self.secrets.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        self.root.chmod(PRIVATE_FOLDER)
        self.secrets.chmod(PRIVATE_FOLDER)


def file_stem(actor: str) -> str:
    """An actor's id as a file name without suffix: whatever could leave the folder is percent-encoded."""
    stem = quote(actor, safe=":@")
    return "%2E" + stem[1:] if stem.startswith(".") else stem


def default_data_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_DATA_HOME/aboyeur`, else `~/.local/share/aboyeur`. A relative XDG_DATA_HOME is not valid."""
    base = Path(environ.get("XDG_DATA_HOME", ""))
    if not base.is_absolute():
        base = Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return base / "aboyeur"


def read_at_most(path: Path, most: int) -> bytes:
    """The bytes of `path`, or the first `most` + 1 of them: whoever gets that many refuses them.

    A device or a pipe may give bytes without end.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(most + 1)


def write_private(path: Path, content: bytes) -> None:
    """Write `content` to `path`, readable by its owner alone, whole or not at all, and synced to disk.

    The old file stays until the new one is complete. The folder must exist.

    Raises:
        OSError: it cannot be written; the old file is then untouched.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), PRIVATE_FILE)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were just written in `folder` survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
