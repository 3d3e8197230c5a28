"""The Trace port: counters, and events as log lines."""

from __future__ import annotations

import logging
import time

from atalanta.kernel.event_record import EventRecord
from atalanta.kernel.ports import Trace
from atalanta.runtime.process.logs import RECORD, LineLimit, log_event


class LogTrace(Trace):
    """Counts by name. Writes events to the logger "atalanta.node.node", with a limit per second and name."""

    def __init__(self) -> None:
        self.on = logging.getLogger("atalanta.node.node").isEnabledFor(logging.DEBUG)
        self.counters: dict[str, int] = {}
        self._logger = logging.getLogger("atalanta.node.node")
        self._limit = LineLimit()

    def count(self, name: str, n: int = 1) -> None:
        """Adds `n` to the counter `name`."""
        self.counters[name] = self.counters.get(name, 0) + n

    def counts(self) -> dict[str, int]:
        """Returns the counters by name."""
        return self.counters

    def record(self) -> EventRecord:
        """Returns the newest events of the process, those of its shell too."""
        return RECORD

    def event(self, name: str, fields: dict[str, object]) -> None:
        """Writes one log line, unless the limit for that name is reached."""
        if not self.on:
            hidden = self._limit.take(name, time.monotonic())
            if hidden < 0:
                self.count("events.hidden")
                return
            if hidden:
                fields = {**fields, "hidden_before": hidden}
        log_event(self._logger, name, fields)
