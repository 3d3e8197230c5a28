"""The errors for a queue or topic that does not exist, with the names that its user may have meant."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterable
from typing import Final

from atalanta.cli.output.outcome import NOT_THERE, Refused
from atalanta.client import ClientError, Connection

ANSWER_S: Final = 5.0  # names are a help only: a broker that does not answer is not waited for
NAMES_MAX: Final = 3
CREATION: Final = "; --create creates it"


async def unknown_queue(connection: Connection, name: str, remedy: str = "") -> Refused:
    """Returns the error (66). Similar names are known if the user may use management."""
    address, _, queue = name.rpartition("::")
    known: dict[str, str] = {}
    for row in await _rows(connection, "listQueues"):
        found = str(row.get("name"))
        known[found] = found if row.get("address") == found else f"{row.get('address')}::{found}"
    near = [full for full in known.values() if full.startswith(f"{address or queue}::")]
    return _missing("queue", name, near or [known[one] for one in _similar(queue, known)], remedy)


async def unknown_topic(connection: Connection, name: str) -> Refused:
    """Returns the error (66) for an address that does not exist."""
    known = [str(row.get("name")) for row in await _rows(connection, "listAddresses")]
    return _missing("topic", name, _similar(name, known), CREATION)


async def _rows(connection: Connection, operation: str) -> list[dict[str, object]]:
    try:
        async with asyncio.timeout(ANSWER_S):
            return await connection.management().rows(operation)
    except (ClientError, TimeoutError):
        return []


def _similar(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, list(known), NAMES_MAX, 0.7)


def _missing(kind: str, name: str, near: list[str], remedy: str) -> Refused:
    names = ", ".join(near[:NAMES_MAX])
    meant = f"; did you mean {names}?" if names else ""
    return Refused(f"{kind} {name} does not exist{meant}{remedy}", NOT_THERE)
