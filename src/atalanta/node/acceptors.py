"""The acceptors of a node while it runs: opened, closed and changed by management and by a reload.

The process has the sockets. Who came in at an acceptor that is closed is disconnected, as in Artemis; who came in at
one that has changed stays, with the settings of then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.resources.acceptor import AcceptorSwitch, ListedAcceptor
from atalanta.wire.connection import ClientConnection
from atalanta.wire.openwire.server.protocol import OpenWireProtocol

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings
    from atalanta.kernel.ports import Process
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.server import WireServer


class NodeAcceptors(AcceptorSwitch):
    """`by_name` are the acceptors of the configuration, `removed` the names of those that a reload has removed."""

    def __init__(
        self,
        configs: list[AcceptorConfig],
        cluster: ClusterSettings | None,
        host: WireServer,
        resources: ResourceRegistry,
        process: Process,
    ) -> None:
        self.cluster = cluster
        self.host = host
        self.resources = resources
        self.process = process
        self.by_name: dict[str, AcceptorConfig] = {}
        self.removed: dict[str, bool] = {}
        for config in configs:
            self._add(config)
        resources.switch = self

    def _add(self, config: AcceptorConfig) -> None:
        self.by_name[config.name] = config
        self.removed.pop(config.name, None)
        self.resources.register_acceptor(
            ListedAcceptor(config.name, {"host": config.host, "port": config.port}, config.auto_start)
        )

    def is_closed(self, name: str) -> bool:
        """Returns whether nobody may come in any more at an acceptor: a handshake may end behind its end."""
        listed = self.resources.acceptors.get(name)
        return name in self.removed or (listed is not None and not listed.started)

    # -- management -------------------------------------------------------------------------------
    def start(self, name: str) -> None:
        listed = self.resources.acceptors[name]
        if not listed.started:
            self.process.start_acceptor(name)
            listed.started = True

    def stop(self, name: str) -> None:
        listed = self.resources.acceptors[name]
        if not listed.started:
            return
        if self.cluster is not None and self.cluster.serves_group(self.by_name[name]):
            why = "the members of the replicated group come in there, and without them nothing is confirmed"
            raise BrokerError(ILLEGAL_STATE, f"the acceptor '{name}' stays open: {why}")
        self.process.stop_acceptor(name)
        listed.started = False
        self._end_clients(name)

    def _end_clients(self, name: str) -> None:
        """Closes the connections that came in at an acceptor, behind what is to be sent now."""
        for conn, connection in self.host.connections.items():
            if isinstance(connection, ClientConnection):
                acceptor = connection.acceptor
                if acceptor is not None and acceptor.name == name:
                    self.host.close(conn, f"the acceptor {name} is closed")

    # -- a reload -----------------------------------------------------------------------------------
    def reload(self, configs: list[AcceptorConfig]) -> None:
        """Takes the acceptors of a reload. The process has changed its sockets before. Domains change elsewhere
        (wire/endpoint.py: change_domains)."""
        wanted = {config.name: config for config in configs}
        for name in [each for each in self.by_name if each not in wanted]:
            del self.by_name[name]
            self.removed[name] = True
            self.resources.acceptors.pop(name, None)
            self._end_clients(name)
        for config in configs:
            known = self.by_name.get(config.name)
            if known is None:
                self._add(config)
            elif known != config:
                self.by_name[config.name] = replace(config, security_domain=known.security_domain)
                self.resources.acceptors[config.name].move(config.host, config.port)
                self.host.schedulers.pop(config.name, None)
        self.host.follow_acceptors(list(self.by_name.values()))
        self.introduce()

    def introduce(self) -> None:
        """Tells the protocol of ActiveMQ Classic by which acceptors neighbours and their clients reach this node."""
        for protocol in self.host.protocols:
            if isinstance(protocol, OpenWireProtocol):
                protocol.node_clients.peers.use_acceptors(self.by_name.values())
