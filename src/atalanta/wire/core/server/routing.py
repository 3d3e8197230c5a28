"""What a connection asks the node's connection routers (cluster/routers)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.core.packets.session import CreateSession
    from atalanta.wire.core.server.connection import CoreConnection

ROUTING_VERSION: Final = 131  # Artemis 2.18


@mypyc_attr(allow_interpreted_subclasses=True)
class Routing:
    def route(
        self, now: int, connection: CoreConnection, packet: CreateSession, identity: Identity
    ) -> bool:
        """True: the session may begin here. Else `login.routed` follows, now or later."""
        raise NotImplementedError
