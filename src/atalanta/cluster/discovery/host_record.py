"""The record of one host that is dialled: the version that it takes, or how often it refused one."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.discovery.version_lines import VersionLines
from atalanta.wire.jgroups.version import to_try

REFUSED_WITHIN_NS: Final = 250_000_000  # later it is a new view, or the end of the member
FIRST_PAUSE_NS: Final = 10_000_000_000
LONGEST_PAUSE_NS: Final = 3_600_000_000_000


class HostRecord:
    """A host. A refusal is a connection that it closed at once. `due` is the time (ns) before which it is let alone."""

    def __init__(self) -> None:
        self.taken = 0  # the version
        self.refusals = 0
        self.due = 0
        self.told = False
        self._short = 0

    def version(self, now: int, lines: VersionLines) -> int:
        """Returns the version to greet it with: each try has the next one."""
        if self.taken:
            return self.taken
        tried = to_try(lines.named, lines.heard(now))
        return tried[self.refusals % len(tried)]

    def takes(self, version: int) -> None:
        """Records the version that it has shown, or did not refuse."""
        self.taken = version
        self.refusals = 0
        self.due = 0
        self.told = False
        self._short = 0

    def closed(self, now: int, opened: int, version: int) -> bool:
        """Records that it closed a connection. Returns True for a refusal that was not told yet.

        Members also close connections at each new view; then one that was taken before is dialled again at once.
        """
        if now - opened > REFUSED_WITHIN_NS:
            self.takes(version)
            return False
        if self.taken:
            self._short += 1
            if self._short < 3:
                return False
        self.taken = 0
        self.due = now + min(FIRST_PAUSE_NS << min(self.refusals, 20), LONGEST_PAUSE_NS)
        self.refusals += 1
        told, self.told = self.told, True
        return not told

    def try_again(self) -> None:
        """Forgets the refusals: a line was heard that is not tried yet."""
        if not self.taken:
            self.refusals = 0
            self.due = 0
