"""What a power cut would show: the disk is told to flush before anything is promised (DESIGN §6).

The hub cooks under strace. Before each acknowledgement that it sends its broker, and before each 202 to an
order, the write-ahead log and after it the log's head must have been flushed since the event, or the order,
came in.
"""

import ast
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.crash.evening import DEVICES, an_evening
from tests.mosquitto_process import Mosquitto

pytestmark = [
    pytest.mark.strace,
    pytest.mark.mosquitto,
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("strace") is None, reason="strace is not installed (tests/install-system.sh)"
    ),
]

CALLS = "fsync,fdatasync,sendto,sendmsg,send,write,writev,recvfrom,recvmsg,read,readv"
PUBLISH, PUBACK = 3, 4

_CALL = re.compile(r'^(\d+) +(\w+)\((\d+)<(TCP:\[[^\]]*\]|[^>]*)>(?:, "((?:[^"\\]|\\.)*)"(\.\.\.)?)?')
_RESUMED = re.compile(r'^(\d+) +<\.\.\. (\w+) resumed>(?:"((?:[^"\\]|\\.)*)"(\.\.\.)?)?')


@dataclass
class Promises:
    """What was promised in a trace, and what of it was not on disk yet."""

    acknowledgements: int = 0
    answers: int = 0
    missing: list[str] = field(default_factory=list)


class _Stream:
    """The MQTT packets in one direction of one connection, as they become whole."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> list[tuple[int, int, bytes]]:
        self._held += piece
        packets = []
        while (whole := self._packet()) is not None:
            packets.append(whole)
        return packets

    def _packet(self) -> tuple[int, int, bytes] | None:
        length = shift = 0
        for place in range(1, min(5, len(self._held))):
            length |= (self._held[place] & 0x7F) << shift
            shift += 7
            if not self._held[place] & 0x80:
                end = place + 1 + length
                if len(self._held) < end:
                    return None
                first, body = self._held[0], self._held[place + 1 : end]
                self._held = self._held[end:]
                return first >> 4, (first >> 1) & 3, body
        return None


def promises(trace: Path, broker_port: int, http_port: int) -> Promises:
    """Read a trace of a hub; raises where it cannot be followed, so that nothing passes unseen."""
    found = Promises()
    flushed: list[str] = []  # the files flushed, in their order
    arrived: dict[tuple[str, int], int] = {}  # event -> how much had been flushed when it came in
    asked: dict[str, int] = {}  # connection -> the same for an order
    streams: dict[tuple[str, bool], _Stream] = {}
    begun: dict[tuple[str, str], tuple[str, bool]] = {}  # (thread, call) -> what it is on

    def not_flushed(since: int) -> str:
        after = flushed[since:]
        if "hub.db-wal" not in after:
            return "hub.db-wal"
        return "" if "head" in after[after.index("hub.db-wal") :] else "head after hub.db-wal"

    def mqtt(connection: str, data: bytes, *, incoming: bool) -> None:
        for kind, qos, body in streams.setdefault((connection, incoming), _Stream()).feed(data):
            if incoming and kind == PUBLISH and qos:
                end = 2 + int.from_bytes(body[:2])
                if b"/from/" in body[2:end]:  # the hub's marker to itself stands in no log
                    arrived[connection, int.from_bytes(body[end : end + 2])] = len(flushed)
            elif not incoming and kind == PUBACK:
                since = arrived.pop((connection, int.from_bytes(body[:2])), None)
                if since is not None:
                    found.acknowledgements += 1
                    if lack := not_flushed(since):
                        found.missing.append(f"acknowledgement {found.acknowledgements}: {lack}")

    def http(connection: str, data: bytes, *, incoming: bool) -> None:
        if incoming and data.startswith(b"POST /v1/executions HTTP/1.1\r\n"):
            asked[connection] = len(flushed)
        elif not incoming and data.startswith(b"HTTP/1.1 ") and connection in asked:
            since = asked.pop(connection)
            if data.startswith(b"HTTP/1.1 202 "):
                found.answers += 1
                if lack := not_flushed(since):
                    found.missing.append(f"202 number {found.answers}: {lack}")

    def moved(call: str, target: str, text: str, cut: str | None) -> None:
        if not target.startswith("TCP"):
            return
        data = ast.literal_eval(f'b"{text}"')
        ours = target.partition("[")[2].partition("->")[0]
        theirs = target.rpartition("->")[2].rstrip("]")
        incoming = call in ("recvfrom", "recvmsg", "read", "readv")
        if theirs.endswith(f":{broker_port}"):
            assert not cut, "the trace cuts what the broker is told"
            mqtt(target, data, incoming=incoming)
        elif ours.endswith(f":{http_port}"):
            http(target, data, incoming=incoming)

    for line in trace.read_text().splitlines():
        if resumed := _RESUMED.match(line):
            thread, call, text, cut = resumed.groups()
            target, done = begun.pop((thread, call), ("", True))
            if call.endswith("sync") and line.endswith("= 0"):
                flushed.append(Path(target).name)
            elif text is not None and not done:
                moved(call, target, text, cut)
            continue
        called = _CALL.match(line)
        if called is None:
            continue
        thread, call, _, target, text, cut = called.groups()
        if "<unfinished ...>" in line:
            begun[thread, call] = (target, text is not None)
        if call.endswith("sync"):
            if line.endswith("= 0"):
                flushed.append(Path(target).name)
        elif text is not None:
            # what is sent counts from its beginning, what is received when it is there
            moved(call, target, text, cut)
    return found


async def trace_of_an_evening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broker: Mosquitto, **environ: str
) -> Promises:
    """Have a dish cooked under strace and read the trace."""
    trace = tmp_path / "trace"
    async with an_evening(tmp_path, monkeypatch, broker) as evening:
        assert evening.hub.stop() == 0
        strace = ("strace", "-f", "-yy", "-x", "-s", "8192", "-e", f"trace={CALLS}", "-o", str(trace))
        await evening.start(prefix=strace, ready=False, **environ)
        await evening.hub.wait_ready(60)
        for dish in ("koshari", "lentil-soup"):
            order = await evening.order(dish)
            await evening.served(order.execution)
        await evening.everything_heard()
        assert evening.hub.stop() == 0
        settings = evening.household.settings
        found = promises(trace, settings.broker.port, settings.http.port)
        await evening.start()
    assert found.answers == 2
    assert found.acknowledgements >= 20
    return found


async def test_log_and_head_are_flushed_before_each_acknowledgement_and_each_202(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    found = await trace_of_an_evening(tmp_path, monkeypatch, mosquitto_factory(devices=DEVICES))
    assert found.missing == []


async def test_the_count_notices_a_hub_that_does_not_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mosquitto_factory: Callable[..., Mosquitto]
) -> None:
    broker = mosquitto_factory(devices=DEVICES)
    found = await trace_of_an_evening(tmp_path, monkeypatch, broker, CRASH_SYNCHRONOUS="OFF")
    assert len([lack for lack in found.missing if lack.endswith(": hub.db-wal")]) >= found.acknowledgements
    assert len([lack for lack in found.missing if lack.startswith("202 ")]) == found.answers
