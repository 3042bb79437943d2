"""What is simulated has no business in a network: its sockets listen on loopback only."""

import socket

from config.settings import is_loopback
from hub import http_server


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on a loopback address; port 0 takes a free one.

    Raises:
        ValueError: the address is not loopback.
        OSError: the port is taken.
    """
    if not is_loopback(host):
        raise ValueError(f"{host} is not a loopback address")
    return http_server.listen(host, port)
