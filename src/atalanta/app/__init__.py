"""The composition of a node: configuration, ports, node and shell from a broker.xml. It imports all other parts."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.app.connectors import announced_connectors, transport
    from atalanta.app.group.replica_run import candidates
    from atalanta.app.node_config import node_config as node_config_of
else:
    __getattr__ = face(__name__)

__all__ = ["announced_connectors", "candidates", "node_config_of", "transport"]
