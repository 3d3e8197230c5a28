"""Message groups with grouping handlers: every node has senders and consumers, and a group is never split.

Node n0 decides (LOCAL), the others ask it. The groups' address has one anycast queue on every node, or two
subscriptions with decisions of their own.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.grouping import LOCAL, REMOTE, GroupingHandlerConfig
from atalanta.kernel.queue import ANYCAST, MULTICAST
from atalanta.message import Byte, Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.groups import GroupLedger
from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.clients.jobs import ANSWERED, SimConsumer
from atalanta.sim.clients.queue_client import key_of
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import address_of, queue
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import ClientError, Delivery

WORK: Final = "work"
AUDIT: Final = "audit"
SHARE: Final = 0.35
GROUPS_MAX: Final = 6
MESSAGES_PER_SECOND: Final = (1, 3)  # of one sender


class GroupsLoad(SenderLoad):
    """The load: the handlers' settings and their clients."""

    roams = True

    def __init__(self, world: World, network: Network, ledger: Ledger) -> None:
        super().__init__(world, network, ledger)
        draw = world.random("groups")
        self.random = draw
        self.queues = [WORK, AUDIT] if draw.random() < 0.25 else [WORK]
        self.count = draw.randint(1, GROUPS_MAX)
        self.timeout_ms = draw.choice((400, 1_500, 5_000))
        self.group_timeout_ms = draw.choice((-1, -1, -1, 2_000))
        self.per_second = draw.randint(*MESSAGES_PER_SECOND)
        self.consumers_per_node = draw.choice((1, 1, 2))
        self.checks = GroupLedger(world, network, ledger, self.group_timeout_ms * 1_000_000 // 2)
        self.closing = False

    def kind(self) -> int:
        return ANYCAST if len(self.queues) == 1 else MULTICAST

    def configure(self, index: int, config: NodeConfig) -> None:
        queues = [queue(name, WORK, self.kind()) for name in self.queues]
        config.broker.addresses.append(address_of(WORK, *queues))
        # A redelivery after the next message of its group would break its order.
        config.settings.add(WORK, {"redelivery_delay_ms": 0})
        handler = GroupingHandlerConfig("groups", LOCAL if index == 0 else REMOTE, WORK)
        handler.timeout_ms = self.timeout_ms
        handler.reaper_period_ms = 300
        handler.group_timeout_ms = self.group_timeout_ms
        if index > 0 and self.group_timeout_ms > 0:
            handler.group_timeout_ms //= 2
        config.grouping = handler

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        self.checks.hosts = hosts
        self.checks.departed = self.departed
        for index, host in enumerate(hosts):
            total = max(4, int(seconds * self.per_second))
            self.senders.append(
                GroupSender(self.world, self.network, f"gp{index}", host.name, self, total)
            )
            for name in self.queues:
                for number in range(self.consumers_per_node):
                    self.takers.append(
                        GroupConsumer(
                            self.world,
                            self.network,
                            f"gc{index}-{name}{number}",
                            host.name,
                            self.checks,
                            name,
                        )
                    )

    def group(self) -> str:
        return f"g{self.random.randrange(self.count)}"

    # -- end ------------------------------------------------------------------------------------
    def resume(self) -> bool:
        """Sends one more message to every group from every node: after the faults they must meet at one node."""
        if self.closing:
            return False
        self.closing = True
        self.checks.closing = True
        for sender in self.senders:
            if isinstance(sender, GroupSender):
                sender.send_to_all([f"g{number}" for number in range(self.count)])
        return True

    def check(self) -> None:
        self.checks.check(self.queues)


class GroupSender(Sender):
    """A sender to several groups, with up to `window` unconfirmed messages. It does not repeat a refused message."""

    def __init__(
        self, world: World, network: Network, name: str, target: str, groups: GroupsLoad, total: int
    ) -> None:
        super().__init__(
            world, network, name, target, groups.ledger, WORK, total, groups.per_second
        )
        self.groups = groups
        self.checks = groups.checks
        self.group_of: dict[int, str] = {}  # by the number of the message
        self.random = world.random(f"groups/{name}")
        self.window = self.random.choice((1, 4))
        self.pause_ns_max = 2 * SECOND // groups.per_second
        self.producer_window = -1

    def on_session(self) -> None:
        self.on_resumed()
        super().on_session()

    def on_resumed(self) -> None:
        """Records that open messages are sent again."""
        for number in self.open:
            if self.window > 1:
                self.checks.unordered[f"{self.name}/{number}"] = True

    def begin(self, key: str, number: int) -> None:
        if number not in self.group_of:
            self.group_of[number] = self.groups.group()
        self.checks.sending(key, self.group_of[number])

    def send_to_all(self, names: list[str]) -> None:
        """Sends to all groups at once, after the faults have ended."""
        for group in names:
            self.group_of[self.next] = group
            number = self.take_number()
            if self.up and self.session.opened.done:
                self._transmit(number)
        self.finish()

    def told(self, key: str, number: int) -> None:
        group = self.group_of[number]
        self.ledger.tell(key, f"{self.name} sends {key} of group {group} to {self.target}")

    def message(self, key: str, number: int) -> Message:
        body = key.encode() + bytes(self.random.randint(0, 100))
        message = Message.create(WORK, body, 4, True, self.world.now // 1_000_000, 4)
        message.properties.put("_AMQ_GROUP_ID", self.group_of[number])
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(self.groups.kind()))
        return message

    def pause_ns(self) -> int:
        burst = self.random.random() < 0.5
        return 500_000 if burst else self.random.randint(1, 2 * self.pause_ns_max)

    def confirmed(self, key: str, number: int) -> None:
        self.checks.confirm(key)

    def failed(self, number: int, error: ClientError) -> None:
        if not self.cut_short(error):
            del self.open[number]
            self.checks.refuse(f"{self.name}/{number}", error.text)


class GroupConsumer(SimConsumer):
    """A consumer that records its node and its unacknowledged messages for the check."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        target: str,
        checks: GroupLedger,
        queue: str,
    ) -> None:
        super().__init__(world, network, name, target, checks.ledger, queue)
        self.checks = checks
        self.slowness_ns = self.random.choice((0, 1_000_000, 30_000_000))
        self.acknowledges = ANSWERED

    def on_message(self, delivery: Delivery) -> None:
        self.checks.deliver(self, key_of(delivery.message), delivery.message.group_id)
        super().on_message(delivery)

    def acknowledge(self, delivery: Delivery) -> None:
        if not delivery.lost:
            self.checks.release(self, key_of(delivery.message))
        super().acknowledge(delivery)

    def on_lost(self) -> None:
        super().on_lost()
        self.checks.release_all(self)
