"""The choice between the node's thread and the worker for each commit.

Passing a commit to the worker and the answer back costs about as much CPU as the sync of a fast disk, since the
two threads also compete for the interpreter's lock. That is a sixth of the cost of a durable message under load.
But a slow disk must not block the event loop. So commits that take longer than a limit are left to the worker.
"""

from __future__ import annotations

from mypy_extensions import mypyc_attr

# Limit for a commit on the node's thread, and its growth with the size of the commit. An iteration that receives
# that many bytes works several times as long on them.
ALLOWED_S = 0.000_5
ALLOWED_S_PER_BYTE = 1e-9
# Weight of the last commit in the average, and the limit of its effect: the machine may have been busy elsewhere.
LAST_SHARE = 0.2
RATIO_MAX = 2.0
# A commit up to the first size is small. A commit above the second size is always left to the worker.
SMALL_BYTES = 16 * 1024
BYTES_MAX = 1 << 20
# Commits of the worker between two trials; the number grows with each failed trial.
PAUSE_FIRST = 8
PAUSE_MAX = 4096
# The worker's time includes the wait for the interpreter's lock. Above this limit the disk itself is slow: no
# trial.
WORKER_S_MAX = 0.008
# After a commit of this duration the next one is the worker's, to find out whether the disk hangs.
HUNG_S = 0.1


@mypyc_attr(allow_interpreted_subclasses=True)
class OwnCommits:
    """Decides before a commit and records its time, from one thread at a time. Small and large commits count
    separately."""

    def __init__(self) -> None:
        self._small = Pace()
        self._large = Pace()
        self._hung = False

    def wanted(self, size: int) -> bool:
        """Returns whether the node's thread does a commit of `size` bytes now."""
        return size <= BYTES_MAX and not self._hung and self._pace(size).wanted()

    def own(self, size: int, took_s: float) -> None:
        """Records a commit of the node's thread."""
        self._hung = took_s >= HUNG_S
        self._pace(size).own(took_s / (ALLOWED_S + size * ALLOWED_S_PER_BYTE))

    def worker(self, size: int, took_s: float) -> None:
        """Records a commit of the worker."""
        self._hung = took_s >= HUNG_S
        if took_s < WORKER_S_MAX:
            self._pace(size).wait()

    def _pace(self, size: int) -> Pace:
        return self._small if size <= SMALL_BYTES else self._large


class Pace:
    """Commits of one size class; a `ratio` of 1 is the whole time limit."""

    def __init__(self) -> None:
        # Average ratio. From 1 on, commits are the worker's, except for occasional trials.
        self.ratio = 1.0
        # Commits of the worker until the next trial. The first commit is the worker's, since the disk is unknown.
        self._pause = 1
        self._next_pause = PAUSE_FIRST

    def wanted(self) -> bool:
        """Implements OwnCommits.wanted for one size class."""
        return self.ratio < 1.0 or self._pause <= 0

    def own(self, ratio: float) -> None:
        """Implements OwnCommits.own for one size class."""
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
        """Records a commit of the worker that was fast enough for a later trial."""
        self._pause -= 1
