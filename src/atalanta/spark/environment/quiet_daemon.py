"""PySpark's daemon of Python workers, whose workers end without a word when Spark hangs up.

Spark ends a worker that has no more to do by closing its socket. PySpark's worker takes this for an error that it tells
Spark, on the socket that is closed: over a Unix domain socket the daemon then prints "failed to flush" with the
traceback of a BrokenPipeError, beside the output of the user's program. Here a worker looks for the next task, or the
end, before it begins. The script of interpreter.py runs this file in the place of `-m pyspark.daemon`. It imports
nothing of Atalanta: the daemon forks the workers, and starts in the time of one more module.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from pyspark import daemon

Worker = Callable[[socket.socket, bool], int]
HUNG_UP = 1  # any other number than 0 ends the process


def quiet(worker: Worker) -> Worker:
    """Returns a worker that first waits for a byte of a task, or for the end of the connection."""

    def waiting(connection: socket.socket, authenticated: bool) -> int:
        try:
            begun = connection.recv(1, socket.MSG_PEEK)
        except ConnectionError:
            return HUNG_UP
        return worker(connection, authenticated) if begun else HUNG_UP

    return waiting


if __name__ == "__main__":
    setattr(daemon, "worker", quiet(daemon.worker))  # noqa: B010 (mypy takes no other function there)
    daemon.manager()
