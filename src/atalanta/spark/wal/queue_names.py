"""The queues of a query at nodes without the log view: those of the options, or those that match the pattern there.

The pattern has the wildcards of the nodes' default (`<wildcard-addresses>`), and is matched here: a real Artemis only
lists its queues.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from typing import Final

from atalanta.spark.errors import OptionError, SparkSourceError, no_queue
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.queue_search import SEARCH_EVERY_S
from atalanta.spark.wal.wal_node import WalNode

ANY_WORDS: Final = "#"
SINGLE_WORD: Final = "*"


class QueueNames:
    """The names of the queues to read. A node's list is used for a second."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        pattern = options.queue_pattern
        self._pattern = None if pattern is None else expression(pattern)
        self._listed: dict[str, tuple[float, list[str]]] = {}  # node -> until when (s), its queues

    def at(self, node: WalNode) -> list[str]:
        """Returns the queues to read at a node, without the removed ones. Raises GatewayError."""
        removed = self.options.removed_queues
        return [name for name in self._all(node) if name not in removed]

    def unnamed(self, before: str) -> list[str]:
        """Returns the queues of an earlier query (its option queue, or queuePattern) that this one does not name.

        Names of queues have no comma.
        """
        options = self.options
        if before == options.queue:
            return []
        known = {options.queue, *options.queues, *options.removed_queues}
        return [
            name
            for name in before.split(", ")
            if name not in known and (self._pattern is None or self._pattern.fullmatch(name) is None)
        ]

    def _all(self, node: WalNode) -> Sequence[str]:
        if self._pattern is None:
            return self.options.queues or (self.options.queue,)
        began = time.monotonic()
        until, names = self._listed.get(node.node_id, (began, []))
        if began >= until:
            names = sorted(filter(self._pattern.fullmatch, node.queues()))
            ended = time.monotonic()
            until = ended + max(SEARCH_EVERY_S, 5 * (ended - began))
            self._listed[node.node_id] = (until, names)
        return names


def check_found(options: ReadOptions, found: Collection[str]) -> None:
    """Raises SparkSourceError if a named queue is at no node, or if none matches the pattern."""
    servers = options.login.servers
    if options.queue_pattern is not None:
        if not found:
            raise SparkSourceError(
                f"no node of {', '.join(servers)} has a durable queue that matches {options.queue_pattern!r} "
                "(queuePattern)"
            )
        return
    for name in options.queues or (options.queue,):
        if name not in found and name not in options.removed_queues:
            raise no_queue(servers, name)


def expression(pattern: str) -> re.Pattern[str]:
    """Returns a pattern of names as a regular expression. Raises OptionError if `#` is not at its end."""
    words = pattern.removesuffix(ANY_WORDS)
    if ANY_WORDS in words:
        raise OptionError(f"option queuePattern: '#' can only stand at the end: {pattern!r}")
    if pattern == ANY_WORDS:
        return re.compile(".+", re.DOTALL)
    further = ""
    if words != pattern:
        words, further = words.removesuffix("."), r"(?:\..+)?"
    text = "[^.]+".join(re.escape(part) for part in words.split(SINGLE_WORD))
    return re.compile(text + further, re.DOTALL)
