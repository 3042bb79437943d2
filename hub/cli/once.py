"""Secrets that are shown once: into a private file where one is named, else onto the terminal."""

import os
from pathlib import Path

from config.paths import write_private
from hub.cli.errors import USAGE, CommandError
from hub.cli.tables import print_line


def check_place(out: Path | None) -> None:
    """Refuse a place that cannot be written, before the hub makes the secret that would get lost.

    Raises:
        CommandError: the file exists, or its folder does not or is closed.
    """
    if out is None:
        return
    if out.exists():
        raise CommandError(f"{out} exists and is not overwritten; name another file", USAGE)
    folder = out.absolute().parent
    if not folder.is_dir():
        raise CommandError(f"there is no folder {folder}", USAGE)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{folder} cannot be written", USAGE)


def hand_over(content: str, out: Path | None, what: str, *, quiet: bool = False) -> None:
    """Write `content` to `out` (mode 0600), or print it; printed too where the file fails after all.

    A `quiet` one does not say that the file was written.

    Raises:
        CommandError: the file could not be written; the content was printed.
    """
    if out is None:
        print_line(content)
        return
    try:
        write_private(out, content.encode() + b"\n")
    except OSError as error:
        print_line(content)
        raise CommandError(
            f"{out} could not be written ({error.strerror}); {what} is printed above instead, keep it"
        ) from None
    if not quiet:
        print_line(f"Wrote {what} to {out} (only you can read it).")
