"""The client's half of REATTACH_SESSION, between the engine and the network.

The engine does not see a lost connection whose session continues. The Python client does not reattach; clients of
Artemis do, with a confirmation window.
"""

from __future__ import annotations

from collections import deque

from librt.strings import BytesWriter

from atalanta.wire.core import HANDSHAKE, NOT_COUNTED, Frame, Framer, write_frame_header
from atalanta.wire.core.packets import PacketsConfirmed, decode_frame


class ReattachWait:
    """The state of one session. While `waiting`, nothing is written: the node has not yet told what it received."""

    def __init__(self, name: str, channel: int) -> None:
        self.name = name
        self.channel = channel
        self.waiting = False
        self.since = 0  # when the connection was lost
        self.last: int = -1  # number of the newest frame from the node
        self.first: int = 0  # number of the oldest frame kept
        self.kept: deque[bytes] = deque()

    def wait(self, now: int) -> None:
        """Records that the connection is lost."""
        if not self.waiting:
            self.waiting = True
            self.since = now

    def sent(self, data: bytes) -> None:
        """Keeps the session's frames among the bytes that the engine writes."""
        for frame in Framer(data.startswith(HANDSHAKE)).feed(data):
            if self._counts(frame):
                self.kept.append(whole(frame))

    def received(self, frame: Frame) -> None:
        """Counts a frame from the node."""
        if self._counts(frame):
            self.last += 1
        elif frame.channel == self.channel:
            packet = decode_frame(frame)
            if isinstance(packet, PacketsConfirmed):
                self.confirmed(packet.command_id)

    def _counts(self, frame: Frame) -> bool:
        return frame.channel == self.channel and frame.type not in NOT_COUNTED

    def confirmed(self, number: int) -> None:
        """Drops the frames that the node has received, up to this number."""
        while self.kept and self.first <= number:
            self.kept.popleft()
            self.first += 1


def whole(frame: Frame) -> bytes:
    """Returns the frame's bytes with its header."""
    out = BytesWriter()
    write_frame_header(out, frame.type, frame.channel, frame.end - frame.start)
    out.write(frame.payload)
    return out.getvalue()
