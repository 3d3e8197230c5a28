"""The limit of messages a second of one producer or consumer (producerMaxRate, consumerMaxRate)."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from atalanta.client.shells.awaitables import Acknowledgement
from atalanta.wire.core.client.reply import Reply

if TYPE_CHECKING:
    from atalanta.client.shells.shell import ClientShell


class MessageRate:
    """The pace of messages: the next one is allowed 1/rate seconds after the last (Artemis' TokenBucketLimiter)."""

    def __init__(self, rate: int) -> None:
        self._interval_s = 1 / rate
        self._next_s = 0.0

    def spend(self) -> None:
        """Records a message now."""
        self._next_s = max(time.monotonic(), self._next_s) + self._interval_s

    async def wait(self, shell: ClientShell) -> None:
        """Waits until the next message is allowed; the connection is kept alive meanwhile."""
        while (left_s := self._next_s - time.monotonic()) > 0 and not shell.closed:
            await shell.wait(Reply(), left_s)


class Paced(Acknowledgement):
    """The wait for the pace, then for `room`."""

    __slots__ = ("_pace", "_room", "_shell")

    def __init__(self, shell: ClientShell, pace: MessageRate, room: Acknowledgement) -> None:
        self._shell = shell
        self._pace = pace
        self._room = room

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await self._pace.wait(self._shell)
        await self._room


def pace_of(rate: int) -> MessageRate | None:
    """Returns the pace of a rate; None for -1, no limit."""
    return MessageRate(rate) if rate > 0 else None
