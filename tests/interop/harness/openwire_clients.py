"""A JVM with groups of activemq-client's connections at work (Clients.java)."""

from __future__ import annotations

import json
from typing import Any

from .java_program import ANSWER_SECONDS, JavaProgram
from .node import BrokerProcess
from .openwire import openwire_class_path


class ClientsFailed(RuntimeError):
    """The program did not answer, or could not do what it was told; the message says why."""


class OpenWireClients(JavaProgram):
    """The groups of one JVM, by name."""

    def __init__(self, version: str) -> None:
        super().__init__("atalanta.openwire.Clients", classes=openwire_class_path(version))

    def open(self, group: str, url: str, count: int, period_ms: int = 0) -> None:
        """Opens `count` connections, which consume the queue of the group, and send to it in this period (0 never)."""
        self._ask("open", group, url, str(count), str(period_ms))

    def where(self, group: str, *nodes: BrokerProcess) -> list[int]:
        """How many connections of the group each of the nodes has; those elsewhere, or nowhere, come last."""
        found = {uri.rpartition(":")[2]: count for uri, count in self._ask("where", group).items()}
        counts = [found.pop(str(node.port), 0) for node in nodes]
        return [*counts, sum(found.values())]

    def told(self, group: str, *nodes: BrokerProcess) -> list[int]:
        """How many connections were told of each of the nodes; the last number is of other URIs."""
        found = {uri.rpartition(":")[2]: count for uri, count in self._ask("told", group).items()}
        counts = [found.pop(str(node.port), 0) for node in nodes]
        return [*counts, sum(found.values())]

    def counts(self, group: str) -> dict[str, Any]:
        """Messages sent, received, lost and doubled; connections interrupted; failures told to the application."""
        return self._ask("counts", group)

    def quiet(self, group: str) -> None:
        """Nobody of the group sends any more."""
        self._ask("quiet", group)

    def close_all(self, group: str) -> None:
        """Closes the connections of the group; does not wait."""
        self._ask("close", group)

    def _ask(self, *words: str) -> dict[str, Any]:
        self._tell("\t".join(words))
        line = self._answered()
        if not line:
            raise ClientsFailed(f"no answer to {words[0]} within {ANSWER_SECONDS:g} s, or the program ended")
        answer: dict[str, Any] = json.loads(line)
        if "failure" in answer:
            raise ClientsFailed(answer["failure"])
        return answer
