"""The register at a majority of voters."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from atalanta.ha.register import CompareAndSet, decode_register, encode_register
from atalanta.ha.voter import Outcome, Proposer, Result, VoterAnswer, VoterRequest
from atalanta.runtime.ha.managers.manager import Found, ManagerAnswer, ManagerUnavailable
from atalanta.runtime.ha.managers.voter_codec import (
    VoterBytesDamaged,
    VoterRefused,
    decode_answer,
    encode_request,
)
from atalanta.runtime.ha.managers.voter_connection import (
    VoterConnection,
    VoterConnectionError,
    connect_voter,
    password_key,
)

# A request without an answer is sent again: connections may be new.
REPEAT_SECONDS: Final = 0.2
CONNECT_SECONDS: Final = 2.0
# A connection that leaves a request unanswered for so long is replaced.
SILENT_SECONDS: Final = 2.0
BACKOFF_SECONDS: Final = 0.01
BACKOFF_SECONDS_MAX: Final = 0.5
NOT_YET: Final = "no connection yet"
CONNECTED: Final = "connected, no answer yet"


class QuorumManager:
    """The manager `quorum`. `voters` are (host, port), an odd number of them; the same list in every process.

    `life` is different for each process (8 random bytes). One operation at a time; others wait. The constructor takes
    tens of milliseconds, because guessing passwords must be slow.
    """

    def __init__(
        self,
        voters: Sequence[tuple[str, int]],
        name: str,
        password: str,
        life: bytes,
        timeout_s: float = 5.0,
    ) -> None:
        if len(set(voters)) != len(voters) or not voters:
            raise ValueError(f"a quorum needs voters, each once: {list(voters)}")
        self.name = name
        self.timeout_s = timeout_s
        self._proposer = Proposer(len(voters), life)
        # Which voter of the list has which id: two names of one voter must not count as two.
        owners: dict[bytes, str] = {}
        key = password_key(password)
        self._links = [
            VoterLink(host, port, key, owners, self._on_answer) for host, port in voters
        ]
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()

    async def read(self) -> Found | None:
        """Implements Manager.read."""
        async with self._lock:
            result = await self._result(self._proposer.read())
        if result is None:
            raise ManagerUnavailable(self._why())
        return Found(result.version, decode_register(result.data)) if result.version else None

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        """Implements Manager.compare_and_set."""
        async with self._lock:
            data = encode_register(request.value)
            result = await self._result(self._proposer.compare_and_set(request.version, data))
        if result is None:
            return ManagerAnswer(Outcome.UNKNOWN, why=self._why())
        if result.outcome is Outcome.UNKNOWN:
            why = f"version {result.version} of the register came meanwhile"
            return ManagerAnswer(Outcome.UNKNOWN, why=why)
        return ManagerAnswer(result.outcome, result.version if result.outcome is Outcome.DONE else 0)

    async def close(self) -> None:
        """Implements Manager.close."""
        await asyncio.gather(*[link.close() for link in self._links])

    async def _result(self, request: VoterRequest) -> Result | None:
        """Returns the result of the operation that begins with `request`, None after the time-out."""
        backoff = BACKOFF_SECONDS
        self._broadcast(request)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.timeout_s):
                while self._proposer.result is None:
                    self._news.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REPEAT_SECONDS):
                            await self._news.wait()
                    if self._proposer.outbid:
                        # Two proposers that outbid each other come apart by chance.
                        await asyncio.sleep(random.uniform(0, backoff))
                        backoff = min(2 * backoff, BACKOFF_SECONDS_MAX)
                        if self._proposer.outbid and self._proposer.result is None:
                            self._broadcast(self._proposer.again())
                    elif not self._news.is_set() and self._proposer.request is not None:
                        self._broadcast(self._proposer.request)
        self._proposer.give_up()
        return self._proposer.result

    def _broadcast(self, request: VoterRequest) -> None:
        payload = encode_request(self.name, request)
        for link in self._links:
            link.send(payload)

    def _on_answer(self, voter: str, answer: VoterAnswer) -> None:
        following = self._proposer.on_answer(voter, answer)
        if following is not None:
            self._broadcast(following)
        if self._proposer.result is not None or self._proposer.outbid:
            self._news.set()

    def silent(self) -> dict[str, str]:
        """Returns why a voter does not answer, by its host:port; the others may be a majority all the same."""
        return {link.name: link.why for link in self._links if link.why not in ("", NOT_YET, CONNECTED)}

    def _why(self) -> str:
        reasons = [f"{link.name}: {link.why}" for link in self._links if link.why]
        return "no majority of the voters answers" + "".join(f"; {each}" for each in reasons)


class VoterLink:
    """The connection to one voter. Requests and answers may get lost; it connects again with the next request."""

    def __init__(
        self,
        host: str,
        port: int,
        key: bytes,
        owners: dict[bytes, str],
        on_answer: Callable[[str, VoterAnswer], None],
    ) -> None:
        self.name = f"{host}:{port}"
        self.why = NOT_YET  # the last failure, "" while it answers
        self._host = host
        self._port = port
        self._key = key
        self._owners = owners
        self._on_answer = on_answer
        self._payload = b""
        self._connection: VoterConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._unanswered_since = 0.0  # 0: every request has its answer

    def send(self, payload: bytes) -> None:
        """Sends a request, if need be after connecting."""
        loop = asyncio.get_running_loop()
        self._payload = payload
        if self._connection is not None and self._unanswered_since:
            if loop.time() - self._unanswered_since > SILENT_SECONDS:
                self._end(f"no answer for {SILENT_SECONDS:g} s")
        if self._connection is None:
            if self._task is None or self._task.done():
                self._task = loop.create_task(self._run())
            return
        self._unanswered_since = self._unanswered_since or loop.time()
        self._connection.send(payload)

    async def close(self) -> None:
        """Closes the connection."""
        self._end(self.why)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """Connects, then handles answers until the connection ends."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await connect_voter(self._host, self._port, self._key)
        except (VoterConnectionError, EOFError, OSError, TimeoutError) as error:
            self.why = str(error) or "no answer to the connection"
            return
        owner = self._owners.setdefault(connection.voter_id, self.name)
        if owner != self.name:
            connection.writer.close()
            self.why = f"it is the same voter as {owner}, or has a copy of its folder"
            return
        self.why = CONNECTED
        self._connection = connection
        self._unanswered_since = asyncio.get_running_loop().time()
        connection.send(self._payload)
        try:
            while True:
                answer = decode_answer(await connection.receive())
                self.why = ""
                self._unanswered_since = 0.0
                self._on_answer(self.name, answer)
        except (EOFError, OSError) as error:
            if self._connection is connection:  # else it was closed on purpose
                self.why = f"the connection ended: {error}"
        except (VoterBytesDamaged, VoterRefused) as error:
            self.why = str(error)
        finally:
            connection.writer.close()
            if self._connection is connection:
                self._connection = None

    def _end(self, why: str) -> None:
        """Closes the connection; the task that reads it ends."""
        self.why = why
        if self._connection is not None:
            self._connection.writer.close()
            self._connection = None
