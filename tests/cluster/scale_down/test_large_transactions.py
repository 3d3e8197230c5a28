"""Prepared transactions with large messages go with a leaving node: both what they send and what they took."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE
from atalanta.cluster.scale_down.stage import Stage
from atalanta.cluster.scale_down.transactions import ENDING, TransactionStage
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    SendContinuation,
    SendLargeMessage,
)
from atalanta.wire.core.packets.transaction import XaCommit, XaRollback
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.links.large_client import BODY, PIECE
from tests.cluster.links.large_client import client as large_client
from tests.cluster.scale_down.scale_down_rig import begin
from tests.cluster.scale_down.xa_rig import XID, XaClient, end_branch, in_doubt_at

OLD = BODY[:700_000]
NEW = BODY[100:1_300_100]


class LargeXaClient(XaClient):
    """Takes and sends large messages in its branch."""

    header: ReceiveLargeMessage | None = None

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveLargeMessage):
            self.header = packet
        elif isinstance(packet, ReceiveContinuation):
            assert self.header is not None
            if not packet.continues:
                self.bodies.append(b"taken")
                self.say(IndividualAcknowledge(7, self.header.message.id, False))
        else:
            super().on_packet(packet)

    def send_large_in_branch(self, address: str, body: bytes) -> None:
        message = Message.create(address, b"", 4, True, 1, 4)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        self.say(SendLargeMessage(message))
        for start in range(0, len(body), PIECE):
            last = start + PIECE >= len(body)
            piece = body[start : start + PIECE]
            self.say(SendContinuation(piece, continues=not last, body_size=len(body), sender_id=1))


def in_doubt(rig: Rig) -> tuple[Host, Host]:
    """The first has a prepared branch: it sent NEW and `small`, and took OLD."""
    first, second = rig.cluster(2, mode="OFF")
    large_client(rig, first).publish_large("orders", OLD)
    rig.until(lambda: count(first, "orders") == 1)
    client = rig.connected(first, LargeXaClient, "xa")
    client.begin(XID)
    client.consume_in_branch("orders")
    client.say(FlowToken(7, len(OLD) + 1_000))
    rig.until(lambda: client.bodies == [b"taken"])
    client.send_large_in_branch("orders", NEW)
    client.send_in_branch("orders", b"small")
    client.prepare(rig, XID)
    return first, second


@pytest.mark.parametrize("restart", ["none", "leaving", "target"])
@pytest.mark.parametrize(("commit", "expected"), [(True, [NEW, b"small"]), (False, [OLD])])
def test_large_messages_of_a_prepared_transaction_end_at_the_target(
    rig: Rig, commit: bool, expected: list[bytes], restart: str
) -> None:
    first, second = in_doubt(rig)
    if restart == "leaving":
        first.crash()
        first.start()
        rig.formed()
    part = begin(rig, first)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    rig.run(1)
    assert not first.large.contents, "a file stayed where the messages were"
    first.stop()
    if restart == "target":
        second.crash()
        second.start()
    assert in_doubt_at(second) == 1
    end_branch(rig, second, XaCommit(XID, False) if commit else XaRollback(XID))
    reader = large_client(rig, second, "orders")
    rig.until(lambda: len(reader.bodies) >= len(expected))
    rig.run(1)
    assert reader.bodies == expected
    assert count(second, "orders") == 0
    assert not second.large.contents, "a file stayed at the target"


def test_a_link_lost_before_the_target_has_prepared_it_loses_nothing(rig: Rig) -> None:
    """Messages that were sent by then are sent once more: their files must still be there."""
    first, second = in_doubt(rig)
    part = begin(rig, first)
    while part.mover is None or not ending(part.mover.stages[0]):
        rig.run(0.00005)
    rig.network.block(second.name, first.name)
    rig.run(2)
    assert part.mover is not None and ending(part.mover.stages[0])
    for connection in list(node_of(first).connections):
        rig.network.cut_connection(connection)
    rig.network.heal()
    rig.until(part.over, 60)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    first.stop()
    end_branch(rig, second, XaCommit(XID, False))
    reader = large_client(rig, second, "orders")
    rig.until(lambda: len(reader.bodies) >= 2)
    assert reader.bodies == [NEW, b"small"]


def ending(stage: Stage) -> bool:
    return isinstance(stage, TransactionStage) and stage.state == ENDING
