"""A load generator for STOMP brokers that costs little: frames are prepared once and sent in bursts, and what comes is
counted by the zero bytes behind the frames.

`StompGenerator` (bench/generators.py) starts it with a port and the values of `Options` as `name=value`. After
{"ready": 1} the line `count` answers what went through since the start; the end of its input ends it when all has come.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
import time
from dataclasses import dataclass, fields

from bench.stomp_client import StompClient, frame

USER = "admin"
PASSWORD = "admin"
STANDARD_INPUT = 0
READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Options:
    """`pairs`: of a sender and a consumer, each with a queue of its own. `bytes`: of a body. `burst`: messages that are
    sent at once. `window`: messages of a pair that have not arrived, or are not confirmed. `durable`: with receipts.
    """

    pairs: int = 1
    bytes: int = 100
    burst: int = 500
    window: int = 20_000
    durable: int = 0


def options_of(words: list[str]) -> Options:
    """Returns the options in `name=value` words; ValueError for others."""
    values = dict(word.split("=", 1) for word in words)
    unknown = values.keys() - {field.name for field in fields(Options)}
    if unknown:
        raise ValueError(f"no option {sorted(unknown)[0]}")
    return Options(**{name: int(value) for name, value in values.items()})


class Pair:
    """A sender and a consumer of one queue. `unsent`: what the sender's socket has not taken of the last burst."""

    def __init__(self, port: int, number: int, options: Options) -> None:
        self._options = options
        queue = f"bench.q{number}"
        headers = {"destination": queue}
        if options.durable:
            headers |= {"persistent": "true", "receipt": "r"}
        headers["content-length"] = str(options.bytes)
        self._burst = memoryview(frame("SEND", headers, b"x" * options.bytes) * options.burst)
        self.consumer = StompClient(port, USER, PASSWORD)
        self.consumer.receipt("SUBSCRIBE", {"id": "1", "destination": queue, "ack": "auto"})
        self.sender = StompClient(port, USER, PASSWORD)
        for client in (self.consumer, self.sender):
            client.socket.setblocking(False)
        self.unsent = self._burst[:0]
        self.sent = self.received = self.confirmed = 0

    def send(self) -> None:
        """Sends bursts while the window and the socket have room."""
        options = self._options
        while True:
            if not self.unsent:
                if self.sent + options.burst > self._done() + options.window:
                    return
                self.unsent = self._burst
                self.sent += options.burst
            try:
                self.unsent = self.unsent[self.sender.socket.send(self.unsent) :]
            except BlockingIOError:
                return

    def is_done(self) -> bool:
        """Returns whether all that was sent has arrived and is confirmed."""
        return not self.unsent and self._done() >= self.sent

    def _done(self) -> int:
        return min(self.received, self.confirmed) if self._options.durable else self.received


class StompLoad:
    """All pairs, and the lines of the harness."""

    def __init__(self, port: int, options: Options) -> None:
        self._options = options
        self._pairs = [Pair(port, number, options) for number in range(options.pairs)]
        self._selector = selectors.DefaultSelector()
        self._selector.register(STANDARD_INPUT, selectors.EVENT_READ)
        for pair in self._pairs:
            self._selector.register(pair.consumer.socket, selectors.EVENT_READ, pair)
            self._selector.register(pair.sender.socket, selectors.EVENT_READ, pair)
        self._stopping = False

    def run(self) -> None:
        """Sends until the input has ended and everything has come; OSError if a connection ends."""
        while not (self._stopping and all(pair.is_done() for pair in self._pairs)):
            for pair in self._pairs:
                if pair.unsent or not self._stopping:
                    self._send(pair)
            for key, events in self._selector.select():
                if key.data is None:
                    self._answer()
                elif events & selectors.EVENT_READ:
                    self._read(key.data, key.fd)

    def _send(self, pair: Pair) -> None:
        blocked = bool(pair.unsent)
        pair.send()
        if bool(pair.unsent) != blocked:
            events = selectors.EVENT_READ | selectors.EVENT_WRITE if pair.unsent else selectors.EVENT_READ
            self._selector.modify(pair.sender.socket, events, pair)

    def _read(self, pair: Pair, descriptor: int) -> None:
        data = os.read(descriptor, READ_BYTES)
        if not data or data.lstrip(b"\n").startswith(b"ERROR\n"):
            raise ConnectionError(f"the broker ended a connection: {data[:500]!r}")
        frames = data.count(b"\0")
        if descriptor == pair.consumer.socket.fileno():
            pair.received += frames
        else:
            pair.confirmed += frames

    def _answer(self) -> None:
        data = os.read(STANDARD_INPUT, 1 << 10)
        if not data:
            self._stopping = True
            self._selector.unregister(STANDARD_INPUT)
        for _ in range(data.count(b"\n")):
            received = sum(pair.received for pair in self._pairs)
            sent = sum(pair.sent for pair in self._pairs)
            say(
                sent=sent,
                received=received,
                confirmed=sum(pair.confirmed for pair in self._pairs),
                at_ns=time.monotonic_ns(),
                bad=max(0, received - sent),
            )


def say(**values: object) -> None:
    """Writes a line of JSON."""
    print(json.dumps(values), flush=True)


def main() -> int:
    """The exit status: 1 after an error, which is said."""
    try:
        load = StompLoad(int(sys.argv[1]), options_of(sys.argv[2:]))
        say(ready=1)
        load.run()
    except Exception as error:  # whatever it is, the harness says it
        say(error=f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
