"""An event loop in a thread of its own, for blocking programs that use what needs several connections at once."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar

from atalanta.client.shells.shell import drive
from atalanta.wire.core.client.errors import Closed, IllegalState

ILLEGAL_STATE: Final = 104
Result = TypeVar("Result")


class LoopThread:
    """The thread. It does not survive a fork: `survived` is False in the child process."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._name = name
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def survived(self) -> bool:
        """Returns whether this is the process that made the thread."""
        return os.getpid() == self._process

    def _run(self) -> None:
        self.loop.run_forever()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        if left:
            self.loop.run_until_complete(asyncio.wait(left))
        self.loop.close()

    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Returns the coroutine's result. An interrupt of the caller cancels it.

        After the end it must have nothing to wait for. IllegalState: this is a process that was forked later.
        """
        if not self.survived:
            coroutine.close()
            text = f"{self._name} is that of the process before the fork: connect again in this one"
            raise IllegalState(text, ILLEGAL_STATE)
        with self._lock:
            future = None if self._ended else asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        if future is None:
            return drive(coroutine)
        try:
            return future.result()
        except CancelledError:
            raise Closed(f"{self._name} is closed") from None
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        """Ends the loop and its thread; other calls end with Closed."""
        if not self.survived:
            return  # its loop shares descriptors with that of the parent process
        with self._lock:
            self._ended = True
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
