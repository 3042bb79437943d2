"""The wheel as somebody else installs it: what is in it, what is not, and that it runs anywhere."""

import configparser
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("config", "events", "mandates", "safety", "adapters", "hub", "sim")
DECOYS = ("hub", "config", "events", "mandates", "safety", "adapters", "sim")


def _run(*command: str | Path, cwd: Path, timeout: float = 300.0) -> str:
    """A command in a clean environment; its output."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ABOYEUR"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that nothing of an earlier build gets into it."""
    source = tmp_path_factory.mktemp("source")
    for name in (*ROOMS, "tests", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, source / name)
    target = tmp_path_factory.mktemp("wheel")
    said = _run(
        sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--wheel-dir", target, source, cwd=target
    )
    assert "would be ignored" not in said, "setuptools takes a folder of data for a package"
    (built,) = target.glob("aboyeur-*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_the_rooms_whole_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        points = configparser.ConfigParser()
        (entry_points,) = [name for name in names if name.endswith("entry_points.txt")]
        points.read_string(archive.read(entry_points).decode())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(ROOMS)
    wanted = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".py", ".sql", ".json", ".typed") or path.name == "py.typed"
    }
    assert {name for name in wanted if "__pycache__" not in name} == {
        name for name in names if name.split("/")[0] in ROOMS
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert dict(points["console_scripts"]) == project["scripts"]
    assert dict(points["aboyeur.commands"]) == project["entry-points"]["aboyeur.commands"]
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_installed_elsewhere_it_runs_the_demo_beside_files_of_the_same_names(
    wheel: Path, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    _run(sys.executable, "-m", "venv", venv, cwd=tmp_path)
    python = venv / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", f"{wheel}[demo]", cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in DECOYS:
        (elsewhere / f"{name}.py").write_text(f"raise SystemExit('the {name}.py of somebody else')\n")
    where = _run(python, "-P", "-c", "import hub; print(hub.__file__)", cwd=elsewhere)
    assert str(venv) in where
    said = _run(venv / "bin" / "aboyeur", "demo", "--plain", "--speed", "300", cwd=elsewhere)
    assert "Everything went as it should" in said
    assert sorted(path.name for path in elsewhere.iterdir()) == sorted(f"{name}.py" for name in DECOYS)
