"""The log of the small processes: it loads what it needs when there is something to say."""

from __future__ import annotations

import os


class GuardLog:
    """The log, with the level and the form of the broker's."""

    def __init__(self, level: int, as_json: bool) -> None:
        self._level = level
        self._as_json = as_json

    def event(self, name: str, fields: dict[str, object]) -> None:
        """Logs an event. It raises nothing: the status of the broker and the end of the voter do not depend on it."""
        try:
            import logging

            from atalanta.runtime.process.logs import configure_logging, log_event

            configure_logging(self._level, self._as_json)
            log_event(logging.getLogger("atalanta.guard"), name, fields)
        except Exception as error:  # an upgrade has moved the sources, no memory, no descriptor: a plain line then
            try:
                os.write(2, f"{name} {fields} (the log cannot be loaded: {error!r})\n".encode())
            except OSError:
                pass  # there is nowhere left to tell it
