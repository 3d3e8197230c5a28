"""The server of a voter: it listens, lets proposers log in, and answers their requests."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from atalanta.ha.voter import Voter
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha.managers.voter_codec import (
    VoterBytesDamaged,
    VoterRefused,
    decode_request,
    encode_answer,
    encode_refusal,
)
from atalanta.runtime.ha.managers.voter_connection import (
    VoterConnection,
    VoterConnectionError,
    accept_proposer,
    password_key,
)
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from atalanta.runtime.process.logs import log_event

HANDSHAKE_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 120.0
CONNECTIONS_MAX: Final = 200
ANSWERS_SIZE_MAX: Final = 256 * 1024

log = logging.getLogger("atalanta.voter")


class VoterServer:
    """A voter that listens. `failed` is done, with the error, when its folder cannot be written.

    Then it answers nothing more: its memory is ahead of its disk.
    """

    def __init__(self, folder: VoterFolder, password: str) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._folder = folder
        self._key = password_key(password)
        self._connections: set[asyncio.Task[None]] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._refused: set[str] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Begins to listen. Returns the port. OSError."""
        self._server = await asyncio.start_server(self._accepted, host, port, limit=64 * 1024)
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Stops listening and closes the connections."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= CONNECTIONS_MAX:
            writer.close()
            return
        # A task of our own: asyncio's streams log the cancellation of theirs as an error.
        task = asyncio.get_running_loop().create_task(self._handle(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles a connection until its end."""
        host = str((writer.get_extra_info("peername") or ("?",))[0])
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                connection = await accept_proposer(reader, writer, self._key, self._folder.voter_id)
            self._refused.discard(host)
            await self._serve(connection)
        except (VoterConnectionError, VoterBytesDamaged) as error:
            if host not in self._refused and len(self._refused) < CONNECTIONS_MAX:
                self._refused.add(host)
                log_event(log, "voter_connection_refused", {"remote": host, "why": str(error)})
        except (EOFError, OSError, TimeoutError):
            pass
        finally:
            writer.close()

    async def _serve(self, connection: VoterConnection) -> None:
        """Answers one request after the other."""
        while True:
            async with asyncio.timeout(IDLE_SECONDS):
                name, request = decode_request(await connection.receive())
            try:
                voter = self._folder.voter(name)
            except VoterRefused as error:
                connection.send(encode_refusal(str(error)))
                continue
            async with self._locks.setdefault(name, asyncio.Lock()):
                if self.failed.done():
                    return
                answer, store = voter.on_request(request)
                if store and not await self._stored(name, voter):
                    return
            if connection.writer.transport.get_write_buffer_size() > ANSWERS_SIZE_MAX:
                raise TimeoutError("the proposer reads no answers")
            connection.send(encode_answer(answer))

    async def _stored(self, name: str, voter: Voter) -> bool:
        """Stores the state. Returns False if that fails; the voter ends then."""
        storing = asyncio.ensure_future(asyncio.to_thread(self._folder.store, name, voter.state))
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:  # a closing server waits for its disk
            await asyncio.wait([storing])
            raise
        except (OSError, DataFolderError) as error:
            if not self.failed.done():
                self.failed.set_exception(error)
            return False
        return True
