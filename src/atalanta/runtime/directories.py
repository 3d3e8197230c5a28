"""The Directories port: threads ask the directories (LDAP), so the event loop does not wait.

Each directory has threads of its own: one that does not answer delays no logins of others. When a connection to it
cannot be opened, what waits is answered at once, and it is tried again after `RETRY_S`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

from atalanta.cluster.inputs import NodeInputs
from atalanta.kernel.ports import Directories
from atalanta.kernel.security.directory import DirectoryAnswer, DirectoryConfig
from atalanta.kernel.security.directory_logins import ASKED_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.runtime.driver import Driver

RETRY_S: Final = 1.0
NOT_UNDERSTOOD: Final = "the answer of the directory is not understood: report this, with the kind of its server"
NO_THREAD: Final = "let the node have more threads (TasksMax of systemd, ulimit -u)"
IDLE_S: Final = 60.0  # a thread without work ends, and its connections with it


class DirectoryClient(Protocol):
    """The connections of one thread to a directory."""

    def look_up(self, user: str, password: str | None) -> DirectoryAnswer:
        """Returns the answer, with `problem` if there is none."""

    def close(self) -> None:
        """Closes the connections."""


Question = tuple[int, str, str | None]


class DirectoryThreads:
    """The threads of one directory. They start when they are needed, and end when there is nothing to do."""

    def __init__(
        self,
        make: Callable[[DirectoryConfig], DirectoryClient],
        directory: DirectoryConfig,
        answer: Callable[[int, DirectoryAnswer], None],
    ) -> None:
        self._make = make
        self._directory = directory
        self._answer = answer
        self._lock = threading.Lock()
        self._questions: SimpleQueue[Question | None] = SimpleQueue()
        self._waiting = 0
        self._threads = 0
        self._away: DirectoryAnswer | None = None  # what the last one that failed has said
        self._away_until = 0.0
        self.closed = False

    def put(self, question: Question) -> None:
        """Adds a question, and starts a thread if all have work."""
        with self._lock:
            self._waiting += 1
            starts = self._threads < min(self._waiting, ASKED_MAX)
            self._threads += starts
            self._questions.put(question)
        if not starts:
            return
        try:
            threading.Thread(target=self._work, name="atalanta-directory", daemon=True).start()
        except RuntimeError as error:  # the system gives no thread: those that run take the question
            self._not_started(str(error))

    def _not_started(self, why: str) -> None:
        """Counts a thread that is none; answers what waits if there is no other one."""
        with self._lock:
            self._threads -= 1
            left: list[Question | None] = []
            while not self._threads and not self._questions.empty():
                left.append(self._questions.get())
            self._waiting -= len(left)
        for question in left:
            if question is not None:
                self._answer(question[0], DirectoryAnswer(False, problem=why, remedy=NO_THREAD))

    def close(self) -> None:
        """Ends the threads when they have their answers; nobody waits for them."""
        self.closed = True
        for _ in range(ASKED_MAX):
            self._questions.put(None)

    def _work(self) -> None:
        client: DirectoryClient | None = None
        try:
            while (question := self._next()) is not None:
                token, user, password = question
                try:
                    if client is None:
                        client = self._make(self._directory)
                    answer = self._ask(client, user, password)
                except Exception as error:  # whatever it is, the client must get an answer
                    answer = DirectoryAnswer(False, why=f"{NOT_UNDERSTOOD} ({type(error).__name__})")
                with self._lock:
                    self._waiting -= 1
                if not self.closed:
                    self._answer(token, answer)
        finally:
            if client is not None:
                client.close()

    def _next(self) -> Question | None:
        """Returns the next question; None ends the thread. Its end is counted before another question can come."""
        while not self.closed:
            try:
                question = self._questions.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if not self._questions.empty():
                        continue
                    self._threads -= 1
                return None
            if question is not None:
                return question
        return None

    def _ask(self, client: DirectoryClient, user: str, password: str | None) -> DirectoryAnswer:
        with self._lock:
            if self._away is not None and time.monotonic() < self._away_until:
                return self._away
        answer = client.look_up(user, password)
        with self._lock:
            self._away = answer if answer.problem else None
            self._away_until = time.monotonic() + RETRY_S
        return answer


class ThreadDirectories(Directories):
    """Asks directories on threads. kernel/security/directory_logins.py limits how many questions there are."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        driver: Driver,
        make: Callable[[DirectoryConfig], DirectoryClient] | None = None,
    ) -> None:
        self._loop = loop
        self._driver = driver
        self._make = make if make is not None else ldap_client
        self._by_directory: dict[DirectoryConfig, DirectoryThreads] = {}

    def look_up(self, token: int, directory: DirectoryConfig, user: str, password: str | None) -> None:
        """Implements Directories.look_up."""
        threads = self._by_directory.get(directory)
        if threads is None:
            threads = DirectoryThreads(self._make, directory, self._answer)
            self._by_directory[directory] = threads
        threads.put((token, user, password))

    def _answer(self, token: int, answer: DirectoryAnswer) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._driver.post, NodeInputs.on_looked_up, token, answer)

    def close(self) -> None:
        """Drops the questions; threads end with their answers."""
        for threads in self._by_directory.values():
            threads.close()


def ldap_client(directory: DirectoryConfig) -> DirectoryClient:
    """Returns the client of an LDAP server."""
    # Only nodes whose login.config names a directory have the library (extra `ldap`).
    from atalanta.runtime.ldap_client import LdapClient

    return LdapClient(directory)
