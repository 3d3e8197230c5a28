"""The report of commands that ended with an unexpected exception outside the kernel's state: mistakes of ours.

What could not be encoded for somebody else is reported here, too. The node goes on, so the event has to name the place.
A client can repeat such a command as often as it likes: one event a minute for each place is written, and all are
counted.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace

PACKAGE: Final = "atalanta/"
CALLS_SHOWN_MAX: Final = 8
TEXT_SHOWN_MAX: Final = 200
MINUTE_NS: Final = 60_000_000_000
PLACES_MAX: Final = 1_000


class CommandFailures:
    """The failed commands of a node, by place. Times are in ns."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._reported: dict[str, int] = {}

    def report(self, now: int, protocol: str, command: str, remote: str, error: Exception) -> str:
        """Counts the failure, and writes an event unless its place was reported in the last minute.

        Returns the reason for the peer, which does not quote the exception.
        """
        calls = calls_of(error)
        place = calls[0] if calls else "unknown"
        self.trace.count("commands_failed")
        if self._admits(now, place):
            self.trace.event(
                "command_failed",
                {
                    "protocol": protocol,
                    "command": command,
                    "place": place,
                    "why": described(error),
                    "remote": remote,
                    "calls": " < ".join(calls),
                },
            )
        return f"the broker failed at {command or 'its input'} ({place}): its log has an event command_failed"

    def left_out(self, now: int, protocol: str, command: str, error: Exception) -> None:
        """Counts a command for somebody else that could not be encoded and was not sent, and reports it by its place.

        Neither the receiver nor the one whose command caused it loses its connection.
        """
        calls = calls_of(error)
        place = calls[0] if calls else "unknown"
        self.trace.count("commands_left_out")
        if self._admits(now, f"{command} {place}"):
            self.trace.event(
                "command_left_out",
                {"protocol": protocol, "command": command, "place": place, "why": described(error)},
            )

    def _admits(self, now: int, place: str) -> bool:
        """Returns True, and records it, if the place was not reported in the last minute."""
        last = self._reported.get(place)
        if last is not None and now - last < MINUTE_NS:
            return False
        if len(self._reported) >= PLACES_MAX:
            self._reported.clear()
        self._reported[place] = now
        return True


def calls_of(error: BaseException) -> list[str]:
    """Returns the calls through which the exception came, `file:line`, the innermost first; before them its cause's."""
    found: list[str] = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        at = name.rfind(PACKAGE)
        found.append(f"{name[at + len(PACKAGE) :] if at >= 0 else name}:{step.tb_lineno}")
        step = step.tb_next
    found.reverse()
    cause = error.__cause__
    if cause is not None:
        found = calls_of(cause) + found
    return found[:CALLS_SHOWN_MAX]


def described(error: BaseException) -> str:
    """Returns the kind and the text of an exception, shortened: the text may quote what the peer has sent."""
    return f"{type(error).__name__}: {error}"[:TEXT_SHOWN_MAX]
