"""A STOMP client for loads that few frames make: it reads nothing that is not awaited."""

from __future__ import annotations

import socket
from itertools import count

from bench.measure import BadRun

ANSWER_SECONDS = 120.0


class StompClient:
    """A connection that has logged in. `client_id` is for durable subscriptions."""

    def __init__(self, port: int, user: str, password: str, client_id: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._receipts = count(1)
        headers = {"accept-version": "1.2", "login": user, "passcode": password}
        if client_id:
            headers["client-id"] = client_id
        self.send(frame("CONNECT", headers))
        self.await_frames(1, "CONNECTED")

    def send(self, frames: bytes) -> None:
        """Sends frames that are encoded."""
        self.socket.sendall(frames)

    def receipt(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        """Sends a frame and awaits its RECEIPT."""
        name = f"r{next(self._receipts)}"
        self.send(frame(command, {**headers, "receipt": name}, body))
        tail = b""
        while f"receipt-id:{name}\n".encode() not in tail:
            tail = tail[-100:] + self._read(command)

    def await_frames(self, count: int, what: str) -> None:
        """Reads until so many frames have come, whose bodies have no zero byte."""
        while count > 0:
            count -= self._read(what).count(b"\0")

    def _read(self, what: str) -> bytes:
        data = self.socket.recv(1 << 20)
        if not data or data.startswith(b"ERROR\n"):
            raise BadRun(f"{what}: {data[:500]!r}")
        return data

    def close(self) -> None:
        """Ends the connection without a farewell."""
        self.socket.close()


def frame(command: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """The bytes of a frame; the headers need no escapes."""
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"{command}\n{lines}\n".encode() + body + b"\0"
