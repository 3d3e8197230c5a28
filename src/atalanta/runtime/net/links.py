"""The Links port: dialing and UDP groups in one object, as the node sees them."""

from __future__ import annotations

from atalanta.kernel.ports import Links
from atalanta.runtime.disk.shared_folder import SharedFolders
from atalanta.runtime.net.dialer import Dialer
from atalanta.runtime.net.dynamic_listeners import Doors
from atalanta.runtime.net.multicast import Multicast
from atalanta.runtime.net.resolver import Resolver
from atalanta.runtime.net.tcp import Connections
from atalanta.runtime.trace import LogTrace
from atalanta.tls.context import ClientTls


class LoopLinks(Links):
    """Failures to dial are inputs of the node; failures of a group are events, and tried again."""

    def __init__(self, connections: Connections, trace: LogTrace) -> None:
        self._dialer = Dialer(connections)
        self._resolver = Resolver(connections.loop, connections.driver)
        self._doors = Doors(connections, trace)
        self._folders = SharedFolders(connections.loop, connections.driver)
        self._multicast = Multicast(connections.loop, connections.driver, connections.limits, trace)

    def dial(self, key: str, host: str, port: int) -> None:
        """Links.dial"""
        self._dialer.dial(key, host, port)

    def dial_within(self, key: str, host: str, port: int, timeout_ms: int) -> None:
        """Links.dial_within"""
        self._dialer.dial(key, host, port, "", timeout_ms)

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        """Links.dial_secure"""
        self._dialer.dial(key, host, port, connector, timeout_ms)

    def secure(self, connectors: dict[str, ClientTls]) -> None:
        """The node's connectors that use TLS, by name."""
        self._dialer.connectors = connectors

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        """Links.join"""
        self._multicast.join(group, address, port, interface, local_port)

    def join_to_send(
        self, group: str, address: str, port: int, interface: str, local_port: int
    ) -> None:
        """Links.join_to_send"""
        self._multicast.join(group, address, port, interface, local_port, False)

    def multicast(self, group: str, data: bytes) -> None:
        """Links.multicast"""
        self._multicast.send(group, data)

    def resolve(self, key: str, name: str, port: int) -> None:
        """Links.resolve"""
        self._resolver.resolve(key, name, port)

    def listen(self, key: str, host: str, port: int, port_range: int) -> None:
        """Links.listen"""
        self._doors.listen(key, host, port, port_range)

    def unlisten(self, key: str) -> None:
        """Links.unlisten"""
        self._doors.unlisten(key)

    def post(self, key: str, folder: str, name: str, data: bytes) -> None:
        """Links.post"""
        self._folders.post(key, folder, name, data)

    def unpost(self, folder: str, name: str) -> None:
        """Links.unpost"""
        self._folders.unpost(folder, name)

    def leave(self, group: str) -> None:
        """Links.leave"""
        self._multicast.leave(group)

    def close(self) -> None:
        """Gives up every attempt and leaves every group, without a word to the node."""
        self._dialer.cancel_all()
        self._resolver.cancel_all()
        self._doors.close()
        self._folders.close()
        self._multicast.close()
