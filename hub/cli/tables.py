"""What a person reads: tables that fit 80 columns, and foreign text that cannot steer the terminal."""

import re
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

LONGEST_TEXT = 500


def plain(value: Any, longest: int = LONGEST_TEXT) -> str:
    """`value` as one line of printable text. What devices and agents wrote is data and moves no cursor."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    line = "".join(sign if sign.isprintable() else " " for sign in text[: longest + 1])
    line = " ".join(line.split())
    return f"{line[: longest - 1]}…" if len(line) > longest else line


def short_hash(value: Any) -> str:
    """`sha256:0123456789ab` of a hash; enough to name it in a command."""
    text = plain(value)
    return text[:19] if text.startswith("sha256:") else text


def short_id(value: Any) -> str:
    """The last part of a long id: `koshari` of `https://kitchen.example/recipes#koshari`."""
    text = plain(value)
    return re.split(r"[#:/]", text)[-1] or text


def print_json(value: Any) -> None:
    """`value` for a script: indented JSON, one document, UTF-8."""
    try:
        raw = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(_escaped(msgspec.to_builtins(value)))
    sys.stdout.write(msgspec.json.format(raw, indent=2).decode() + "\n")
    sys.stdout.flush()


def escaped(text: str) -> str:
    """`text` with what UTF-8 cannot write as an escape: names of files may hold any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _escaped(value: Any) -> Any:
    match value:
        case str():
            return escaped(value)
        case dict():
            return {_escaped(name): _escaped(member) for name, member in value.items()}
        case list() | tuple():
            return [_escaped(member) for member in value]
        case _:
            return value


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str) -> None:
    """`rows` under `columns`; without rows `empty`, which says what to do next.

    The first column names the thing and is never cut, so that it can be copied.
    """
    if not rows:
        print_line(empty)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=index == 0)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    _console().print(table)


def print_line(text: str) -> None:
    """One line (or more) of our own words; wraps at the terminal's width only where a person reads."""
    sys.stdout.write(escaped(text) + "\n")
    sys.stdout.flush()


def _console() -> Any:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, markup=False)
