"""The watch over the disk of an active member: when it hangs, the service goes to a member that is in sync.

A write that hangs cannot be cancelled, and a process with such a write cannot end in good order: it would wait for it.
So the node resigns, which tells the followers, and the process ends at once. If the system cannot end the thread that
hangs, the guard has no proof, but the followers were told. If the event loop hangs as well, they were not, and the
end of the process or the lease decides.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from typing import Final

from atalanta.runtime.lifecycle.critical_analyzer import on_other_thread
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.runtime")

LOOKS: Final = 10  # within the time that a job may take
# Between the resignation and the end: the followers are told, and the log is written.
END_S: Final = 0.5


class DiskWatch:
    """Looks at the disk from a thread of its own. `stop` it when the node has ended.

    `busy_since` returns when the current job of the disk began, 0.0 without one. `resign(why)` is called on the loop.
    `timeout_s` counts only time in which this process runs: a process that was stopped does not resign for that.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout_s: float,
        busy_since: Callable[[], float],
        has_successor: Callable[[], bool],
        resign: Callable[[str], None],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._busy_since = busy_since
        self._has_successor = has_successor
        self._resign = resign
        self._end = end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread."""
        self._over.set()

    def _watch(self) -> None:
        began, looks = 0.0, 0
        while not self._over.wait(self._timeout_s / LOOKS):
            since = self._busy_since()
            looks = looks + 1 if since and since == began else 0
            began = since
            if looks >= LOOKS and self._has_successor():
                self._give_up()
                return

    def _give_up(self) -> None:
        why = f"the disk has hung for {self._timeout_s:g} s"
        on_other_thread(lambda: log_event(log, "disk_hung", {"seconds": self._timeout_s}))
        try:
            self._loop.call_soon_threadsafe(self._resign, why)
        except RuntimeError:
            return  # the loop is closed: the process has ended otherwise
        self._over.wait(END_S)
        on_other_thread(logging.shutdown)
        self._end(exit_codes.DISK_FAILED)
