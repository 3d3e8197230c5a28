"""Which commits the node's own thread does, at the end of its turn.

To hand a commit to the worker and its answer back costs about as much CPU as the sync of a fast disk, since the
two threads also fight for the interpreter's lock: a sixth of what a durable message costs under load. A slow disk
must not hold up everybody, though: so a commit may take as long as it allows, and what takes longer is the worker's.
"""

from __future__ import annotations

# What a commit of the node's thread may take, and what that grows by with its size: a turn that brings in
# so many bytes works several times as long on them.
ALLOWED_S = 0.000_5
ALLOWED_S_PER_BYTE = 1e-9
# How much of the average the last commit is, and how far one may draw it: the machine was busy elsewhere, perhaps.
LAST_SHARE = 0.2
RATIO_MAX = 2.0
# Up to the first a commit is small; beyond the second it is the worker's in any case.
SMALL_BYTES = 16 * 1024
BYTES_MAX = 1 << 20
# So many commits of the worker lie between two trials, more each time that one failed.
PAUSE_FIRST = 8
PAUSE_MAX = 4096
# The worker's time includes waiting for the interpreter's lock. Beyond this the disk itself is slow: no trial.
WORKER_S_MAX = 0.008
# A commit that took so long is followed by one of the worker, which finds out whether the disk hangs.
HUNG_S = 0.1


class OwnCommits:
    """Asked before a commit, told after it; by one thread at a time. Small and large ones count separately."""

    def __init__(self) -> None:
        self._small = Pace()
        self._large = Pace()
        self._hung = False

    def wanted(self, size: int) -> bool:
        """Whether the node's thread does a commit of `size` bytes now."""
        return size <= BYTES_MAX and not self._hung and self._pace(size).wanted()

    def own(self, size: int, took_s: float) -> None:
        """The node's thread did one."""
        self._hung = took_s >= HUNG_S
        self._pace(size).own(took_s / (ALLOWED_S + size * ALLOWED_S_PER_BYTE))

    def worker(self, size: int, took_s: float) -> None:
        """The worker did one."""
        self._hung = took_s >= HUNG_S
        if took_s < WORKER_S_MAX:
            self._pace(size).wait()

    def _pace(self, size: int) -> Pace:
        return self._small if size <= SMALL_BYTES else self._large


class Pace:
    """Commits of one kind; a `ratio` of 1 is all of the time that is allowed."""

    def __init__(self) -> None:
        # On average. From 1 on the commits are the worker's, but for a trial now and then.
        self.ratio = 1.0
        # Commits of the worker until the next trial; nobody knows the disk yet, so the first is the worker's.
        self._pause = 1
        self._next_pause = PAUSE_FIRST

    def wanted(self) -> bool:
        """See OwnCommits.wanted."""
        return self.ratio < 1.0 or self._pause <= 0

    def own(self, ratio: float) -> None:
        """See OwnCommits.own."""
        if self.ratio < 1.0:
            self.ratio += (min(ratio, RATIO_MAX) - self.ratio) * LAST_SHARE
            if self.ratio >= 1.0:
                self._pause = self._next_pause = PAUSE_FIRST
        elif ratio < 1.0:
            self.ratio = ratio
        else:
            self._next_pause = min(2 * self._next_pause, PAUSE_MAX)
            self._pause = self._next_pause

    def wait(self) -> None:
        """The worker did one, and not too slowly for a trial to come."""
        self._pause -= 1
