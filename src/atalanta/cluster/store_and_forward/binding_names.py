"""Names of the binding ids on parked messages, kept over a restart of this node while the member is away.

The ids are the member's. It sends their bindings whenever its link opens. When the link is lost, address and
routing name of the ids on its waiting messages are stored. They are removed when the member is connected again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DONE

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.queue.queue import Queue

PREFIX: Final = "meant."
Meanings = dict[int, tuple[str, str]]  # binding id at the member -> address, routing name


def ids_of(route_to: bytes) -> list[int]:
    """Returns the ids in `_AMQ_ROUTE_TO`, 8 bytes each."""
    return [
        int.from_bytes(route_to[start : start + 8], "big", signed=True)
        for start in range(0, len(route_to) - 7, 8)
    ]


def encode_ids(ids: Iterable[int]) -> bytes:
    """Encodes ids in the format that `ids_of` reads."""
    return b"".join(each.to_bytes(8, "big", signed=True) for each in ids)


def remember(values: NamedValues, queue: Queue, meant: Meanings) -> None:
    """Stores the names in `meant` that the messages in memory need; stores nothing if they need none."""
    needed: dict[bytes, None] = {}
    for reference in queue.references:
        if reference.state != DONE:
            needed[reference.route_to] = None
    kept: dict[str, list[str]] = {}
    for route_to in needed:
        for binding_id in ids_of(route_to):
            known = meant.get(binding_id)
            if known is not None:
                kept[str(binding_id)] = list(known)
    if kept:
        values.set(PREFIX + queue.name, json.dumps(kept).encode(), idle=True)


def recall(values: NamedValues, name: str) -> Meanings:
    """Returns the names that are stored for the queue."""
    known = values.get(PREFIX + name)
    if known is None:
        return {}
    return {int(key): (value[0], value[1]) for key, value in json.loads(known).items()}


def forget(values: NamedValues, name: str) -> None:
    """Removes the names: the member is connected again and sends them anew, or its queue is deleted."""
    values.forget(PREFIX + name, idle=True)
