"""`python -m bench.ping_process PORT USER PASSWORD`: a client that pings a broker over CORE, in a process of its own.

For each line that it reads it prints the longest answer since the line before, in milliseconds. An answer that is still
awaited counts when it comes.
"""

from __future__ import annotations

import select
import socket
import sys
import time

from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import CREATESESSION_RESP, PING, PING_CHANNEL
from atalanta.wire.core.packets.codec import encode
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.session import CreateSession

PAUSE_SECONDS = 0.005  # between an answer and the next PING
ANSWER_SECONDS = 120
TTL_MS = 60_000
CORE_VERSION = 136
LOGIN_CHANNEL = 1
SESSION_CHANNEL = 10


class Pinger:
    """A connection that has logged in."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._framer = Framer(False)
        login = CreateSession("pinger", SESSION_CHANNEL, CORE_VERSION, user, password)
        self._socket.sendall(b"ARTEMIS" + encode(login, LOGIN_CHANNEL, 0))
        self._await(CREATESESSION_RESP)

    def ping(self) -> float:
        """Seconds until the answer."""
        begin = time.perf_counter()
        self._socket.sendall(encode(Ping(TTL_MS), PING_CHANNEL, 0))
        self._await(PING)
        return time.perf_counter() - begin

    def _await(self, kind: int) -> None:
        while True:
            data = self._socket.recv(65_536)
            if not data:
                raise SystemExit("the broker closed the connection of the ping process")
            if any(frame.type == kind for frame in self._framer.feed(data)):
                return


def main(port: int, user: str, password: str) -> None:
    pinger = Pinger(port, user, password)
    print("ready", flush=True)
    longest = 0.0
    while True:
        longest = max(longest, pinger.ping())
        readable, _, _ = select.select([sys.stdin], [], [], PAUSE_SECONDS)
        if readable:
            if not sys.stdin.readline():
                return
            print(f"{longest * 1000:.3f}", flush=True)
            longest = 0.0


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
