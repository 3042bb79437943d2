"""Reading the first packet of a connection."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from events.connect_packet import (
    NOT_THIS_PROTOCOL,
    NOT_THIS_PROTOCOL_IN_5,
    Connect,
    UnreadableConnect,
    read_connect,
    without_keepalive,
)
from tests.events.connect_bytes import connect_body

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
bodies = st.builds(
    connect_body,
    texts,
    st.none() | texts,
    st.none() | st.binary(max_size=20),
    will=st.none() | st.tuples(texts, st.binary(max_size=20)),
    keepalive_s=st.integers(0, 65535),
    clean=st.booleans(),
)


@given(
    client_id=texts,
    username=st.none() | texts,
    password=st.none() | st.binary(max_size=20),
    will=st.none() | st.tuples(texts, st.binary(max_size=20)),
    keepalive_s=st.integers(0, 65535),
)
def test_what_a_client_says_is_read(
    client_id: str,
    username: str | None,
    password: bytes | None,
    will: tuple[str, bytes] | None,
    keepalive_s: int,
) -> None:
    body = connect_body(client_id, username, password, will=will, keepalive_s=keepalive_s)
    said = Connect(client_id, username, password, will[0] if will else None, keepalive_s)
    assert read_connect(body) == said
    assert read_connect(without_keepalive(body)) == Connect(
        client_id, username, password, said.will_topic, keepalive_s=0
    )


@given(body=bodies, cut=st.integers(1, 200))
def test_a_packet_cut_short_or_with_more_behind_it_is_refused(body: bytes, cut: int) -> None:
    with pytest.raises(UnreadableConnect):
        read_connect(body[:-cut])
    with pytest.raises(UnreadableConnect):
        read_connect(body + bytes(cut))


@given(body=st.binary(max_size=60) | bodies, at=st.integers(0, 60), byte=st.integers(0, 255))
@example(body=connect_body("a", "b\0"), at=0, byte=0)
def test_no_bytes_do_more_than_be_refused(body: bytes, at: int, byte: int) -> None:
    changed = bytearray(body)
    if at < len(changed):
        changed[at] = byte
    try:
        read = read_connect(bytes(changed))
    except UnreadableConnect:
        return
    assert "\0" not in read.client_id + (read.username or "") + (read.will_topic or "")


def test_another_version_is_told_in_its_own_words() -> None:
    with pytest.raises(UnreadableConnect) as five:
        read_connect(connect_body("a", level=5))
    assert five.value.answer == NOT_THIS_PROTOCOL_IN_5
    with pytest.raises(UnreadableConnect) as older:
        read_connect(b"\x00\x06MQIsdp\x03\x02\x00\x00\x00\x01a")
    assert older.value.answer == NOT_THIS_PROTOCOL
