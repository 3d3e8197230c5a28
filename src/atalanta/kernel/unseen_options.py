"""The kinds of options that no client can see: why such an option has no effect, and nobody is told.

An option of a file without effect is of one of these kinds, or tests/config/harmless has a case that compares what
clients see with and without it, or it is a warning with its consequence (docs/internals/recipes.md).
"""

from __future__ import annotations

from typing import Final

THREADS: Final = "this broker has one loop and no worker threads"
JVM: Final = "there is no JVM"
JMX: Final = "there is no JMX"
LOGS: Final = "concerns only what is logged: see `atalanta run --log-level`"
SOCKETS: Final = "the operating system decides about sockets and their buffers"
STORE_LAYOUT: Final = "the layout of another store: messages are kept in this broker's journal"
CACHES: Final = "a size of memory inside of the other broker"
UNREAD: Final = "Artemis does not read it, either"
IN_PROCESS: Final = "for programs in the process of the broker: there are none here"
UNSERVED: Final = "for clients of a protocol that is not served: where one is wanted, the acceptor is named"

KINDS: Final = (THREADS, JVM, JMX, LOGS, SOCKETS, STORE_LAYOUT, CACHES, UNREAD, IN_PROCESS, UNSERVED)


class FixedValue:
    """An option that is harmless with one value alone, which holds here whatever a file says."""

    def __init__(self, here: str, otherwise: str) -> None:
        """`here`: the value in all its forms, with commas. `otherwise`: what a file that has another value misses."""
        self.here = tuple(here.lower().split(","))
        self.otherwise = otherwise

    def holds(self, text: str) -> bool:
        """Returns whether the value is the one that holds here."""
        return text.strip().lower() in self.here
