"""The Links port: dialing and UDP groups in one object, as the node uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.ports import Links
from atalanta.runtime.disk.shared_folder import SharedFolders
from atalanta.runtime.net.dialer import Dialer
from atalanta.runtime.net.dynamic_listeners import DynamicListeners
from atalanta.runtime.net.resolver import Resolver
from atalanta.runtime.net.tcp import Connections
from atalanta.runtime.trace import LogTrace
from atalanta.tls.context import ClientTls

if TYPE_CHECKING:
    from atalanta.runtime.net.multicast import Multicast


class LoopLinks(Links):
    """Implements Links. Failed dials are inputs of the node; failures of a group are logged and retried."""

    def __init__(self, connections: Connections, trace: LogTrace) -> None:
        self._dialer = Dialer(connections)
        self._resolver = Resolver(connections.loop, connections.driver)
        self._listeners = DynamicListeners(connections, trace)
        self._folders = SharedFolders(connections.loop, connections.driver)
        self._connections = connections
        self._trace = trace
        self._multicast: Multicast | None = None

    def dial(self, key: str, host: str, port: int) -> None:
        """Implements Links.dial."""
        self._dialer.dial(key, host, port)

    def dial_within(self, key: str, host: str, port: int, timeout_ms: int) -> None:
        """Implements Links.dial_within."""
        self._dialer.dial(key, host, port, "", timeout_ms)

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        """Implements Links.dial_secure."""
        self._dialer.dial(key, host, port, connector, timeout_ms)

    def secure(self, connectors: dict[str, ClientTls]) -> None:
        """Sets the TLS settings of the node's connectors, by name."""
        self._dialer.connectors = connectors

    def secure_again(self, connectors: dict[str, ClientTls]) -> None:
        """Changes the TLS settings after a reload. Those of a removed connector stay: a link may use it until the
        restart."""
        self._dialer.connectors = {**self._dialer.connectors, **connectors}

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        """Implements Links.join."""
        self._groups().join(group, address, port, interface, local_port)

    def join_to_send(
        self, group: str, address: str, port: int, interface: str, local_port: int
    ) -> None:
        """Implements Links.join_to_send."""
        self._groups().join(group, address, port, interface, local_port, False)

    def multicast(self, group: str, data: bytes) -> None:
        """Implements Links.multicast."""
        self._groups().send(group, data)

    def resolve(self, key: str, name: str, port: int) -> None:
        """Implements Links.resolve."""
        self._resolver.resolve(key, name, port)

    def listen(self, key: str, host: str, port: int, port_range: int) -> None:
        """Implements Links.listen."""
        self._listeners.listen(key, host, port, port_range)

    def listening(self, key: str, towards: str) -> str:
        """Implements Links.listening."""
        return self._listeners.listening(key, towards)

    def unlisten(self, key: str) -> None:
        """Implements Links.unlisten."""
        self._listeners.unlisten(key)

    def post(self, key: str, folder: str, name: str, data: bytes) -> None:
        """Implements Links.post."""
        self._folders.post(key, folder, name, data)

    def unpost(self, folder: str, name: str) -> None:
        """Implements Links.unpost."""
        self._folders.unpost(folder, name)

    def leave(self, group: str) -> None:
        """Implements Links.leave."""
        if self._multicast is not None:
            self._multicast.leave(group)

    def close(self) -> None:
        """Cancels every attempt and leaves every group, without inputs to the node."""
        self._dialer.cancel_all()
        self._resolver.cancel_all()
        self._listeners.close()
        self._folders.close()
        if self._multicast is not None:
            self._multicast.close()

    def _groups(self) -> Multicast:
        if self._multicast is None:
            # Most nodes have no UDP group.
            from atalanta.runtime.net.multicast import Multicast

            connections = self._connections
            self._multicast = Multicast(
                connections.loop, connections.driver, connections.limits, self._trace
            )
        return self._multicast
