"""The guard of the process of a member: it proves the end of an active run to the followers."""

from __future__ import annotations

import logging
import os

from atalanta.cluster.replication.member_codec import SALT_SIZE, Guard
from atalanta.config.configuration import Configuration
from atalanta.runtime.ha.guard.frames import epoch_secret
from atalanta.runtime.ha.guard.line import LISTENS_S, GuardLine
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.guard")


class ProcessGuard:
    """The guard, which listens for followers. `key` is that of the cluster password."""

    def __init__(self, line: GuardLine, port: int, key: bytes) -> None:
        self._line = line
        self._port = port
        self._key = key

    def begin(self, epoch: int) -> Guard:
        """Tells the guard that this process is active in `epoch`, and returns what its followers are told.

        Call it before any follower hears of the epoch: the guard proves the end of the epoch that it was told last.
        """
        salt = os.urandom(SALT_SIZE)
        self._line.report(epoch, epoch_secret(self._key, epoch, salt))
        return Guard(epoch, self._port, salt)


def process_guard(configuration: Configuration, line: GuardLine | None, key: bytes) -> ProcessGuard | None:
    """Lets the guard of this process listen for followers. Returns None, with a warning, if it cannot: without a
    `line` there is no guard. Call it once."""
    if line is None:
        return None
    host = guard_host(configuration)
    try:
        port = line.listen(host, configuration.ha.guard_port, wait_s=LISTENS_S)
    except OSError as error:
        log_event(log, "guard_unreachable", {"at": f"{host}:{configuration.ha.guard_port}", "why": str(error)})
        return None
    return ProcessGuard(line, port, key)


def guard_host(configuration: Configuration) -> str:
    """Returns where the guard listens: at the host of the acceptor that the followers dial."""
    connection = configuration.group_connection()
    own = None if connection is None else configuration.connectors.get(connection.connector)
    for acceptor in configuration.acceptors:
        if own is not None and acceptor.port == own.port:
            return acceptor.host
    return configuration.acceptors[0].host if configuration.acceptors else "0.0.0.0"
