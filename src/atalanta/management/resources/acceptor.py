"""An acceptor as management shows it, and what opens and closes acceptors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

# Artemis' name of the only kind of acceptor.
FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"


class ListedAcceptor:
    """An acceptor with the parameters of its URL, host and port included. `started`: it is open."""

    def __init__(self, name: str, parameters: Mapping[str, object], started: bool = True) -> None:
        self.name = name
        self.parameters = dict(parameters)
        self.started = started

    def move(self, host: str, port: int) -> None:
        """Changes the address."""
        self.parameters.update(host=host, port=port)

    def described(self) -> dict[str, object]:
        """Returns the fields of TransportConfiguration.toJson."""
        return {"name": self.name, "factoryClassName": FACTORY, "params": self.parameters}


class AcceptorSwitch:
    """The switch that opens and closes the acceptors of a node. This base class cannot."""

    def start(self, name: str) -> None:
        """Opens an acceptor. BrokerError if that is not possible."""
        raise BrokerError(ILLEGAL_STATE, "this node opens no acceptors")

    def stop(self, name: str) -> None:
        """Closes an acceptor, and the connections that came in there. BrokerError if it has to stay open."""
        raise BrokerError(ILLEGAL_STATE, "this node closes no acceptors")
