"""The backlog of a passive member: when clients may wait at its ports.

Its ports are bound and do not listen, so clients go on to the next server of their list. When this member may soon
serve, they listen: clients that have lost the active node wait in the backlog, instead of for their retry interval.
Without a takeover the ports must be bound anew, because another member may serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.replication.passive.backup_config import BackupConfig, BackupPorts

# Clients wait for the lease and so long until the member has taken over. Then they are refused.
PATIENCE_NS: Final = 3_000_000_000


class ClientBacklog:
    """The backlog of one passive run."""

    def __init__(self, config: BackupConfig, ports: BackupPorts) -> None:
        # In a larger group another member may take over, and clients must find it.
        self._opens_on_loss = len(config.candidates) == 1 and not config.asynchronous
        self._listen = ports.listen
        self._until_ns = 0  # 0: nobody may wait

    def on_loss(self, now: int, wait_ns: int) -> None:
        """Lets clients wait in a pair: the connection to the active node is lost. That proves nothing, but clients dial
        again within milliseconds. `wait_ns`: how long this member waits for the end of the lease."""
        if self._opens_on_loss:
            self._open(now, wait_ns)

    def on_proof(self, now: int, wait_ns: int) -> None:
        """Lets clients wait, because the active process has provably ended. `wait_ns` as in `on_loss`."""
        self._open(now, wait_ns)

    def is_over(self, now: int, served: bool) -> bool:
        """Returns whether nobody may wait any longer: no takeover came in time, or another member serves (`served`)."""
        return self._until_ns != 0 and (served or now >= self._until_ns)

    def _open(self, now: int, wait_ns: int) -> None:
        if self._until_ns == 0:
            self._until_ns = now + wait_ns + PATIENCE_NS
            self._listen()
