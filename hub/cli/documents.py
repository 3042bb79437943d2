"""Documents in files, as commands read and write them."""

from pathlib import Path
from typing import Any

from hub.cli.errors import REFUSED, USAGE, CommandError


def read_document(path: Path) -> dict[str, Any]:
    """The document in `path`, as plain JSON values.

    Raises:
        CommandError: the file cannot be read, or holds no document.
    """
    from events.documents import DocumentError, parse

    try:
        plain = parse(read_file(path))
    except DocumentError as error:
        raise CommandError(f"{path} is no document: {error}", REFUSED) from None
    if not isinstance(plain, dict):
        raise CommandError(f"{path} is no document: a document is a JSON object", REFUSED)
    return plain


def read_file(path: Path) -> bytes:
    """The bytes of `path`; of more than a document may have, one more than that, which no reader takes.

    Raises:
        CommandError: the file cannot be read.
    """
    from config.paths import read_at_most
    from events.documents import MAX_DOCUMENT_BYTES

    try:
        return read_at_most(path, MAX_DOCUMENT_BYTES)
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}", USAGE) from None


def give(document: Any, out: Path | None) -> None:
    """Write `document` to a new file, or print it.

    Raises:
        CommandError: the file exists or cannot be written.
    """
    from hub.cli.tables import print_json, print_line

    if out is None:
        print_json(document)
        return
    write_new(document, out)
    print_line(f"Wrote {out}.")


def write_new(document: Any, out: Path) -> None:
    """Write `document` to the new file `out` as indented JSON.

    Raises:
        CommandError: the file exists or cannot be written.
    """
    import msgspec

    write_new_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n", out)


def write_new_bytes(raw: bytes, out: Path) -> None:
    """Write `raw` to the new file `out`.

    Raises:
        CommandError: the file exists or cannot be written.
    """
    try:
        with out.open("xb") as file:
            file.write(raw)
    except FileExistsError:
        raise CommandError(f"{out} exists and is not overwritten; name another file", USAGE) from None
    except OSError as error:
        raise CommandError(f"{out} cannot be written: {error.strerror}", USAGE) from None
