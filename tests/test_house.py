"""The house itself: who imports whom, what is said of each thing, and what no file of it may hold."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("config", "events", "mandates", "safety", "adapters", "hub", "sim")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
LINES_MOST = 500
NAMES = [str(path.relative_to(ROOT)) for path in MODULES]
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
# Written so that this file does not hold what it looks for.
FOREIGN = ("../" + "shared", "/" + "work/", "/" + "tmp/plan")


def test_a_room_imports_only_what_its_floor_allows() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " 0 broken" in done.stdout


def test_the_top_level_holds_the_rooms_and_no_other_package() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == set(ROOMS)
    for room in ROOMS:
        assert (ROOT / room / "py.typed").is_file(), room


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_a_module_says_what_it_is_and_stays_one_idea(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the module has no docstring"
    assert len(text.splitlines()) <= LINES_MOST
    silent = [f"line {node.lineno}: {node.name}" for node in _public(tree) if not _explained(node)]
    assert not silent, "without a docstring"


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_nothing_is_left_to_be_finished_and_nothing_names_another_place(path: Path) -> None:
    text = path.read_text()
    assert UNFINISHED.search(text) is None
    assert not [place for place in FOREIGN if place in text]


def test_no_page_and_no_data_file_names_another_place() -> None:
    files = [ROOT / "Makefile", ROOT / "pyproject.toml", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for room in ROOMS:
        files += [*(ROOT / room).rglob("*.json"), *(ROOT / room).rglob("*.sql")]
    for path in files:
        text = path.read_text()
        assert not [place for place in FOREIGN if place in text], path
        assert UNFINISHED.search(text) is None, path


_Named = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _public(tree: ast.AST) -> Iterator[_Named]:
    """Public classes and functions of a module, methods included; not what stands inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Named) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node)


def _explained(node: _Named) -> bool:
    """Whether it has a docstring, or is one of the few whose name and types say all there is."""
    if ast.get_docstring(node):
        return True
    if isinstance(node, ast.ClassDef):
        return all(isinstance(part, ast.AnnAssign) or _is_text(part) for part in node.body)
    first = [ast.unparse(one.annotation) for one in node.args.args[:1] if one.annotation]
    folds_an_entry = first == ["Fold"] and [one.arg for one in node.args.args[1:]] == ["entry"]
    named = {ast.unparse(decorator) for decorator in node.decorator_list}
    return folds_an_entry or bool(named & {"property", "overload"}) or _one_line(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _one_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A body of one short statement, as where a class does what its protocol describes."""
    return len(node.body) == 1 and node.body[0].lineno == node.body[0].end_lineno
