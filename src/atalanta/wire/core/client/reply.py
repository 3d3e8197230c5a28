"""What a client waits for: an answer that comes later, once."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.wire.core.client.errors import ClientError


class Reply:
    """`done` once `value` or `error` is there. `on_done` is called at that moment, at most once.

    A shell hangs its own waiting on `on_done` (a future, a flag); the engine knows no waiting.
    """

    def __init__(self) -> None:
        self.done: bool = False
        self.value: object = None
        self.error: ClientError | None = None
        self.on_done: Callable[[Reply], None] | None = None

    def resolve(self, value: object) -> None:
        """The answer came."""
        if not self.done:
            self.done = True
            self.value = value
            self._tell()

    def fail(self, error: ClientError) -> None:
        """There will be no answer."""
        if not self.done:
            self.done = True
            self.error = error
            self._tell()

    def result(self) -> object:
        """The value; raises the error. Only once it is done."""
        if self.error is not None:
            raise self.error
        return self.value

    def _tell(self) -> None:
        told = self.on_done
        if told is not None:
            self.on_done = None
            told(self)
