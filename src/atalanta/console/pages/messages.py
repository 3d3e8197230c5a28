"""One message: its headers, properties and body, and its body as a download."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import BinaryIO, Final

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, one, operator_of
from atalanta.console.nodes import messages
from atalanta.console.nodes.actions import MESSAGE_ACTIONS, operation_names
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.view.body_text import FORMS, body_text
from atalanta.message.encoding.digits import all_digits

PIECE_BYTES: Final = 256 * 1024
DIGITS_MAX: Final = 19
UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")

log = logging.getLogger("atalanta.console")


class MessagePages:
    """The page of a message."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/message", self.message), web.get("/message/body", self.body)]

    async def message(self, request: web.Request) -> web.StreamResponse:
        """Shows a message that is in its queue now."""
        operator = operator_of(request)
        node, queue, row = await self._found(request)
        body = await messages.read_body(node, queue, row)
        wanted = request.query.get("as", "")
        shown = None if body.raw is None else body_text(body.raw, body.text, wanted if wanted in FORMS else "")
        permitted = await operator.permissions.allowed(node, f"queue.{queue}", operation_names(MESSAGE_ACTIONS))
        drawn = [] if self.desk.options.read_only else MESSAGE_ACTIONS
        return self.desk.page(
            request,
            "message.html",
            queue=queue,
            node=node,
            message=row,
            body=body,
            shown=shown,
            forms=FORMS,
            actions=[action for action in drawn if action.operation in permitted],
        )

    async def body(self, request: web.Request) -> web.StreamResponse:
        """Sends the body as a file: bytes for the disk, never something that a browser shows."""
        node, queue, row = await self._found(request)
        self.desk.connections.hold(request.protocol)  # the node may take minutes for gigabytes
        file = await messages.download(node, queue, row)
        try:
            return await self._sent(request, file, f"{UNSAFE.sub('_', queue)[:80]}-{row.id}.bin")
        finally:
            file.close()

    async def _sent(self, request: web.Request, file: BinaryIO, name: str) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Security-Policy": "sandbox; default-src 'none'",
            }
        )
        self.desk.secure(request, response)
        await response.prepare(request)
        try:
            while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
                self.desk.connections.renew(request.protocol)  # a client that takes nothing is cut off
                await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            log.debug("console_download_left remote=%s", request.remote)
        return response

    async def _found(self, request: web.Request) -> tuple[ClusterNode, str, messages.MessageRow]:
        """Returns the message of a URL: its node, queue and row. NotFound."""
        query = request.query
        node = await operator_of(request).cluster.node(one(query, "node"))
        queue, text, at = one(query, "queue"), query.get("id", ""), query.get("at", "")
        if not all_digits(text, DIGITS_MAX):
            raise NotFound("the link has no id of a message")
        timestamp_ms = int(at) if all_digits(at, DIGITS_MAX) else 0
        return node, queue, await messages.find(node, queue, int(text), timestamp_ms)
