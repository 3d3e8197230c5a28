"""The rows of a table as a file: the same filter and order, all rows up to a limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from aiohttp import web

from atalanta.console.desk import ConsoleDesk
from atalanta.console.nodes.list_kinds import ListRow
from atalanta.console.nodes.tables import TableQuery, page_of_rows
from atalanta.console.view.table_files import ROWS_MAX, TYPES, file_name, pieces

log = logging.getLogger("atalanta.console")


async def downloaded(
    desk: ConsoleDesk,
    request: web.Request,
    name: str,
    rows: Sequence[ListRow],
    query: TableQuery,
    searched: Sequence[str],
    fields: Sequence[str],
) -> web.StreamResponse | None:
    """Sends the table as the file that the URL asks for (`as=csv`, `as=json`); None if it asks for a page."""
    form = request.query.get("as", "")
    if form not in TYPES:
        return None
    table = page_of_rows(rows, replace(query, page=1, size=ROWS_MAX), searched)
    response = web.StreamResponse(
        headers={
            "Content-Type": f"{TYPES[form]}; charset=utf-8",
            "Content-Disposition": f'attachment; filename="{file_name(name, form, table)}"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
    )
    desk.secure(request, response)
    await response.prepare(request)
    try:
        for text in pieces(form, table, fields):
            desk.connections.renew(request.protocol)  # a client that takes nothing is cut off
            await response.write(text.encode("utf-8", "replace"))
            await asyncio.sleep(0)  # other pages
        await response.write_eof()
    except ConnectionResetError:
        log.debug("console_download_left remote=%s", request.remote)
    return response
