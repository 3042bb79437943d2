"""Killing a process cannot show what survives a power loss: here the flushes themselves are counted."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import os, sys
from pathlib import Path
from hub.records.log.head import HeadFile
from hub.store import migrations
from hub.store.database import open_writer
from hub.store.writer import Journal, commit_group
folder = Path(sys.argv[1])
connection = open_writer(folder / "hub.db")
migrations.migrate(connection, migrations.available())
if sys.argv[2] != "FULL":
    connection.execute(f"PRAGMA synchronous = {sys.argv[2]}")
journal = Journal("log-1", "home", HeadFile(folder / "head"))
for number in range(20):
    commit_group(connection, journal, [lambda transaction: transaction.append("test.noted", b"x")] * 3, "t")
    os.write(1, b"acknowledged\\n")
"""


def unflushed(folder: Path, synchronous: str) -> list[str]:
    """For each acknowledgement, what was not flushed to disk, in this order, since the one before."""
    trace = folder / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync,write", sys.executable, "-c", SCRIPT,
         folder, synchronous],
        check=True,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    missing: list[str] = []
    flushed: list[str] = []
    acknowledged = 0
    for line in trace.read_text().splitlines():
        synced = re.search(r"\bf(?:data)?sync\(\d+<([^>]+)>\)\s+= 0", line)
        if synced:
            flushed.append(Path(synced[1]).name)
        elif '"acknowledged' in line:
            acknowledged += 1
            after_log = flushed[flushed.index("hub.db-wal") :] if "hub.db-wal" in flushed else []
            if not after_log:
                missing.append("hub.db-wal")
            if "head" not in after_log:
                missing.append("head after hub.db-wal")
            flushed = []
    assert acknowledged == 20
    return missing


@pytest.fixture(autouse=True)
def _strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed (tests/install-system.sh)")


@pytest.mark.strace
def test_log_and_then_head_are_flushed_before_each_acknowledgement(tmp_path: Path) -> None:
    assert unflushed(tmp_path, "FULL") == []


@pytest.mark.strace
@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_the_count_notices_a_database_that_does_not_flush(tmp_path: Path, synchronous: str) -> None:
    assert unflushed(tmp_path, synchronous).count("hub.db-wal") >= 18
