"""A backup's watch on the guard of the active node: it reports the proven end of the process of an epoch."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

from atalanta.runtime.ha.guard.frames import (
    ANSWER_SIZE,
    ENDED,
    HELLO_SIZE,
    NONCE_SIZE,
    WATCHED,
    GuardBytesDamaged,
    decode_answer,
    decode_hello,
    encode_watch,
)
from atalanta.runtime.ha.guard.watchers import keep_alive
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.guard")

HANDSHAKE_S: Final = 5.0
RETRY_FIRST_S: Final = 0.1
RETRY_MAX_S: Final = 5.0


class GuardWatch:
    """Watches one guard at a time. `ended` is called with the epoch, once, when its guard has proven the end.

    Everything else proves nothing: a broken connection, a guard that cannot be reached, a wrong proof. Then the watch
    connects again, after at most RETRY_MAX_S, until it is closed or gets another guard.
    """

    def __init__(self, ended: Callable[[int], None]) -> None:
        self.epoch = 0  # of the guard that is watched now, 0 for none
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._told = False  # whether the log says that the guard is lost

    def connect(self, host: str, port: int, secret: bytes, epoch: int) -> asyncio.Future[bool]:
        """Watches this guard instead of an earlier one. The future tells whether it has answered; if not, attempts go
        on."""
        self.close()
        self._told = False
        first: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._watch(host, port, secret, epoch, first))
        return first

    def close(self) -> None:
        """Watches no more. `ended` is not called after this."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.epoch = 0

    async def _watch(self, host: str, port: int, secret: bytes, epoch: int, first: asyncio.Future[bool]) -> None:
        pause_s = RETRY_FIRST_S
        try:
            while True:
                try:
                    await self._connection(host, port, secret, epoch, first)
                    return
                except (OSError, EOFError, GuardBytesDamaged) as error:
                    why = reason(error, watched=self.epoch != 0)
                    if self.epoch:
                        pause_s = RETRY_FIRST_S
                    self.epoch = 0
                    self._tell_lost(f"{host}:{port}", epoch, why)
                if not first.done():
                    first.set_result(False)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)
        finally:
            if not first.done():
                first.set_result(False)

    async def _connection(
        self, host: str, port: int, secret: bytes, epoch: int, first: asyncio.Future[bool]
    ) -> None:
        """Watches by one connection. Returns after the proof. OSError, EOFError, GuardBytesDamaged."""
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                reader, writer = await asyncio.open_connection(host, port)
                keep_alive(writer.get_extra_info("socket"))
                guard_nonce = decode_hello(await reader.readexactly(HELLO_SIZE))
                nonce = os.urandom(NONCE_SIZE)
                writer.write(encode_watch(secret, epoch, guard_nonce, nonce))
                answer = await reader.readexactly(ANSWER_SIZE)
            kind = decode_answer(answer, secret, epoch, guard_nonce, nonce)
            if kind == WATCHED:
                self.epoch = epoch
                self._told = False
                log_event(log, "guard_watched", {"at": f"{host}:{port}", "epoch": epoch})
                if not first.done():
                    first.set_result(True)
                answer = await reader.readexactly(ANSWER_SIZE)
                kind = decode_answer(answer, secret, epoch, guard_nonce, nonce)
            if kind != ENDED:
                raise GuardBytesDamaged("it answered twice that it is watched")
            self.epoch = 0
            log_event(log, "guard_proved_end", {"at": f"{host}:{port}", "epoch": epoch})
            self._ended(epoch)
        finally:
            if writer is not None:
                writer.close()

    def _tell_lost(self, at: str, epoch: int, why: str) -> None:
        """Logs once that there is no proof to be had now."""
        if not self._told:
            self._told = True
            log_event(log, "guard_lost", {"at": at, "epoch": epoch, "why": why})


def reason(error: Exception, watched: bool) -> str:
    """Returns why a guard is lost, for the log."""
    if isinstance(error, EOFError):
        if watched:
            return "it closed the connection"
        return "it refused the connection: its broker is in another epoch, or the cluster passwords differ"
    return str(error) or f"no answer in {HANDSHAKE_S:g} s"
