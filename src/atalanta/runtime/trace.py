"""The Trace port on stdlib logging: one line an event, `name key=value …`, and counters."""

from __future__ import annotations

import logging

from atalanta.kernel.ports import Trace

# The last word of an event's name says how serious it is; every other event is information.
WARNING_WORDS = {"failed", "refused", "lost", "stepped", "unsupported", "overflow", "slow", "error"}
ERROR_WORDS = {"bug", "corrupt", "damaged", "fatal"}


def level_of(name: str) -> int:
    """The logging level of the event `name`: "dial_failed" is a warning, "node_bug" an error."""
    word = name.rsplit("_", 1)[-1]
    if word in ERROR_WORDS:
        return logging.ERROR
    return logging.WARNING if word in WARNING_WORDS else logging.INFO


def render(value: object) -> str:
    """A field's value on one line: as it is where that is unambiguous, quoted otherwise."""
    text = value.hex() if isinstance(value, bytes) else str(value)
    if text and all(character.isprintable() and character not in ' "=' for character in text):
        return text
    return '"' + text.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'


class LogTrace(Trace):
    """Counts by name; writes events to the logger "atalanta.node"."""

    def __init__(self) -> None:
        self.on = logging.getLogger("atalanta.node").isEnabledFor(logging.DEBUG)
        self.counters: dict[str, int] = {}
        self._logger = logging.getLogger("atalanta.node")

    def count(self, name: str, n: int = 1) -> None:
        """Adds `n` to the counter `name`."""
        self.counters[name] = self.counters.get(name, 0) + n

    def event(self, name: str, fields: dict[str, object]) -> None:
        """One log line. Event names are stable: people search for them and alert on them."""
        level = level_of(name)
        if self._logger.isEnabledFor(level):
            words = [f"{key}={render(value)}" for key, value in fields.items()]
            self._logger.log(level, "%s", " ".join([name, *words]))
