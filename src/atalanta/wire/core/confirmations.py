"""PACKETS_CONFIRMED: the confirmation of processed frames to their sender, by channel (ChannelImpl)."""

from __future__ import annotations

from typing import Final

PACKETS_CONFIRMED: Final = 22


class Confirmations:
    """Counts frames that want confirmation from 0; a confirmation is due after each window of bytes."""

    def __init__(self, window_bytes: int) -> None:
        self.window_bytes = window_bytes
        self.last_command: int = -1
        self.confirmed: int = -1
        self.unconfirmed_bytes: int = 0

    def received(self, packet_type: int, frame_bytes: int, wants: bool) -> bool:
        """Returns True if a confirmation is due now."""
        if self.window_bytes == -1 or packet_type == PACKETS_CONFIRMED or not wants:
            return False
        self.last_command += 1
        self.unconfirmed_bytes += frame_bytes
        return self.unconfirmed_bytes >= self.window_bytes

    def pending(self) -> bool:
        return self.last_command > self.confirmed

    def take(self) -> int:
        """Returns the command id to confirm; all frames up to it count as confirmed."""
        self.confirmed = self.last_command
        self.unconfirmed_bytes = 0
        return self.last_command
