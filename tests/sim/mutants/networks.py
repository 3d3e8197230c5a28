"""Networks of brokers."""

from __future__ import annotations

from atalanta.message.message import Message
from atalanta.wire.openwire.broker_path import BROKER_PATH
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion import sent_message
from atalanta.wire.openwire.conversion.destination import BrokerDestination
from atalanta.wire.openwire.conversion.sent_message import Sender
from atalanta.wire.openwire.server.bridge.demand_bridge import DemandBridge
from atalanta.wire.openwire.server.requests import sends
from atalanta.wire.openwire.server.sessions.session import OpenWireSession
from tests.sim.mutants.patching import Patch

NETWORKED = True


def bridge_acknowledges_before_the_answer(patch: Patch) -> None:
    forward = DemandBridge._forward

    def hasty(self: DemandBridge, dispatch: MessageDispatch) -> None:
        forward(self, dispatch)
        for sent in self.unanswered.values():
            sent.demand.count_answered()
            self.settled.append(sent)
        self.unanswered.clear()

    patch.setattr(DemandBridge, "_forward", hasty)


def repeats_are_not_dropped(patch: Patch) -> None:
    """The audit is off."""

    def bare(
        source: OpenWireMessage,
        target: BrokerDestination,
        sender: Sender,
        now_ms: int,
        original: ActiveMQDestination | None,
    ) -> Message:
        made = sent_message.sent_message(source, target, sender, now_ms, original)
        made.sent_id = None
        return made

    patch.setattr(sends, "sent_message", bare)


def broker_path_is_not_kept(patch: Patch) -> None:
    put = sent_message.sent_message

    def forgetful(
        source: OpenWireMessage,
        target: BrokerDestination,
        sender: Sender,
        now_ms: int,
        original: ActiveMQDestination | None,
    ) -> Message:
        made = put(source, target, sender, now_ms, original)
        if BROKER_PATH in made.properties:
            made.properties.remove(BROKER_PATH)
            made.properties_changed()
        return made

    patch.setattr(sends, "sent_message", forgetful)


def acknowledgement_answered_before_it_is_durable(patch: Patch) -> None:
    patch.setattr(OpenWireSession, "done_when_durable", OpenWireSession.done)
