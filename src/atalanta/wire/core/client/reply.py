"""The later answer to a request of the client."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.wire.core.client.errors import ClientError


class Reply:
    """The answer: `done` once `value` or `error` is set. `on_done` is called at that moment, at most once.

    The engine does not wait. Its owner connects `on_done` with a future or a flag.
    """

    def __init__(self) -> None:
        self.done: bool = False
        self.value: object = None
        self.error: ClientError | None = None
        self.on_done: Callable[[Reply], None] | None = None

    def resolve(self, value: object) -> None:
        """Sets the value."""
        if not self.done:
            self.done = True
            self.value = value
            self._notify()

    def fail(self, error: ClientError) -> None:
        """Sets the error: there will be no answer."""
        if not self.done:
            self.done = True
            self.error = error
            self._notify()

    def result(self) -> object:
        """Returns the value or raises the error. Only once it is done."""
        if self.error is not None:
            raise self.error
        return self.value

    def _notify(self) -> None:
        callback = self.on_done
        if callback is not None:
            self.on_done = None
            callback(self)
