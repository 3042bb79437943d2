"""Vector files as they are published: a list of `{id, kind, description, input, expected}` each (Core §1)."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from config.paths import read_at_most
from events.documents import Document, DocumentError, from_plain, parse

FILES_MOST: Final = 1_000
MAX_FILE_BYTES: Final = 8 * 1024 * 1024


class Vector(Document, frozen=True):
    """One case. `input` and `expected` are read by the kind."""

    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{1,95}$(?!\n)")]
    kind: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{1,40}$(?!\n)")]
    description: str
    input: Any
    expected: Any
    profile: str | None = None
    rfc: str | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """The vectors of one file.

    Attributes:
        name: the file's place in the folder without its ending, as reports name it: `hash`,
            `profiles/sensor_trust`.
        vectors: its vectors, in order.
        error: why the file gives none; None where it does.
    """

    name: str
    vectors: tuple[Vector, ...] = ()
    error: str | None = None


class FolderError(ValueError):
    """A folder that holds no vectors, or more files than are read."""


def read_folder(folder: Path) -> list[Suite]:
    """Every `*.json` in `folder` and below it, in the order of their names.

    What holds no vectors is a suite with an error, and so is a folder or a link to nothing of that name:
    skipping one would make a broken suite look passed.

    Raises:
        FolderError: no such file, or more than `FILES_MOST`.
    """
    try:
        paths = sorted(folder.rglob("*.json"))
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error.strerror}") from None
    if not paths:
        raise FolderError(f"{folder} holds no vector files (*.json)")
    if len(paths) > FILES_MOST:
        raise FolderError(f"{folder} holds {len(paths)} files, at most {FILES_MOST} are read")
    return [_suite(path, suite_name(path.relative_to(folder))) for path in paths]


def read_vectors(raw: bytes) -> tuple[Vector, ...]:
    """The vectors in a file of the bytes `raw`.

    Raises:
        DocumentError: it is not a list of vectors.
    """
    plain = parse(raw, max_bytes=MAX_FILE_BYTES)
    if not isinstance(plain, list):
        raise DocumentError("invalid", "not a list of vectors")
    return tuple(from_plain(Vector, entry) for entry in plain)


def suite_name(path: Path) -> str:
    """`path` without its ending, in the letters a report may hold."""
    return re.sub(r"[^a-z0-9_/-]", "-", path.with_suffix("").as_posix().lower())


def _suite(path: Path, name: str) -> Suite:
    if not path.is_file():
        return Suite(name, error="no file, or a link to none")
    try:
        vectors = read_vectors(read_at_most(path, MAX_FILE_BYTES))
    except OSError as error:
        return Suite(name, error=f"cannot be read: {error.strerror}")
    except DocumentError as error:
        return Suite(name, error=str(error))
    if not vectors:
        return Suite(name, error="no vectors in it")
    if len({vector.id for vector in vectors}) < len(vectors):
        return Suite(name, error="two vectors of one id")
    return Suite(name, vectors)
