"""Where public keys are published, and which place may speak for which key (Core §5)."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

CATALOGUE_PATH: Final = "/.well-known/cookwala.json"


class KeySourceError(ValueError):
    """A source of keys that cannot be asked or read; the text says what is wrong with it."""


def did_web_url(did: str) -> str:
    """The https URL of a did:web document: a host alone has it under `/.well-known`, a path beside itself.

    Raises:
        KeySourceError: no did:web, or a host or path that may not stand in one.
    """
    match = re.fullmatch(
        r"did:web:([A-Za-z0-9._-]+(?:%3[Aa][0-9]{1,5})?)((?::(?:[A-Za-z0-9._-]|%[0-9A-Fa-f]{2})+)*)", did
    )
    if match is None:
        raise KeySourceError(f"{did[:200]!r} is no did:web; it reads did:web:HOST or did:web:HOST:PATH")
    host, _, port = unquote(match[1]).partition(":")
    # A last label of digits, decimal or hexadecimal, makes many resolvers read the whole as an IPv4 address.
    if _is_address(host) or re.fullmatch(r"[0-9]+|0[Xx].*", host.rpartition(".")[2]):
        raise KeySourceError(f"{did[:200]!r}: a did:web names a host, never an address")
    if any(not label for label in host.split(".")) or (port and not 0 < int(port) < 65_536):
        raise KeySourceError(f"{did[:200]!r}: no host or port can be called that")
    try:
        steps = [unquote(step, errors="strict") for step in match[2].split(":")[1:]]
    except UnicodeDecodeError:
        raise KeySourceError(f"{did[:200]!r}: its path is not UTF-8") from None
    if any(step in (".", "..") or "/" in step or "\\" in step or not step.isprintable() for step in steps):
        raise KeySourceError(f"{did[:200]!r}: its path leaves the place it names")
    path = "".join(f"/{quote(step, safe='')}" for step in steps) or "/.well-known"
    return f"https://{host.lower()}{f':{port}' if port else ''}{path}/did.json"


def catalogue_url(address: str) -> str:
    """Where a catalogue publishes: an address without a path means its well-known place.

    Scheme and host come back in lower case, so that one place has one name, however it was written.

    Raises:
        KeySourceError: no http(s) address of a place alone (no user, query or fragment).
    """
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise KeySourceError(f"{address[:200]!r} is no address: its host cannot be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or port == 0:
        raise KeySourceError(f"{address[:200]!r} is no address; write https://HOST or did:web:HOST")
    if re.search(r"[?#\\\s\x00-\x1f\x7f]", address):
        raise KeySourceError(
            f"{address[:200]!r}: an address of keys has no query, fragment, space or backslash"
        )
    path = CATALOGUE_PATH if parts.path in ("", "/") else parts.path
    return urlunsplit((parts.scheme, parts.netloc.lower(), path, "", ""))


def may_publish(source: str, kid: str) -> bool:
    """Whether `source` (a did, a URL, or a file's name) may speak for `kid`.

    A did:web's kids come from its own document and a URL's from its own host, so that no catalogue hands out
    somebody else's key; a kid that names no place may come from anywhere. A file is a person's own choice.
    """
    if kid.startswith("did:"):
        return not is_url(source) and (not source.startswith("did:") or source == kid.partition("#")[0])
    if source.startswith("did:"):
        return False
    if is_url(kid) and is_url(source):
        return origin(kid) == origin(source)
    return True


def is_url(text: str) -> bool:
    """Whether `text` is an http(s) URL by its beginning, in whatever case it is written."""
    return text[:8].lower().startswith(("http://", "https://"))


def origin(url: str) -> str:
    """Scheme, host and port of `url` in lower case; a text that is no whole URL is its own origin."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
