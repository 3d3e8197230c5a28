"""A bridge as a client of the broker that it runs in: an OpenWire session without a socket.

Classic's bridges have a connection to their own broker, too (`vm:`). So wildcards, composite names, selectors, durable
subscriptions, temporary destinations and large messages work as for any client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.wire.openwire.commands.identifiers import ConnectionId, SessionId
from atalanta.wire.openwire.conversion.sent_message import Sender
from atalanta.wire.openwire.options import FRAME_BYTES_MAX, WireFormatOptions
from atalanta.wire.openwire.server.bridge.neighbour import may_bridge
from atalanta.wire.openwire.server.requests.commands import answer, remove_all
from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
from atalanta.wire.openwire.server.sessions.session import OpenWireSession
from atalanta.wire.openwire.server.sessions.subscription import NOTHING_DELIVERED

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.server.bridge.local_receiver import LocalReceiver
    from atalanta.wire.openwire.server.bridge.node_bridges import NodeBridges
    from atalanta.wire.server import WireServer

SESSION: Final = 1


@mypyc_attr(allow_interpreted_subclasses=True)
class LocalSide(OpenWireOutput):
    """The session. `number` is one that no connection of the shell has."""

    def __init__(
        self,
        host: WireServer,
        shared: NodeBridges,
        now: int,
        client_id: str,
        identity: Identity,
        receiver: LocalReceiver,
    ) -> None:
        broker = host.broker
        number = -1 - broker.clients.take_number()
        super().__init__(host, number, "", now, None, WireFormatOptions())
        self.receiver = receiver
        self.authenticated = True
        self.client.protocol = "OPENWIRE"
        self.client.implementation = "OpenWireConnection"
        self.client.bridge = True
        self.client.client_id = client_id
        self.id = f"ID:{broker.node_id}-bridge{number}:1"
        sender = Sender(client_id, FRAME_BYTES_MAX, host.bridge_scheduler, broker.trace)
        sender.become_bridge(identity.user, may_bridge(broker.session_services.permissions, identity))
        self.session = OpenWireSession(
            self, ConnectionId(self.id), sender, shared.advisories, shared.pulls,
            shared.wildcard_queues, shared.correlations, shared.inflations,
        )  # fmt: skip
        kernel = self.new_session(self.session, identity)
        self.session.attach(kernel)
        self.session.add_session(SessionId(self.id, SESSION))
        kernel.start()

    def give(self, now: int, command: Command) -> bool:
        """Gives a command to the broker. False: it waits, and is to be given again after `release`.

        BrokerError: it is refused.
        """
        return answer(self.session, now, command)

    # -- output of the session ------------------------------------------------------------------
    def send(self, command: Command) -> None:
        if not self.gone:
            self.receiver.take(command)

    def left_out(self, queue: str, error: BrokerError, news: bool) -> None:
        if not self.receiver.left_out(queue, error):
            super().left_out(queue, error, news)

    def temporary_taken(self, now: int, destination: ActiveMQDestination) -> None:
        self.session.temporary.pop(destination.physical_name or "", None)
        self.receiver.temporary_taken(now, destination)

    def block_deliveries(self, blocked: bool) -> None:
        self.session.kernel.set_blocked(blocked)

    def end(self, why: str) -> None:
        if not self.end_reason and not self.gone:
            self.end_reason = why
            self.show_blocked()
            self.receiver.local_ended(why)

    def sets_aside(self) -> bool:
        return False  # the bridge gives a message again

    def hold_input(self) -> None:
        self.holds += 1
        if self.holds == 1:
            self.receiver.hold()

    def release_input(self) -> None:
        self.holds -= 1
        if self.holds == 0:
            self.receiver.release()

    def fill(self) -> None:
        """Stops the deliveries of this batch of inputs: enough is on its way."""
        if not self.full:
            self.full = True
            self.show_blocked()

    def empty(self) -> bool:
        """Lets the deliveries go on after `fill`; returns True if they were stopped."""
        stopped = self.full
        if stopped:
            self.full = False
            self.show_blocked()
        return stopped

    def closed(self, now: int, why: str) -> None:
        """Ends the session. What the other broker has not confirmed returns to its queues as if it had not been sent:
        an attempt of a bridge is no delivery."""
        if self.gone:
            return
        self.gone = True
        session = self.session
        remove_all(session, now, NOTHING_DELIVERED)
        session.leave(now)
        session.kernel.close(now, True)
        self.client.close(now, self.host.broker.session_services, True)
