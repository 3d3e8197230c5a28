"""The error for a queue that does not exist, with the names that its user may have meant."""

from __future__ import annotations

import asyncio
import difflib
from typing import Final

from atalanta.cli.output.outcome import NOT_THERE, Refused
from atalanta.client import ClientError, Connection

ANSWER_S: Final = 5.0  # names are a help only: a broker that does not answer is not waited for
NAMES_MAX: Final = 3


async def unknown_queue(connection: Connection, name: str, remedy: str = "") -> Refused:
    """Returns the error (66). Similar names are known if the user may use management."""
    address, _, queue = name.rpartition("::")
    known: dict[str, str] = {}
    try:
        async with asyncio.timeout(ANSWER_S):
            for row in await connection.management().rows("listQueues"):
                found = str(row.get("name"))
                known[found] = found if row.get("address") == found else f"{row.get('address')}::{found}"
    except (ClientError, TimeoutError):
        pass
    near = [full for full in known.values() if full.startswith(f"{address or queue}::")]
    near = near or [known[one] for one in difflib.get_close_matches(queue, known, NAMES_MAX, 0.7)]
    names = ", ".join(near[:NAMES_MAX])
    meant = f"; did you mean {names}?" if names else ""
    return Refused(f"queue {name} does not exist{meant}{remedy}", NOT_THERE)
