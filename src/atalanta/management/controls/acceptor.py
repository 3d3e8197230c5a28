"""Acceptors and connectors: resource `acceptor.NAME` (AcceptorControl). Acceptors open and close with the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.management.request.call import Attribute, Call, Operations
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from collections.abc import Mapping

# Artemis' name of the only kind of acceptor.
FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"
CONNECTOR_FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"


class ListedAcceptor:
    """An acceptor with the parameters of its URL, host and port included."""

    def __init__(self, name: str, parameters: Mapping[str, object]) -> None:
        self.name = name
        self.parameters = dict(parameters)

    def described(self) -> dict[str, object]:
        """Returns the fields of TransportConfiguration.toJson."""
        return {"name": self.name, "factoryClassName": FACTORY, "params": self.parameters}


def acceptor_of(call: Call) -> ListedAcceptor:
    return call.management.acceptors[call.resource[len("acceptor.") :]]


ACCEPTOR_ATTRIBUTES: Final[dict[str, Attribute]] = {
    "Name": lambda call: acceptor_of(call).name,
    "FactoryClassName": lambda call: FACTORY,
    "Parameters": lambda call: acceptor_of(call).parameters,
    "ParametersAsJSON": lambda call: encode_json(acceptor_of(call).parameters),
    "Started": lambda call: not call.broker.stopping,
}
ACCEPTOR_OPERATIONS: Final[Operations] = {}


def all_as_json(call: Call) -> object:
    return encode_json([one.described() for one in call.management.acceptors.values()])


def connectors_as_json(call: Call) -> object:
    """Returns the connectors with the parameters that the node announces; key store parameters are left out."""
    found: list[dict[str, object]] = []
    for name, parameters in call.management.connectors.items():
        found.append({"name": name, "factoryClassName": CONNECTOR_FACTORY, "params": parameters})
    return encode_json(found)
