"""The log of the small processes: it loads what it needs when there is something to say."""

from __future__ import annotations


class GuardLog:
    """The log, with the level and the form of the broker's."""

    def __init__(self, level: int, as_json: bool) -> None:
        self._level = level
        self._as_json = as_json

    def event(self, name: str, fields: dict[str, object]) -> None:
        """Logs an event."""
        import logging

        from atalanta.runtime.process.logs import configure_logging, log_event

        configure_logging(self._level, self._as_json)
        log_event(logging.getLogger("atalanta.guard"), name, fields)
