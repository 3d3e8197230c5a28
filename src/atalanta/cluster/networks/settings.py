"""The networks of one node. A module of its own, because a node without networks needs no more, and starts faster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from atalanta.kernel.option import OptionGroup

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig


@dataclass(eq=False, repr=False)
class NetworkSettings(OptionGroup):
    """The network connectors. `discovery_uris`: acceptor -> the multicast group that announces it.

    `tls`: the parameters of connections with TLS, as connectors of the broker have them.
    """

    connectors: list[NetworkConnectorConfig] = field(default_factory=list)
    discovery_uris: dict[str, str] = field(default_factory=dict)
    tls: dict[str, str] = field(default_factory=dict)

    def heard(self) -> list[NetworkConnectorConfig]:
        """Returns the connectors that hear of brokers by multicast."""
        return [each for each in self.connectors if each.hears()]

    def multicast_uris(self) -> list[str]:
        """Returns the uris of the connectors that hear of brokers by multicast."""
        return [group_uri(each.uri) for each in self.heard()]


def group_uri(text: str) -> str:
    """Returns the uri of a multicast group, which may be written without the slashes."""
    return f"multicast://{text.strip().removeprefix('multicast:').removeprefix('//')}"
