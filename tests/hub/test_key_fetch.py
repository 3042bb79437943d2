"""Asking for public keys: where, how long, how much, and never somebody else (Core §5)."""

import json
import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from hub import key_fetch
from hub.key_fetch import KeyFetchError, fetch, where
from mandates.keys import PrivateKey
from tests.mandates.test_key_sources import did_document, method

KEY = PrivateKey.from_seed(bytes([71]) * 32, kid="recipes-1")
RECORD = KEY.record(actor="recipes", valid_from=datetime(2026, 1, 1, tzinfo=UTC))
DOCUMENT = json.dumps(
    {"keys": [{"kid": KEY.kid, "alg": "EdDSA", "publicKey": KEY.public_key(), "actor": "recipes",
               "validFrom": RECORD.valid_from}]}
).encode()  # fmt: skip

Answer = Callable[[BaseHTTPRequestHandler], None]


def body(content: bytes, status: int = 200, **headers: str) -> Answer:
    def answer(door: BaseHTTPRequestHandler) -> None:
        door.send_response(status)
        door.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            door.send_header(name, value)
        door.end_headers()
        door.wfile.write(content)

    return answer


@pytest.fixture
def catalogue() -> Iterator[tuple[str, dict[str, Answer]]]:
    """A real server on loopback: its URL, and what it answers by path."""
    answers: dict[str, Answer] = {}

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.get(self.path, body(b"nothing", 404))(self)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answers
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_catalogue_is_asked_at_its_well_known_place(catalogue: tuple[str, dict[str, Answer]]) -> None:
    url, answers = catalogue
    answers["/.well-known/cookwala.json"] = body(DOCUMENT)
    fetched = await fetch(url)
    assert fetched.source == f"{url}/.well-known/cookwala.json"
    assert fetched.published.records == (RECORD,)


async def test_a_redirect_within_the_host_is_followed(catalogue: tuple[str, dict[str, Answer]]) -> None:
    url, answers = catalogue
    answers["/.well-known/cookwala.json"] = body(b"", 302, Location="/keys.json")
    answers["/keys.json"] = body(DOCUMENT)
    assert (await fetch(url)).published.records == (RECORD,)


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (body(b"", 302, Location="http://127.0.0.1:1/keys.json"), "another host"),
        (body(b"", 302, Location="https://elsewhere.example/keys.json"), "another host"),
        (body(b"", 302, Location="file:///etc/passwd"), "another host"),
        (body(b"", 302, Location="http://[bad"), "no address"),
        (body(b"", 302, Location="/.well-known/cookwala.json"), "redirected more than"),
        (body(b"no", 500), "answered 500"),
        (body(b"no", 404), "answered 404"),
        (body(b"<html>"), "not_json"),
        (body(b'{"name":"x"}'), "no keys"),
        (body(b" " * (key_fetch.MAX_BYTES + 1)), "more than"),
    ],
)
async def test_a_source_that_does_not_answer_as_it_should_gives_no_keys(
    catalogue: tuple[str, dict[str, Answer]], answer: Answer, word: str
) -> None:
    url, answers = catalogue
    answers["/.well-known/cookwala.json"] = answer
    with pytest.raises(KeyFetchError, match=word):
        await fetch(url)


async def test_a_source_that_drips_is_given_up(
    catalogue: tuple[str, dict[str, Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, answers = catalogue

    def drip(door: BaseHTTPRequestHandler) -> None:
        door.send_response(200)
        door.end_headers()
        for _ in range(100):
            try:
                door.wfile.write(b" ")
            except OSError:
                return
            time.sleep(0.05)

    answers["/.well-known/cookwala.json"] = drip
    monkeypatch.setattr(key_fetch, "WITHIN_S", 0.4)
    started = time.monotonic()
    with pytest.raises(KeyFetchError, match="no whole answer"):
        await fetch(url)
    assert time.monotonic() - started < 3


async def test_nobody_there_is_words(catalogue: tuple[str, dict[str, Answer]]) -> None:
    with pytest.raises(KeyFetchError, match=r"127\.0\.0\.1:9"):
        await fetch("http://127.0.0.1:9")


@pytest.mark.parametrize(
    "address",
    [
        "http://recipes.example",
        "http://192.0.2.1",
        "http://localhost.evil.example",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "did:web:192.0.2.1",
        "did:key:z6Mk",
        "https://user:pass@recipes.example",
        "https://[::1",
        "https://recipes.example?v=1",
        "https://recipes.example/keys.json#1",
        "https://xn--zzzzzz--/",
        "did:web:xn--zzzzzz--",
        "did:web:0x7f000001",
        "HTTP://recipes.example",
    ],
)
async def test_what_may_not_be_asked_is_not(address: str) -> None:
    asked: list[str] = []

    def network(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, stream=httpx.ByteStream(DOCUMENT))

    with pytest.raises(KeyFetchError):
        await fetch(address, transport=httpx.MockTransport(network))
    assert asked == []


async def test_a_did_web_is_asked_at_its_host_over_https() -> None:
    asked: list[str] = []
    key = PrivateKey.from_seed(bytes([72]) * 32, kid="did:web:bakery.example#1")

    def network(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, stream=httpx.ByteStream(did_document(method(key))))

    fetched = await fetch("did:web:bakery.example#1", transport=httpx.MockTransport(network))
    assert asked == ["https://bakery.example/.well-known/did.json"]
    assert fetched.source == "did:web:bakery.example"
    assert [record.kid for record in fetched.published.records] == [key.kid]


async def test_a_did_webs_host_cannot_send_us_to_plain_http() -> None:
    def network(request: httpx.Request) -> httpx.Response:
        return httpx.Response(301, headers={"Location": "http://bakery.example/did.json"})

    with pytest.raises(KeyFetchError, match="another host"):
        await fetch("did:web:bakery.example", transport=httpx.MockTransport(network))


async def test_a_catalogue_written_in_capitals_is_no_file_and_speaks_for_nobody_else(
    catalogue: tuple[str, dict[str, Answer]],
) -> None:
    url, answers = catalogue
    key = PrivateKey.from_seed(bytes([73]) * 32, kid="did:web:bakery.example#1")
    answers["/.well-known/cookwala.json"] = body(did_document(method(key)))
    with pytest.raises(KeyFetchError, match="does not belong"):
        await fetch(url.upper())
    answers["/.well-known/cookwala.json"] = body(DOCUMENT.replace(b"recipes-1", key.kid.encode()))
    fetched = await fetch(url.upper())
    assert fetched.source == f"{url}/.well-known/cookwala.json"
    assert fetched.published.records == ()


async def test_a_proxy_in_the_environment_is_never_asked_in_a_hosts_place(
    catalogue: tuple[str, dict[str, Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, answers = catalogue
    answers["/.well-known/cookwala.json"] = body(DOCUMENT)
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as proxy:
        # Nobody accepts there: whoever asked it would wait until the end.
        at = f"http://127.0.0.1:{proxy.server_address[1]}"
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, at)
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(key_fetch, "WITHIN_S", 2.0)
        assert (await fetch(url)).published.records == (RECORD,)
        proxy.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.socket.accept()


def test_this_machine_may_be_asked_without_encryption() -> None:
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert where(f"http://{host}:8080/keys")[1] == f"http://{host}:8080/keys"


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[str]:
    """A server on loopback with a certificate that nobody vouches for; its https URL."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "impostor.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body(DOCUMENT)(self)

        def log_message(self, *arguments: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *arguments: object) -> None:
            pass  # the client hangs up in the middle of the handshake, which is what is tested

    server = Server(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"https://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


async def test_a_host_that_cannot_prove_its_name_is_not_believed(impostor: str) -> None:
    with pytest.raises(KeyFetchError, match="certificate"):
        await fetch(impostor)
    with pytest.raises(KeyFetchError, match="certificate"):
        await fetch(f"did:web:{impostor.removeprefix('https://').replace(':', '%3A')}")
