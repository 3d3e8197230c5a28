"""The version lines of JGroups in which a channel speaks: those that were heard, or a first word without that."""

from __future__ import annotations

from typing import Final

from atalanta.wire.jgroups.version import LIKELY, line_of

LINES_MAX: Final = 8
KEPT_NS: Final = 300_000_000_000  # members are heard at least each half minute


class VersionLines:
    """The lines of one channel. `named` is the version that the configuration names for the first word, 0 without."""

    def __init__(self, named: int) -> None:
        self.named = named
        self.hint = 0  # of another node or client of ours, which may have heard members
        self._heard: dict[int, tuple[int, int]] = {}  # line -> version, time

    def hear(self, now: int, version: int) -> bool:
        """Records the version of a member. Returns True if its line is new."""
        line = line_of(version)
        new = line not in self._heard
        if new and len(self.heard(now)) >= LINES_MAX:
            return False
        self._heard[line] = (version, now)
        return new

    def heard(self, now: int) -> list[int]:
        """Returns the versions of members that were heard lately."""
        for line, (_, at) in list(self._heard.items()):
            if now - at > KEPT_NS:
                del self._heard[line]
        return [version for version, _ in self._heard.values()]

    def spoken(self, now: int) -> list[int]:
        """Returns a version of each line in which to speak: all that were heard, else one for the first word."""
        return self.heard(now) or [self.named or self.hint or LIKELY[0]]
