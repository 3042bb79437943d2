"""CONNECT packets as a client writes them, also those no decent client would."""


def field(value: bytes) -> bytes:
    """A length-prefixed field."""
    return len(value).to_bytes(2, "big") + value


def connect_body(
    client_id: str,
    username: str | None = None,
    password: bytes | None = None,
    *,
    will: tuple[str, bytes] | None = None,
    keepalive_s: int = 0,
    clean: bool = True,
    level: int = 4,
) -> bytes:
    """Everything after the fixed header."""
    flags = 0x02 if clean else 0
    flags |= 0x04 if will else 0
    flags |= 0x80 if username is not None else 0
    flags |= 0x40 if password is not None else 0
    body = (
        b"\x00\x04MQTT" + bytes((level, flags)) + keepalive_s.to_bytes(2, "big") + field(client_id.encode())
    )
    if will:
        body += field(will[0].encode()) + field(will[1])
    if username is not None:
        body += field(username.encode())
    if password is not None:
        body += field(password)
    return body


def packet(first: int, body: bytes) -> bytes:
    """A whole packet of any kind; `first` is its first byte."""
    length, digits = len(body), bytearray()
    while True:
        length, digit = divmod(length, 128)
        digits.append(digit | (0x80 if length else 0))
        if not length:
            return bytes((first,)) + bytes(digits) + body
