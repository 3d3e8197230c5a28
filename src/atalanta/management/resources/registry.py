"""The resources that the other parts of the node register for management (ManagementServiceImpl.register*)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from atalanta.management.resources.acceptor import AcceptorSwitch

if TYPE_CHECKING:
    from atalanta.management.controls.control import Control
    from atalanta.management.request.call import Attributes, Operations
    from atalanta.management.resources.acceptor import ListedAcceptor

Slices = Callable[[], Iterator[str]]


class ResourceRegistry:
    """The registered resources of a node. The kernel and management depend on no cluster.

    `controls` are by the first segment of the resources' names. `attributes` and `operations` belong to the resource
    `broker`, where they replace those of a node without a cluster.
    """

    def __init__(self) -> None:
        self.acceptors: dict[str, ListedAcceptor] = {}
        self.switch = AcceptorSwitch()  # of the acceptors
        self.connectors: dict[str, Mapping[str, object]] = {}  # parameters as the node announces them
        self.controls: dict[str, Control] = {}
        self.attributes: Attributes = {}
        self.operations: Operations = {}
        self.metrics: list[Slices] = []

    def register_acceptor(self, acceptor: ListedAcceptor) -> None:
        """Adds an acceptor."""
        self.acceptors[acceptor.name] = acceptor

    def register_connector(self, name: str, parameters: Mapping[str, object]) -> None:
        """Adds a connector with the parameters that the node announces."""
        self.connectors[name] = parameters

    def replace_connectors(self, connectors: Mapping[str, Mapping[str, object]]) -> None:
        """Replaces the connectors by those of a reload."""
        self.connectors.clear()
        self.connectors.update(connectors)

    def register_control(self, kind: str, control: Control) -> None:
        """Adds the control of the resources `kind.NAME`."""
        self.controls[kind] = control

    def extend_broker(self, attributes: Attributes, operations: Operations) -> None:
        """Adds attributes and operations of the resource `broker`."""
        self.attributes.update(attributes)
        self.operations.update(operations)

    def register_metrics(self, slices: Slices) -> None:
        """Adds metrics in Prometheus' text format, in bounded slices."""
        self.metrics.append(slices)
