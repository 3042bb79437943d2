"""A scripted hub on a real socket, and the command line run as a person would."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from config.paths import DataFolder, write_private
from config.settings import Settings, starting_file
from hub.cli.main import run

TOKEN = "anna-token-anna-token-anna-token-anna-token"


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class ScriptedHub:
    """Answers what it was told to, and remembers what it was asked."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with every answer."""
    answers: dict[tuple[str, str], Callable[[Asked], tuple[int, bytes, str]]] = field(default_factory=dict)

    def on(self, method: str, path: str, body: Any, status: int = 200) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.answers[method, path] = lambda asked: (status, raw, "application/json")

    def problem(self, method: str, path: str, status: int, title: str, detail: str = "") -> None:
        raw = json.dumps({"type": "about:blank", "status": status, "title": title, "detail": detail}).encode()
        self.answers[method, path] = lambda asked: (status, raw, "application/problem+json")

    def in_turn(self, method: str, path: str, *bodies: Any) -> None:
        """One body after the other, the last one for ever."""
        rest = list(bodies)

        def answer(asked: Asked) -> tuple[int, bytes, str]:
            body = rest.pop(0) if len(rest) > 1 else rest[0]
            return 200, json.dumps(body).encode(), "application/json"

        self.answers[method, path] = answer

    def only(self, method: str, path: str) -> Asked:
        (one,) = [asked for asked in self.asked if (asked.method, asked.path) == (method, path)]
        return one


@pytest.fixture
def hub() -> Iterator[ScriptedHub]:
    scripted = ScriptedHub()

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet, or every answer waits for a delayed acknowledgement

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            asked = Asked(
                self.command,
                self.path,
                {name.lower(): value for name, value in self.headers.items()},
                self.rfile.read(length),
            )
            scripted.asked.append(asked)
            known = scripted.answers.get((self.command, self.path))
            if known is None:
                body = json.dumps({"title": "unscripted", "status": 404, "detail": self.path}).encode()
                status, kind = 404, "application/problem+json"
            else:
                status, body, kind = known(asked)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status in (301, 302, 307):
                self.send_header("Location", body.decode())
            for name, value in scripted.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    scripted.url = f"http://127.0.0.1:{server.server_port}"
    yield scripted
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def token() -> str:
    """The token of person:anna in the data folder."""
    return TOKEN


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    """The data folder of a hub that person:anna owns."""
    for name in ("TOKEN", "URL", "PERSON", "DATA", "KITCHEN"):
        monkeypatch.delenv(f"ABOYEUR_{name}", raising=False)
    made = DataFolder(tmp_path / "data")
    made.make()
    write_private(made.settings, starting_file(Settings(data=made.root)).encode())
    write_private(made.token("person:anna"), TOKEN.encode())
    return made


@pytest.fixture
def aboyeur(
    folder: DataFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Runs `aboyeur` in the data folder: `aboyeur("needs", url=...)`."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str, url: str | None = None) -> Ended:
        before = ["--data", str(folder.root), *(["--url", url] if url else [])]
        capsys.readouterr()
        code = run([*before, *arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        return Ended(code, printed.out, printed.err)

    return call
