"""No command in the docs is wrong: each is run, or held against the command that it names."""

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest

from adapters.documents import ExecuteRequest
from config.settings import load
from hub.cli.main import aboyeur
from sim.pairing import Pairing
from tests.docs.pages import COMMANDS, PAGES, ROOT, blocks, inline, links, words_of

OTHERS = frozenset({"make", "mosquitto", "pkill", "journalctl", "systemctl", "apt", "useradd", "install"})
"""Programs of other people that the docs name; what comes after them is theirs."""
ROOMS = ("config", "events", "mandates", "safety", "adapters", "hub", "sim")


def _aboyeur_lines() -> Iterator[tuple[str, list[str]]]:
    """Every call of our command in the docs, in blocks and in running text: where, and its words."""
    for page in PAGES:
        lines = [line for block in blocks(page) if block.kind in COMMANDS for line in block.lines()]
        # In running text a bare name only says which command is meant.
        lines += [text for text in inline(page) if re.match("aboyeur .+ ", text)]
        for line in lines:
            words = words_of(line)
            if words[0] == "aboyeur":
                yield f"{page.name}: {line}", words[1:]
    for where, text in _help_texts(aboyeur, "aboyeur"):
        for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
            example = re.match(r"\s{2,}((?:[A-Z_]+=\S+ )?aboyeur .*?)(?:\s{3,}.*)?$", line)
            if example:
                yield f"{where}: {example[1]}", words_of(example[1].split(" > ")[0])[1:]


def _help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    yield f"{name} --help", (command.help or "").replace("\b", "")
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield from _help_texts(found, f"{name} {inner}")


LINES = list(_aboyeur_lines())


@pytest.mark.parametrize("words", [words for _, words in LINES], ids=[where for where, _ in LINES])
def test_a_command_in_the_docs_is_one_that_exists(words: list[str]) -> None:
    _parse(aboyeur, words, click.Context(aboyeur, info_name="aboyeur"))


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    for wrong in (["cook"], ["cook", "koshari", "--loud"], ["devices", "feed"], ["people", "add", "a", "b"]):
        with pytest.raises(click.UsageError):
            _parse(aboyeur, wrong, click.Context(aboyeur, info_name="aboyeur"))
    with pytest.raises(click.UsageError):
        _parse(aboyeur, ["people", "add", "a", "--role", "king"], click.Context(aboyeur, info_name="aboyeur"))


def _parse(command: click.Command, words: list[str], context: click.Context) -> None:
    """Hold `words` against `command`: its options, their choices, the number of its arguments.

    Raises:
        click.UsageError: the command would not take them. Files need not be there.
    """
    given, rest, order = command.make_parser(context).parse_args(args=list(words))
    if any("--help" in option.opts for option in order):
        return
    if isinstance(command, click.Group):
        name, inner, arguments = command.resolve_command(context, rest)
        assert inner is not None and name is not None
        if inner.hidden or (inner.short_help or "").startswith("(unavailable"):
            raise click.UsageError(f"{name} is not available")
        # A group alone is how the docs name its commands together.
        if arguments or not isinstance(inner, click.Group):
            _parse(inner, arguments, click.Context(inner, info_name=name, parent=context))
        return
    if rest:
        raise click.UsageError(f"unexpected: {rest}")
    for parameter in command.get_params(context):
        value = given.get(parameter.name or "")
        if value is None or parameter.value_is_missing(value):
            if parameter.required:
                raise click.UsageError(f"missing: {parameter.name}")
        elif not isinstance(parameter.type, click.Path):
            parameter.type_cast_value(context, value)


def test_programs_of_others_are_few_and_make_knows_what_it_is_told() -> None:
    targets = re.findall(r"^([a-z.]+):", (ROOT / "Makefile").read_text(), re.M)
    for page in PAGES:
        for block in blocks(page):
            for line in block.lines() if block.kind in COMMANDS else []:
                words = words_of(line)
                if words[0] in ("aboyeur", "python3", "pip"):
                    continue
                assert words[0] in OTHERS, f"{page.name}: {line}"
                if words[0] == "make":
                    assert words[1] in targets, line
                    _check_pytest_arguments(line)


def _check_pytest_arguments(line: str) -> None:
    """`make test ARGS=…`: files that are there, options that pytest has, marks that are ours."""
    match = re.search(r'make test ARGS="([^"]*)"', line)
    marks = [
        mark.split(":")[0]
        for mark in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"][
            "markers"
        ]
    ]
    words = words_of(f"pytest {match[1]}")[1:] if match else []
    while words:
        word = words.pop(0)
        if word in ("-k", "-m"):
            value = words.pop(0)
            assert word == "-k" or value.removeprefix("not ") in marks, line
        elif word != "-x":
            assert (ROOT / word).exists(), line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" not in link:
            assert (page.parent / link.split("#")[0]).exists(), link


def test_settings_in_the_docs_are_settings(tmp_path: Path) -> None:
    found = [block for page in PAGES for block in blocks(page) if block.kind == "toml"]
    assert found
    for block in found:
        (tmp_path / "aboyeur.toml").write_text(block.text)
        load(tmp_path, {})


def test_the_service_file_runs_the_hub() -> None:
    (block,) = [block for page in PAGES for block in blocks(page) if block.kind == "ini"]
    unit = configparser.ConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign] # keys of systemd have capital letters
    unit.read_string(block.text)
    words = words_of(unit["Service"]["ExecStart"])
    assert words == ["aboyeur", "serve"]
    assert "[Install]" in block.text


def test_documents_in_the_docs_are_such_documents() -> None:
    (pairing,) = [block for page in PAGES for block in blocks(page) if block.kind == "json"]
    msgspec.convert(json.loads(pairing.text), Pairing)
    (request,) = [block for page in PAGES for block in blocks(page) if block.kind == "http"]
    named = set(re.findall(r'"(\w+)":', request.text))
    members = {field.encode_name: field.required for field in msgspec.structs.fields(ExecuteRequest)}
    assert named <= set(members)
    assert {name for name, required in members.items() if required} <= named


ARCHITECTURE = ROOT / "docs" / "ARCHITECTURE.md"


def test_every_module_that_the_architecture_names_is_there_and_none_is_forgotten() -> None:
    text = ARCHITECTURE.read_text()
    for name in inline(ARCHITECTURE):
        if re.fullmatch(r"[a-z_]+(/[a-z_]+)*(/[a-z_]+\.py)", name) or re.fullmatch(
            rf"({'|'.join(ROOMS)})(/[a-z_]+)+", name
        ):
            assert (ROOT / name).exists(), name
    forgotten = []
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            whole = str(path.relative_to(ROOT))
            folder = path.parent.relative_to(ROOT)
            row = re.search(rf"`{folder}`.*", text)
            # A row that names a folder and none of its modules stands for all of them.
            whole_folder = row is not None and ".py`" not in row[0]
            above = re.search(rf"`{folder.parent}`.*", text) if len(folder.parts) > 2 else None
            if (
                path.name.startswith("__")
                or f"`{whole}`" in text
                or (row is not None and f"`{path.name}`" in row[0])
                or whole_folder
                or (above is not None and ".py`" not in above[0])
            ):
                continue
            forgotten.append(whole)
    assert not forgotten


def test_every_class_and_function_that_the_architecture_names_is_there() -> None:
    classes: dict[str, set[str]] = {}
    functions: set[str] = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    inner = {part.name for part in node.body if hasattr(part, "name")}
                    classes[node.name] = classes.get(node.name, set()) | inner
                elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    functions.add(node.name)
    for name in inline(ARCHITECTURE):
        called = re.fullmatch(r"([A-Z][A-Za-z]+)(?:\.([a-z_]+))?", name)
        if called:
            assert called[1] in classes, name
            assert called[2] is None or called[2] in classes[called[1]], name
        elif re.fullmatch(r"_?[a-z]+_[a-z_]+", name) and name not in ("executemany",):
            assert name in functions, name


def test_the_bounds_that_the_architecture_gives_are_those_of_the_code() -> None:
    from adapters.http import MAX_ANSWER_BYTES
    from config.settings import Forward, Quotas
    from events.arrivals import MOST_QOS0_QUEUED, MOST_QOS0_QUEUED_BYTES
    from events.documents import MAX_DEPTH, MAX_DOCUMENT_BYTES
    from events.envelope import MAX_EVENT_BYTES
    from events.mqtt import MOST_PAYLOAD_BYTES, MOST_UNCONFIRMED_INCOMING, MOST_UNCONFIRMED_OUTGOING
    from hub.bus import BATCH_MOST
    from hub.cli.serve import SHUTDOWN_S
    from hub.liveness import LATE_AFTER, LOST_AFTER, STALL_S
    from hub.stations import HEAL_AFTER_S, START_PATIENCE_S
    from hub.stops import ANSWER_WITHIN_S
    from hub.store.rings import BYTES_MOST, ROWS_MOST
    from hub.store.writer import GROUP_MOST, WAITING_MOST

    mib, kib = 1 << 20, 1 << 10
    assert (mib, 64, 64 * kib) == (MAX_DOCUMENT_BYTES, MAX_DEPTH, MAX_EVENT_BYTES)
    assert (256 * kib, mib) == (MOST_PAYLOAD_BYTES, MAX_ANSWER_BYTES)
    assert (10_000, 16 * mib) == (MOST_QOS0_QUEUED, MOST_QOS0_QUEUED_BYTES)
    assert (MOST_UNCONFIRMED_INCOMING, MOST_UNCONFIRMED_OUTGOING) == (1_000, 20)
    assert (BATCH_MOST, GROUP_MOST, WAITING_MOST) == (200, 200, 1_000)
    quotas = Quotas()
    assert (quotas.events_per_device_per_minute, quotas.open_subjects_per_device) == (6_000, 200)
    assert quotas.payload_bytes == 256 * kib
    assert (10_000, 64 * mib) == (ROWS_MOST, BYTES_MOST)
    assert (Forward().answer_s, Forward().stop_answer_s) == (10, 3)
    assert (START_PATIENCE_S, HEAL_AFTER_S, ANSWER_WITHIN_S, SHUTDOWN_S) == (60, 5, 3, 15)
    assert (LATE_AFTER, LOST_AFTER, STALL_S) == (1.5, 3, 1)
