"""One node for one user: a CORE connection, and management messages over it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from atalanta.client import (
    ClientError,
    Connection,
    FirstElement,
    Management,
    ManagementFailed,
    NotAuthorized,
    connect,
)
from atalanta.client.management import BROKER, page_of
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.nodes.failures import NodeUnreachable, error_text
from atalanta.console.nodes.place import NodePlace

CONNECT_S: Final = 6.0
READ_S: Final = 15.0
RETRY_S: Final = 3.0  # so long a node that did not answer is not tried again
CONVERSATIONS_MAX: Final = 4  # questions to one node at a time
LONG_CALL_MS: Final = 600_000
OPERATOR_ADDRESS: Final = "_ATALANTA_OPERATOR_ADDRESS"  # management/operations/changing_calls.py; Artemis ignores it

Row = dict[str, object]


class ClusterNode:
    """A node with its connection, which is opened by the first question and again after a loss.

    `ours` is None until the node was asked: True for an Atalanta node, False for another CORE broker.
    """

    def __init__(self, place: NodePlace, credentials: UserCredentials) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self.version = ""
        self.ours = False
        self.problem = ""  # why it does not answer, "" while it does
        self._credentials = credentials
        self._connection: Connection | None = None
        self._closed = False
        self._opening = asyncio.Lock()
        self._room = asyncio.Semaphore(CONVERSATIONS_MAX)
        self._free: list[Management] = []
        self._failed_s = -RETRY_S
        self._cleanups: set[asyncio.Task[None]] = set()

    @property
    def label(self) -> str:
        """Returns the node's name for people: its own, else its place."""
        return self.name or self.place.at

    @property
    def is_lost(self) -> bool:
        """Returns whether it does not answer, or its connection has ended since the last question."""
        return bool(self.problem) or (self._connection is not None and not self._connection.connected)

    async def call(self, resource: str, operation: str, *parameters: object) -> object:
        """Executes a quick operation. Raises ManagementFailed, NotAuthorized, or NodeUnreachable."""
        async with self._conversation() as management:
            return await management.call(resource, operation, *parameters)

    async def get(self, resource: str, attribute: str) -> object:
        """Returns an attribute; errors as in `call`."""
        async with self._conversation() as management:
            return await management.get(resource, attribute)

    async def page(
        self,
        operation: str,
        page: int,
        size: int,
        condition: tuple[str, str, str] = ("", "", ""),
        fields: tuple[str, ...] = (),
    ) -> tuple[list[Row], int]:
        """Returns one page of a list of the node in its own order, and the number of rows on all pages.

        `condition` is a field, a comparison such as EQUALS, and a value. An Artemis node sorts, and tells all fields.
        """
        field, comparison, value = condition
        options: dict[str, object] = {"field": field, "operation": comparison, "value": value, "sortOrder": "none"}
        if fields:
            options["fields"] = fields
        asked = json.dumps(options)
        return page_of(await self.call(BROKER, operation, asked, page, size), operation)

    @asynccontextmanager
    async def long_conversation(self) -> AsyncIterator[Management]:
        """Yields a conversation on a connection of its own, whose calls may take minutes."""
        connection = await self._opened(self.place.with_option("callTimeout", str(LONG_CALL_MS)))
        try:
            yield self._management(connection)
        finally:
            await connection.close()

    @asynccontextmanager
    async def own_connection(self, option: str, value: str) -> AsyncIterator[Connection]:
        """Yields a connection of its own with one more option, for the bodies of messages."""
        connection = await self._opened(self.place.with_option(option, value))
        try:
            yield connection
        finally:
            await connection.close()

    async def connection(self) -> Connection:
        """Returns the open connection. Raises NodeUnreachable, or NotAuthorized for the user's name and password."""
        async with self._opening:
            known = self._connection
            if known is not None and known.connected:
                return known
            if known is not None:
                self._drop(known)
            if self._closed:  # a page that outlives its session
                raise NodeUnreachable(self.place.at, "the session has ended")
            if self.problem and time.monotonic() - self._failed_s < RETRY_S:
                raise NodeUnreachable(self.place.at, self.problem)
            try:
                connection = await self._opened(self.place.url)
                await self._recognise(connection)
            except NodeUnreachable as error:
                self.problem, self._failed_s = error.why, time.monotonic()
                raise
            self._connection, self.problem = connection, ""
            return connection

    async def close(self) -> None:
        """Closes the connection for good."""
        self._closed = True
        connection, self._connection = self._connection, None
        self._free.clear()
        if connection is not None:
            await _closed(connection)
        for task in list(self._cleanups):
            task.cancel()

    # -- connection -----------------------------------------------------------------------------
    async def _opened(self, url: str) -> Connection:
        user, password = self._credentials.user, self._credentials.password
        try:
            # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the answer.
            async with asyncio.timeout(CONNECT_S):
                return await connect(url, user=user, password=password, balancing=FirstElement())
        except NotAuthorized:
            raise
        except (ClientError, OSError) as error:
            raise NodeUnreachable(self.place.at, error_text(error)) from error

    async def _recognise(self, connection: Connection) -> None:
        """Asks the node who it is. A user who may not use management at all gets NotAuthorized here."""
        management = self._management(connection)
        try:
            async with asyncio.timeout(CONNECT_S):
                self.id = str(await management.get(BROKER, "NodeID"))
                self.name = str(await management.get(BROKER, "Name") or "")
                self.version = str(await management.get(BROKER, "Version") or "")
                self.ours = await _is_ours(management)
        except (NotAuthorized, ManagementFailed):
            await _closed(connection)
            raise
        except (ClientError, OSError) as error:
            await _closed(connection)
            raise NodeUnreachable(self.place.at, error_text(error)) from error
        except BaseException:
            await _closed(connection)
            raise
        self._free.append(management)

    @asynccontextmanager
    async def _conversation(self) -> AsyncIterator[Management]:
        """Yields a conversation of its own: each has one question at a time."""
        async with self._room:
            connection = await self.connection()
            management = self._free.pop() if self._free else self._management(connection)
            try:
                async with asyncio.timeout(READ_S):
                    yield management
            except (ManagementFailed, NotAuthorized):
                self._keep(connection, management)
                raise
            except (ClientError, OSError) as error:
                self._discard(connection, management)
                raise NodeUnreachable(self.place.at, error_text(error)) from error
            except BaseException:
                self._discard(connection, management)
                raise
            self._keep(connection, management)

    def _management(self, connection: Connection) -> Management:
        """Returns a new conversation, whose requests have the address of the operator's browser."""
        management = connection.management()
        if self._credentials.peer:
            management.properties[OPERATOR_ADDRESS] = self._credentials.peer
        return management

    def _keep(self, connection: Connection, management: Management) -> None:
        if connection is self._connection and len(self._free) < CONVERSATIONS_MAX:
            self._free.append(management)

    def _discard(self, connection: Connection, management: Management) -> None:
        """Ends a conversation that has a question without an answer."""

        async def end() -> None:
            with suppress(ClientError, OSError):
                await management.close()

        if connection.connected:
            self._background(end())

    def _drop(self, connection: Connection) -> None:
        self._connection = None
        self._free.clear()
        self._background(_closed(connection))

    def _background(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._cleanups.add(task)
        task.add_done_callback(self._cleanups.discard)


async def _closed(connection: Connection) -> None:
    with suppress(ClientError, OSError):
        await connection.close()


async def _is_ours(management: Management) -> bool:
    """Returns whether this is an Atalanta node: an Artemis node does not know this attribute."""
    try:
        await management.get(BROKER, "DefaultClusterPassword")
    except ManagementFailed:
        return False
    return True
