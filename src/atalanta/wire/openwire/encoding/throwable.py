"""An exception of the other side. Its class is a name in a text, nothing is loaded by it."""

from __future__ import annotations


class StackFrame:
    """A line of a stack trace. A line number below 0: not known."""

    def __init__(
        self, class_name: str | None, method: str | None, file: str | None, line: int
    ) -> None:
        self.class_name = class_name
        self.method = method
        self.file = file
        self.line = line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StackFrame) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[str | None, str | None, str | None, int]:
        return (self.class_name, self.method, self.file, self.line)


class Throwable:
    """A Java exception: the name of its class, its message, its stack and its cause.

    Stack and cause are sent only if both sides have StackTraceEnabled.
    """

    def __init__(
        self,
        class_name: str | None,
        message: str | None,
        stack: list[StackFrame] | None = None,
        cause: Throwable | None = None,
    ) -> None:
        self.class_name = class_name
        self.message = message
        self.stack: list[StackFrame] = stack or []
        self.cause = cause

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Throwable)
            and self.class_name == other.class_name
            and self.message == other.message
            and self.stack == other.stack
            and self.cause == other.cause
        )

    def __hash__(self) -> int:
        return hash((self.class_name, self.message))

    def __repr__(self) -> str:
        return f"Throwable({self.class_name!r}, {self.message!r})"
