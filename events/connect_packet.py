"""The first packet of an MQTT 3.1.1 connection, read before any broker acts on it (MQTT 3.1.1, 3.1)."""

from dataclasses import dataclass
from typing import Final

NOT_THIS_PROTOCOL: Final = b"\x20\x02\x00\x01"
NOT_THIS_CLIENT_ID: Final = b"\x20\x02\x00\x02"
NOT_AUTHORIZED: Final = b"\x20\x02\x00\x05"
NOT_THIS_PROTOCOL_IN_5: Final = b"\x20\x03\x00\x84\x00"

_HEAD: Final = b"\x00\x04MQTT"
_LEVEL_3_1_1: Final = 4
_LEVEL_5: Final = 5
_KEEPALIVE_AT: Final = 8


@dataclass(frozen=True, slots=True)
class Connect:
    """What a client says of itself. `client_id` is empty where the broker shall choose one."""

    client_id: str
    username: str | None
    password: bytes | None
    will_topic: str | None
    keepalive_s: int


class UnreadableConnect(Exception):
    """Not a CONNECT of MQTT 3.1.1; `answer` is the CONNACK to refuse with, None to just hang up."""

    def __init__(self, detail: str, answer: bytes | None = None) -> None:
        super().__init__(detail)
        self.answer = answer


def read_connect(body: bytes) -> Connect:
    """Read what follows the fixed header of a CONNECT.

    Raises:
        UnreadableConnect: the bytes are something else, or another version of the protocol.
    """
    if len(body) < 10 or body[2:6] not in (b"MQTT", b"MQIs"):
        raise UnreadableConnect("not MQTT")
    if body.startswith(_HEAD) and body[6] == _LEVEL_5:
        # in the words of MQTT 5, so that such a client sees the reason instead of a timeout
        raise UnreadableConnect("MQTT 5", NOT_THIS_PROTOCOL_IN_5)
    if not body.startswith(_HEAD) or body[6] != _LEVEL_3_1_1:
        raise UnreadableConnect("another version of MQTT than 3.1.1", NOT_THIS_PROTOCOL)
    flags = body[7]
    has_will = bool(flags & 0x04)
    if flags & 0x01 or (not has_will and flags & 0x38) or flags & 0x18 == 0x18:
        raise UnreadableConnect("contradictory flags")
    fields = _Fields(body, _KEEPALIVE_AT + 2)
    client_id = fields.text()
    will_topic = fields.text() if has_will else None
    if has_will:
        fields.data()
    username = fields.text() if flags & 0x80 else None
    password = fields.data() if flags & 0x40 else None
    if not fields.all_read:
        raise UnreadableConnect("bytes beyond the last field")
    keepalive_s = int.from_bytes(body[_KEEPALIVE_AT : _KEEPALIVE_AT + 2], "big")
    return Connect(client_id, username, password, will_topic, keepalive_s)


def without_keepalive(body: bytes) -> bytes:
    """The same CONNECT saying that silence has no limit."""
    return body[:_KEEPALIVE_AT] + b"\x00\x00" + body[_KEEPALIVE_AT + 2 :]


class _Fields:
    """Length-prefixed fields, one after the other."""

    def __init__(self, body: bytes, start: int) -> None:
        self._body = body
        self._at = start

    @property
    def all_read(self) -> bool:
        return self._at == len(self._body)

    def data(self) -> bytes:
        start = self._at + 2
        end = start + int.from_bytes(self._body[self._at : start], "big")
        if start > len(self._body) or end > len(self._body):
            raise UnreadableConnect("a field is cut short")
        self._at = end
        return self._body[start:end]

    def text(self) -> str:
        try:
            text = self.data().decode()
        except UnicodeDecodeError:
            raise UnreadableConnect("a text is not UTF-8") from None
        if "\0" in text:
            raise UnreadableConnect("a text contains U+0000")
        return text
