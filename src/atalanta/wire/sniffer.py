"""The first bytes of a connection: which protocol its peer speaks, and CORE that comes in HTTP's clothes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.connection import ProtocolError
from atalanta.wire.detect import CORE, HTTP, NEED_MORE, detect
from atalanta.wire.http_upgrade import UpgradeAnswer

if TYPE_CHECKING:
    from atalanta.wire.core.server.connection import CoreConnection


class Greeting:
    """`first_bytes` came before the protocol is known; `upgrade` reads a request for CORE over HTTP."""

    def __init__(self) -> None:
        self.first_bytes: bytes = b""
        self.upgrade: UpgradeAnswer | None = None

    def take(self, connection: CoreConnection, data: bytes) -> bytes:
        """All that came so far once the protocol is known, else nothing. ProtocolError for another protocol."""
        if self.upgrade is not None:
            data = self._go_on(connection, self.upgrade, data)
        data = self.first_bytes + data
        protocol = detect(data[:16])
        acceptor = connection.acceptor
        if protocol == HTTP and acceptor is not None and acceptor.http_upgrade_enabled:
            self.upgrade = UpgradeAnswer()
            data = self._go_on(connection, self.upgrade, data)
            protocol = detect(data[:16])
        if protocol == NEED_MORE:
            self.first_bytes = data
            return b""
        if protocol != CORE:
            raise ProtocolError(
                f"the peer speaks {protocol}, which is not supported yet: only CORE is"
            )
        connection.greeted = True
        told = not connection.untold and connection.host.goodbye is not None
        if connection.arriving and told:
            connection.say_goodbye()
        self.first_bytes = b""
        return data

    def _go_on(self, connection: CoreConnection, upgrade: UpgradeAnswer, data: bytes) -> bytes:
        """An HTTP request that asks to go on as CORE (WildFly's http-connector): what comes behind it."""
        upgrade.feed(data)
        self.first_bytes = b""
        if not upgrade.done:
            return b""
        self.upgrade = None
        connection.send_bytes(upgrade.answer)
        rest: bytes = upgrade.rest
        return rest
