"""Compressed bodies of clients, inflated in steps: other clients do not wait for a small message that becomes a large
one. One body of the node is inflated at a time, and users take turns; what it becomes is in memory only then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire.bodies import STEP_BYTES, BodyInflater, inflated_bytes_max

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.wire.openwire.commands.messages import OpenWireMessage
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession

INFLATION_TIMER: Final = "wire.openwire.inflations"
AT_ONCE_BYTES: Final = 256 << 10  # a body of so many bytes does not wait


class Inflation:
    """The inflation of the body of `command`, which waits for it. The input of its session is held meanwhile."""

    def __init__(self, session: OpenWireSession, command: OpenWireMessage, bytes_max: int) -> None:
        """DecodeError if the announced size is damaged or too large."""
        content = command.content or b""
        code = command.code()
        self.session = session
        self.command = command
        self.inflater = BodyInflater(code, content, inflated_bytes_max(code, len(content), bytes_max))
        self.error: DecodeError | None = None
        self.done: bool = False

    def step(self, bytes_max: int) -> bool:
        """Inflates so many bytes. Returns True at the end, also of a body that is refused."""
        try:
            self.done = self.inflater.step(bytes_max)
        except DecodeError as error:
            self.error = error.with_traceback(None)  # without a circle that is collected late
            self.inflater.drop()
            self.done = True
        return self.done

    def check(self) -> None:
        """Raises the DecodeError of a body that is refused."""
        if self.error is not None:
            raise self.error

    def content(self) -> bytes:
        """Returns the body."""
        return self.inflater.content()


class Inflations:
    """The inflations of a node, by user; that of the first user is in progress."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.waiting: dict[str, list[Inflation]] = {}

    def begin(
        self, now: int, session: OpenWireSession, command: OpenWireMessage, bytes_max: int
    ) -> Inflation:
        """Begins an inflation, and holds the session's input if it takes longer. DecodeError as that of Inflation."""
        inflation = Inflation(session, command, bytes_max)
        if not inflation.step(AT_ONCE_BYTES):
            session.hold_input()
            self.waiting.setdefault(session.kernel.identity.user or "", []).append(inflation)
            self.timers.set(INFLATION_TIMER, now)
        return inflation

    def on_timer(self, now: int) -> None:
        """Does the next step."""
        user = next(iter(self.waiting), "")
        line = self.waiting.get(user)
        if line is None:
            return
        inflation = line[0]
        session = inflation.session
        gone = session.connection.gone
        if gone:
            inflation.inflater.drop()
        if gone or inflation.step(STEP_BYTES):
            del line[0]
            del self.waiting[user]
            if line:
                self.waiting[user] = line  # behind the other users
            if not gone:
                session.release_input()
        if self.waiting:
            self.timers.set(INFLATION_TIMER, now)
