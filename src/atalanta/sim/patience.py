"""The client's half of REATTACH_SESSION: what it sent and was not confirmed, how far it got what was sent to it."""

from __future__ import annotations

from collections import deque

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import NOT_COUNTED


class Patience:
    """Of one session. While `waiting` nothing is written: the node has not said yet how far it got."""

    def __init__(self, name: str, now: int, confirm_every: int) -> None:
        self.name = name
        self.since = now  # when the connection was lost
        self.confirm_every = confirm_every
        self.waiting = False
        self.last: int = -1  # number of the newest frame from the node
        self.told: int = -1
        self.first: int = 0  # number of the oldest packet kept
        self.kept: deque[Packet] = deque()

    def sends(self, packet: Packet) -> bool:
        """Whether it may be written now."""
        if packet.type not in NOT_COUNTED:
            self.kept.append(packet)
        return not self.waiting

    def got(self, packet: Packet) -> bool:
        """Whether the node should be told now how far its frames came."""
        if packet.type in NOT_COUNTED:
            return False
        self.last += 1
        if self.last - self.told < self.confirm_every:
            return False
        self.told = self.last
        return True

    def confirmed(self, number: int) -> None:
        """The node has everything up to this one."""
        while self.kept and self.first <= number:
            self.kept.popleft()
            self.first += 1
