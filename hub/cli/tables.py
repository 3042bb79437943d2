"""What a person reads: tables that fit 80 columns, and foreign text that cannot steer the terminal."""

import re
import sys
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

LONGEST_TEXT = 500
NARROWEST = 10
"""How narrow, in characters, a column of words may become before its table is told in lines."""
GAP = 3
"""Characters between two columns of a table."""


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


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str, whole: Collection[str] = ()
) -> None:
    """`rows` under `columns`; without rows `empty`, which says what to do next.

    The first column names the thing; it and those in `whole` (ids, addresses) are never broken, so that they
    can be copied. Where the terminal is too narrow for that, each row is a few lines instead.
    """
    if not rows:
        print_line(empty)
        return
    console = _console()
    cells = [[plain(cell) for cell in row] for row in rows]
    unbroken = [index == 0 or column in whole for index, column in enumerate(columns)]
    if _least_width(columns, cells, unbroken) > console.width:
        for first, *rest in cells:
            print_line(first)
            for column, cell in zip(columns[1:], rest, strict=True):
                print_line(f"  {column}: {cell}")
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, whole_cells in zip(columns, unbroken, strict=True):
        table.add_column(column, overflow="fold", no_wrap=whole_cells)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]], unbroken: Sequence[bool]) -> int:
    """How many columns of a terminal a table needs: unbroken cells as they are, others as far as readable."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    asked = [width if whole else min(width, NARROWEST) for width, whole in zip(widths, unbroken, strict=True)]
    return sum(asked) + GAP * (len(asked) - 1)


def print_line(text: str) -> None:
    """One line (or more) of our own words; wraps at the terminal's width only where a person reads."""
    sys.stdout.write(escaped(text) + "\n")
    sys.stdout.flush()


def _console() -> Any:
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, markup=False)
