"""A passive member of a replicated group that finds the active node by a discovery group.

It announces nothing and listens at no port: only an active node is found. What it hears of its own node id is dialled,
like a static connector. A member that has no node id yet dials every node that it hears, and most of them refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import ClusterSettings, DiscoveryGroupConfig
from atalanta.cluster.discovery.discovery import Discovery, DiscoveryListener
from atalanta.cluster.replication.passive.active_search import Candidate
from atalanta.cluster.replication.passive.backup import Backup
from atalanta.kernel.command_failures import CommandFailures
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.connection import TransportConnection
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.replication.passive.backup_config import BackupConfig, BackupPorts
    from atalanta.wire.core.transport import TransportConfiguration

DISCOVERY: Final = "discovery."


class HeardNodes(DiscoveryListener):
    """The nodes that a passive member hears: its candidates. `connector` is the own one, with TLS if `secure`."""

    def __init__(self, backup: Backup, connector: str, secure: bool) -> None:
        self._search = backup.search
        own = backup.config.node_id
        self._own = "" if own is None else own.hex()
        self._connector = connector
        self._secure = secure
        self._remotes: dict[str, str] = {}  # by node id

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        """Implements DiscoveryListener.discovered."""
        if self._own and node_id.replace("-", "") != self._own:
            return
        candidate = Candidate(self._connector, connector.host, connector.port, self._secure)
        if self._remotes.get(node_id) != candidate.remote:
            self.undiscovered(now, node_id)
            self._remotes[node_id] = candidate.remote
        self._search.on_heard(candidate)

    def undiscovered(self, now: int, node_id: str) -> None:
        """Implements DiscoveryListener.undiscovered."""
        remote = self._remotes.pop(node_id, "")
        if remote and remote not in list(self._remotes.values()):
            self._search.on_unheard(remote)


class DiscoveringBackup(Backup):
    """A passive member with a discovery group. `connector` is the own one: others are dialled with TLS as it is."""

    def __init__(
        self, config: BackupConfig, ports: BackupPorts, group: DiscoveryGroupConfig, connector: str, secure: bool
    ) -> None:
        super().__init__(config, ports)
        self.search.hears = True
        self._group = group
        self._heard = HeardNodes(self, connector, secure)
        self._failures = CommandFailures(ports.trace)
        self._exchanges: dict[int, TransportConnection] = {}  # with hosts of a JGroups stack
        # Its name in the group is not its node id, which is that of the node that it looks for.
        self._discovery = Discovery(
            ClusterSettings(discovery_groups={group.name: group}), ports.links, config.member, ports.ids, ports.timers,
            ports.trace, ports.wire, ports.wire.close, silent=True,
        )  # fmt: skip

    def start(self, now: int) -> None:
        """Implements NodeInputs.start."""
        super().start(now)
        self._discovery.start(now)
        self._discovery.listen(now, self._group.name, self._heard, "ha-policy")

    def stop(self, now: int) -> None:
        """Implements NodeInputs.stop."""
        super().stop(now)
        self._discovery.stop(now)

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """Implements NodeInputs.on_datagram. Anybody can send a datagram: a mistake at one costs nothing else."""
        try:
            self._discovery.on_datagram(now, group, data)
        except Exception as error:
            self._failures.report(now, "datagram", group, "", error)

    def on_resolved(self, now: int, key: str, addresses: list[tuple[str, int]], why: str) -> None:
        """Implements NodeInputs.on_resolved."""
        self._discovery.on_resolved(now, key, addresses, why)

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """Implements NodeInputs.on_posted."""
        self._discovery.on_posted(now, key, files, why)

    def on_timer(self, now: int, key: str) -> None:
        """Implements NodeInputs.on_timer."""
        if not key.startswith(DISCOVERY):
            super().on_timer(now, key)
            return
        self._discovery.on_timer(now, key)
        for conn, exchange in list(self._exchanges.items()):
            if not exchange.check_alive(now):
                self.ports.wire.close(conn, "the host does not answer")

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        """Implements NodeInputs.on_dialed."""
        if not key.startswith(DISCOVERY):
            super().on_dialed(now, conn, key)
            return
        exchange = self._discovery.on_dialed(now, conn, key)
        if exchange is None:
            self.ports.wire.close(conn, "it is not needed any more")
        else:
            self._exchanges[conn] = exchange

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """Implements NodeInputs.on_dial_failed."""
        if key.startswith(DISCOVERY):
            self._discovery.on_dial_failed(now, key, why)
        else:
            super().on_dial_failed(now, key, why)

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        """Implements NodeInputs.on_data."""
        exchange = self._exchanges.get(conn)
        if exchange is None:
            super().on_data(now, conn, data)
            return
        try:
            exchange.feed(now, data)
        except (ProtocolError, DecodeError) as error:
            self.ports.wire.close(conn, str(error))
        except Exception as failure:
            self.ports.wire.close(conn, self._failures.report(now, "discovery", "", "", failure))

    def on_closed(self, now: int, conn: int, why: str) -> None:
        """Implements NodeInputs.on_closed."""
        exchange = self._exchanges.pop(conn, None)
        if exchange is None:
            super().on_closed(now, conn, why)
        else:
            exchange.closed(now, why)
