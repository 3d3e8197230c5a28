"""An acceptor as management shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# Artemis' name of the only kind of acceptor.
FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory"


class ListedAcceptor:
    """An acceptor with the parameters of its URL, host and port included."""

    def __init__(self, name: str, parameters: Mapping[str, object]) -> None:
        self.name = name
        self.parameters = dict(parameters)

    def described(self) -> dict[str, object]:
        """Returns the fields of TransportConfiguration.toJson."""
        return {"name": self.name, "factoryClassName": FACTORY, "params": self.parameters}
