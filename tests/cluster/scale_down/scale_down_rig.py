"""Steps of a node that leaves, for several test files."""

from __future__ import annotations

from typing import Any

import pytest

from atalanta.cluster.config import ScaleDownConfig
from atalanta.cluster.scale_down.link import ScaleDownLink
from atalanta.cluster.scale_down.scale_down import ScaleDown
from atalanta.kernel.endpoint import SenderEndpoint
from atalanta.kernel.errors import ADDRESS_FULL, SECURITY, BrokerError
from atalanta.kernel.memory.full_address import FullAddresses
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.sessions.session import Session
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import Client, Rig, count, node_of


def departure(host: Host) -> ScaleDown:
    found = node_of(host).scale_down
    assert found is not None
    return found


def begin(rig: Rig, host: Host) -> ScaleDown:
    part = departure(host)
    node_of(host).leave(rig.world.now)
    host.flush_later()
    return part


def leave(rig: Rig, host: Host, seconds: float = 60) -> ScaleDown:
    """The node leaves, and ends when it has."""
    part = begin(rig, host)
    rig.until(part.over, seconds)
    rig.until(part.mark.durable)  # the simulated stop does not write what the journal still holds
    host.stop()
    return part


def moving(rig: Rig, part: ScaleDown, moved: int) -> None:
    """Until it has moved so many."""
    while part.moved < moved:
        rig.run(0.0002)


def underway(rig: Rig, host: Host, moved: int) -> ScaleDown:
    """The node leaves, and has moved so many."""
    part = begin(rig, host)
    moving(rig, part, moved)
    return part


def to(host: Host, name: str, commit_interval: int = -1) -> Host:
    """Lets the node leave to the node of that name."""
    departure(host).choice.config = ScaleDownConfig(
        connectors=[name], commit_interval=commit_interval
    )
    return host


# -- nodes with messages --------------------------------------------------------------------------
def stocked(bodies: list[bytes], commit_interval: int = -1, **options: Any) -> tuple[Rig, Host, Host]:
    """Two nodes: the target of the other, which has these messages for `orders`."""
    rig = Rig()
    target, leaving = rig.cluster(2, mode="OFF", **options)
    rig.filled(leaving, bodies)
    departure(leaving).choice.config.commit_interval = commit_interval
    return rig, target, leaving


def subscribed(rig: Rig, host: Host, name: str) -> None:
    """A durable subscription of its own, which the others learn of."""
    spec = QueueSpec(name, "prices", MULTICAST)
    node_of(host).broker.queue_registry.create(rig.world.now, spec)
    rig.run(0.5)


def pause(sender: Host, leaving: Host) -> None:
    """The sender's bridge to that node takes nothing up."""
    name = f"$.artemis.internal.sf.test.{node_of(leaving).broker.node_id}"
    node_of(sender).broker.queues[name].paused = True


def unanswered_copies(
    rig: Rig, first: Host, middle: Host, there: Host, bodies: list[bytes], had: bool = True
) -> ScaleDown:
    """`first` leaves to `middle` with copies for a subscription `mine` at `there`, and hears no answer to them.

    `middle` `had` them all the same, or not.
    """
    subscribed(rig, there, "mine")
    pause(first, there)
    rig.stored(first, "prices", bodies)
    part = begin(rig, to(first, middle.name))
    rig.network.latency_ns = (5_000_000, 5_100_000)
    rig.until(lambda: part.mover is not None)
    while had and not at_forwards(part):
        assert not part.over()
        rig.run(0.001)
    rig.network.block(middle.name, first.name)
    rig.until(lambda: count(there, "mine") == len(bodies) or not had)
    return part


def at_forwards(part: ScaleDown) -> bool:
    """Returns whether messages that waited for other members are under way."""
    if part.mover is None:
        return False
    under_way = part.mover.link.sender.unanswered.values()
    return any(each.references[:1] and each.references[0].queue.internal for _, each in under_way)


# -- targets --------------------------------------------------------------------------------------
class NeverOurs:
    """In the place of ScaleDownLink.ours."""

    def __get__(self, link: ScaleDownLink, kind: type[ScaleDownLink]) -> bool:
        return False

    def __set__(self, link: ScaleDownLink, value: bool) -> None:
        return None


class Refusals:
    """What the target refuses of the leaving node's messages, as a real Artemis does: those beyond the `room` of an
    address, as with FAIL, and some by their `bodies`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.room: dict[str, int] = {}
        self.bodies: list[bytes] = []
        self.seen: list[bytes] = []  # the refused bodies, as often as they came
        send = Session.send

        def refuse(session: Session, now: int, message: Message, token: int) -> None:
            error = self.error(message) if session.identity.cluster else None
            if error is None:
                send(session, now, message, token)
                return
            self.seen.append(bytes(message.body))
            if not session.auto_commit_sends:
                session.transaction.rollback_only = error
            raise error

        grant = FullAddresses.request_credits

        def give(
            full: FullAddresses, endpoint: SenderEndpoint, peer: bool, address: str, amount: int, since: int
        ) -> None:
            if peer and self.room.get(address) == 0:
                endpoint.refuse_credits(address, amount)
            else:
                grant(full, endpoint, peer, address, amount, since)

        patch.setattr(Session, "send", refuse)
        patch.setattr(FullAddresses, "request_credits", give)

    def error(self, message: Message) -> BrokerError | None:
        """Returns the target's error, or counts the message."""
        if bytes(message.body) in self.bodies:
            return BrokerError(SECURITY, "not this one")
        room = self.room.get(message.address)
        if room == 0:
            return BrokerError(ADDRESS_FULL, f"address {message.address} is full")
        if room is not None:
            self.room[message.address] = room - 1
        return None


# -- messages -------------------------------------------------------------------------------------
def bodies(rig: Rig, host: Host, queue: str) -> list[bytes]:
    """Returns what a consumer gets there."""
    client = rig.consuming(host, queue)
    rig.run(1)
    client.close()
    return client.bodies


def held(host: Host, queue: str) -> list[bytes]:
    """Returns what lies there, in order."""
    return [bytes(each.message.body) for each in node_of(host).broker.queues[queue].live()]


def send(client: Client, address: str, body: bytes, durable: bool = True, **more: object) -> None:
    """A message to an anycast address, durable or not."""
    client.number += 1
    message = Message.create(address, body, 4, durable, client.world.now // 1_000_000, 4)
    message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
    for name, value in more.items():
        message.properties.put(name, value)  # type: ignore[arg-type]
    message.properties_changed()
    client.send(
        SendMessage(message, requires_response=True, correlation=client.number, sender_id=1)
    )
