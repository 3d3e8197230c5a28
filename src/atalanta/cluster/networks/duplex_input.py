"""The input of a duplex connection from the other broker: its messages, and its question for the consumers here.

It is a client of this broker, with the rights of the connector's userName.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import BrokerError
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.responses import ExceptionResponse
from atalanta.wire.openwire.server.bridge.local_receiver import LocalReceiver
from atalanta.wire.openwire.server.bridge.local_side import LocalSide
from atalanta.wire.openwire.server.sessions.errors import bridge_throwable

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.server.bridge.node_bridges import NodeBridges
    from atalanta.wire.server import WireServer


class DuplexOwner:
    """The connection to the other broker, as its session here uses it."""

    def write(self, command: Command) -> None:
        """Sends a command to the other broker. EncodeError: nothing was sent."""
        raise NotImplementedError

    def answer(self, command: Command) -> None:
        """Sends an answer to the other broker; without it the connection ends."""
        raise NotImplementedError

    def fail(self, why: str) -> None:
        """Ends the connection."""
        raise NotImplementedError

    def tell(self, event: str, why: str) -> None:
        """Reports an event to the operator."""
        raise NotImplementedError

    def pause(self) -> None:
        """Stops reading."""
        raise NotImplementedError

    def resume_later(self) -> None:
        """Lets the reading go on behind this batch of inputs."""
        raise NotImplementedError


class DuplexInput(LocalReceiver):
    """The session of the other broker's bridge at this one. `holds`: an address that it sends to is full."""

    def __init__(
        self, link: DuplexOwner, host: WireServer, shared: NodeBridges, now: int, client_id: str, identity: Identity
    ) -> None:
        self.link = link
        self.holds: bool = False
        self.local = LocalSide(host, shared, now, client_id, identity, self)
        self.received: int = 0

    def give(self, now: int, command: Command) -> bool:
        """Processes a command of the other broker; a refusal is answered. False: it is to be given again later."""
        try:
            return self.local.give(now, command)
        except BrokerError as error:
            if command.response_required:
                self.link.answer(ExceptionResponse(bridge_throwable(error), command.command_id))
            else:
                self.link.tell("network_message_refused", error.text)
            return True

    def count(self) -> None:
        """Counts a message of the other broker."""
        self.received += 1

    def take(self, command: Command) -> None:
        """Sends an answer, or an advisory: the bridge of a broker gets it without its MessageDispatch."""
        if isinstance(command, MessageDispatch):
            if command.message is not None:
                self.link.write(command.message)
        else:
            self.link.write(command)

    def local_ended(self, why: str) -> None:
        self.link.fail(why)

    def hold(self) -> None:
        self.holds = True
        self.link.pause()

    def release(self) -> None:
        self.holds = False
        self.link.resume_later()
