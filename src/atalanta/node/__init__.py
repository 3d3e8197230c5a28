"""A node: its configuration, its parts and the inputs that a shell calls."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.node.clock import Clock
    from atalanta.node.config import NodeConfig, Ports
    from atalanta.node.node import Node
else:
    __getattr__ = face(__name__)

__all__ = ["Clock", "Node", "NodeConfig", "Ports"]
