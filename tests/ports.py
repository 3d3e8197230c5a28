"""TCP ports of 127.0.0.1 for brokers of tests: below those that the system gives to outgoing connections.

A broker of a test is stopped and started again at its port. Had the system chosen the port, a client of any other test
could get it for its own end of a connection in between.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections import deque
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from pathlib import Path

# Each process of tests has a block of its own for its life: its first PORTS ports are given out. The ports at the two
# distances from them are left free: for backups that a node hosts (as in the guide), and for voters, which listen 1,000
# ports above.
PORTS = 100
HOSTED_BACKUP_OFFSET = 100
BLOCKS = [page + block for page in range(10_000, 32_000, 2_000) for block in range(0, 1_000, 200)]


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody uses at this moment and no other process of tests will use."""
    ports = _ports()
    for _ in range(PORTS):
        port = next(ports)
        with socket.socket() as probe:
            # As brokers do: connections that have ended do not keep a port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port in _given:
            break  # it may be for a broker that is not started yet
        _given.append(port)
        return port
    raise AssertionError(f"all {PORTS} ports of this process of tests are in use")


@cache
def _ports() -> Iterator[int]:
    """Returns the ports of this process' block, in turn and for ever."""
    folder = Path(tempfile.gettempdir()) / f"atalanta-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for block in BLOCKS:
        lock = (folder / str(block)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _locks.append(lock)
        return cycle(range(block, block + PORTS))
    raise AssertionError(f"other processes of tests hold all blocks of ports in {folder}")


_locks: list[object] = []
_given: deque[int] = deque(maxlen=PORTS // 2)
