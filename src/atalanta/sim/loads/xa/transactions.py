"""XA: workers take from `stock` and send to `sold` in branches that are prepared, decided, and recovered after crashes.

A branch takes effect completely or not at all, and as its transaction manager decided, whatever fails in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.kernel import ADDRESS_FULL
from atalanta.kernel.queue import ANYCAST
from atalanta.message import Byte, Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.clients.jobs import SimWatcher
from atalanta.sim.clients.queue_client import QueueClient, key_of
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.loads.xa.branches import (
    COMMIT,
    COMMITTED,
    OPEN,
    ROLLBACK,
    ROLLED_BACK,
    WHOLE,
    LoggedBranch,
    branches_in_doubt,
    name_of,
)
from atalanta.sim.nodes import address_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import FAIL, Delivery, Reply
from atalanta.wire.core.packets import (
    Packet,
    XaCommit,
    XaEnd,
    XaInDoubt,
    XaInDoubtResponse,
    XaPrepare,
    XaResponse,
    XaRollback,
    XaStart,
    Xid,
)

STOCK: Final = "stock"
SOLD: Final = "sold"
SHARE: Final = 0.25
LEAVES: Final = 0.5  # share of the worker crashes that are followed by a scale-down
BRANCH_MAX: Final = 3


class Transactions(SenderLoad):
    """The load: queues `stock` and `sold` on every node; workers at one node, or at each without redistribution."""

    roams = True

    def __init__(
        self, world: World, network: Network, ledger: Ledger, everywhere: bool, departures: bool
    ) -> None:
        super().__init__(world, network, ledger)
        self.departures = departures
        self.random = world.random("transactions")
        self.everywhere = everywhere
        self.branches: dict[str, LoggedBranch] = {}
        self.sold: dict[str, str] = {}  # branch by key

    def configure(self, index: int, config: NodeConfig) -> None:
        for name in (STOCK, SOLD):
            config.broker.addresses.append(address_of(name))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        per_second = self.random.choice((1.0, 3.0))
        total = max(4, int(seconds * per_second))
        chosen = hosts if self.everywhere else [self.random.choice(hosts)]
        for host in chosen:
            self.takers.append(
                XaWorker(self.world, self.network, f"xw-{host.name}", host.name, self)
            )
            name = f"xb-{host.name}"
            self.takers.append(
                SimWatcher(self.world, self.network, name, host.name, self.ledger, SOLD, self.bought)
            )
        if self.departures:
            for host in hosts:
                name = f"xr-{host.name}"
                self.takers.append(Recoverer(self.world, self.network, name, host.name, self))
        host = self.random.choice(hosts)
        self.senders.append(
            Sender(self.world, self.network, "xp", host.name, self.ledger, STOCK, total, per_second)
        )

    def left(self) -> list[str]:
        if self.departures:
            self._conclude()
        found = super().left()
        found += [
            f"branch {name} is to be {branch.state}"
            for name, branch in self.branches.items()
            if branch.state in (COMMIT, ROLLBACK)
        ]
        for host in self.hosts:
            if host.node is not None and host.node.broker.branches.prepared:
                found.append(f"{host.name} has {host.node.broker.branches.prepared} in doubt")
        return found

    def _conclude(self) -> None:
        """Concludes branches once all nodes run: a branch that none of them has in doubt ended as decided."""
        if self.departed.under_way():
            return
        in_doubt: dict[str, bool] = {}
        for host in self.hosts:
            if host.node is None:
                return
            for name in branches_in_doubt(host.node):
                in_doubt[name] = True
        for name, branch in self.branches.items():
            if name not in in_doubt:
                self.gone(name, branch)

    def gone(self, name: str, branch: LoggedBranch) -> None:
        """Records that no node has the branch in doubt any more."""
        if branch.state == ROLLBACK:
            self.ended(name, False)
        elif branch.state == COMMIT:
            if not branch.told:
                raise Violation(f"branch {name} was prepared, and is forgotten", branch.keys[0])
            self.ended(name, True)

    def ended(self, name: str, committed: bool) -> None:
        """Records the end of a branch; the node's answer may still be on its way."""
        branch = self.branches[name]
        if branch.state in (COMMITTED, ROLLED_BACK):
            return
        branch.state = COMMITTED if committed else ROLLED_BACK
        if committed:
            for key in branch.keys:
                self.ledger.settle(STOCK, key)

    def decide(self, name: str) -> None:
        """Ends a branch in doubt at a node as decided; without a decision it is rolled back."""
        branch = self.branches[name]
        if branch.state in (COMMITTED, ROLLED_BACK):
            raise Violation(f"branch {name} is in doubt, but was {branch.state}", branch.keys[0])
        if branch.state == WHOLE:
            raise Violation(f"branch {name} was never prepared, but is in doubt", branch.keys[0])
        if branch.state != COMMIT:
            branch.state = ROLLBACK

    def bought(self, message: Message) -> None:
        key = str(message.properties.get("key"))
        name = str(message.properties.get("branch"))
        if self.sold.setdefault(key, name) != name:
            raise Violation(f"{key} was sold by the branches {self.sold[key]} and {name}", key)

    def check(self) -> None:
        for key in self.ledger.confirmed:
            if key.startswith("xp/") and key not in self.sold:
                raise Violation(f"confirmed message lost: {key} was never sold", key)
        for key, name in self.sold.items():
            if key not in self.branches[name].keys:
                raise Violation(f"{key} was sold by the branch {name}, which had not got it", key)
        for name, branch in self.branches.items():
            sold = [key for key in branch.keys if self.sold.get(key) == name]
            if sold and branch.state in (OPEN, ROLLED_BACK):
                raise Violation(f"branch {name} is {branch.state}, but it sold {sold}", sold[0])
            if len(sold) < len(branch.keys) and (sold or branch.state == COMMITTED):
                raise Violation(
                    f"branch {name} ({branch.state}) had {branch.keys} and sold {sold}",
                    branch.keys[0],
                )


class XaWorker(QueueClient):
    """A client and the manager of its branches, whose log (`subject.branches`) survives; it dies now and then.

    Undecided branches of a crashed worker are rolled back at every node that has them (presumed abort).
    """

    transacted = True
    xa = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, subject: Transactions
    ) -> None:
        super().__init__(world, network, name, target, STOCK)
        self.subject = subject
        self.ledger = subject.ledger
        self.random = world.random(f"xa/{name}")
        self.leaving = world.random(f"xa/leaving/{name}")
        self.credit_bytes = 2_000
        self.number = 0
        self.waiting: list[Delivery] = []
        self.calls = 0  # whose answers are awaited
        self.current = ""
        # Deliveries stop for a rollback, like in a JMS client: a message that arrives before its answer was returned.
        self.rolling = 0

    def on_session(self) -> None:
        self.producer = self.session.producer(SOLD)
        super().on_session()
        self._look_for_doubts()

    def on_resumed(self) -> None:
        self._look_for_doubts()

    def _look_for_doubts(self) -> None:
        if not self.calls:  # one call at a time, as a client's calls wait for their answers
            self._call(XaInDoubt(), self._in_doubt)
        self.later(2 * SECOND, self._look_for_doubts)

    def on_message(self, delivery: Delivery) -> None:
        if self.rolling:
            self.consumer.handled(delivery.cost)
            return
        key = key_of(delivery.message)
        self.ledger.deliver(STOCK, key, self.name, self.network.left_at(self.conn))
        self.waiting.append(delivery)
        self.later(self.random.randint(1, 30) * 1_000_000, self._begin)

    def _call(
        self, packet: Packet, call: Callable[[object], None], refused: Callable[[], None] | None = None
    ) -> None:
        """Makes a call, and passes on its answer. A call that a lost connection ended is not reported.

        `refused` is called instead if the node's disk is full.
        """
        self.calls += 1

        def answered(reply: Reply) -> None:
            if reply.error is None:
                self.calls -= 1
                call(reply.value)
            elif refused is not None and reply.error.code == ADDRESS_FULL:
                self.calls -= 1
                refused()
            elif not self.cut_short(reply.error):
                raise Violation(f"{self.name}: {reply.error.text}")

        then(self.session.request(packet, FAIL), answered)

    # -- a branch -------------------------------------------------------------------------------
    def _begin(self) -> None:
        if self.calls or not self.waiting:
            return
        self.number += 1
        xid = Xid(1, str(self.number).encode(), self.name.encode())
        taken, self.waiting = self.waiting[:BRANCH_MAX], self.waiting[BRANCH_MAX:]
        name = name_of(xid)
        branch = LoggedBranch(xid, [key_of(delivery.message) for delivery in taken])
        self.subject.branches[name] = branch
        self.current = name
        self._tell(name, "start", XaStart(xid))
        for delivery in taken:
            key = key_of(delivery.message)
            self.ledger.tell(key, f"{self.name} sells {key} in the branch {name}")
            self.ledger.acknowledge(STOCK, key)
            self.consumer.acknowledge_one(delivery)
            self.consumer.handled(delivery.cost)
            self.producer.send_message(self._copy(key, name), False)
        self._tell(name, "end", XaEnd(xid, False))
        if self.random.random() < 0.15:
            branch.state = WHOLE
            self._tell(name, "one phase", XaCommit(xid, True), lambda: self._commit_refused(name))
        else:
            self._tell(name, "prepare", XaPrepare(xid), lambda: self._prepare_refused(name))

    def _copy(self, key: str, name: str) -> Message:
        copy = Message.create(SOLD, key.encode(), 4, True, self.world.now // 1_000_000, 4)
        copy.properties.put("key", key)
        copy.properties.put("branch", name)
        copy.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        copy.properties_changed()
        return copy

    def _tell(self, name: str, step: str, packet: Packet, refused: Callable[[], None] | None = None) -> None:
        self._call(packet, lambda answer: self._told(name, step, answer), refused)

    def _prepare_refused(self, name: str) -> None:
        """Rolls back a branch that is not prepared, since the node's disk is full."""
        self.subject.branches[name].state = ROLLBACK
        self._carry_out(name)

    def _commit_refused(self, name: str) -> None:
        """Records that the branch is rolled back, and connects anew, as a client whose resource manager fails."""
        self.subject.ended(name, False)
        self.restart()

    def _told(self, name: str, step: str, packet: object) -> None:
        branch = self.subject.branches[name]
        if not isinstance(packet, XaResponse) or packet.error:
            why = packet.message if isinstance(packet, XaResponse) else packet
            raise Violation(
                f"{self.name}: {step} of the branch {name} is refused: {why}", branch.keys[0]
            )
        if step == "prepare":
            decided = COMMIT if self.random.random() < 0.75 else ROLLBACK
            if branch.state == OPEN:  # the recovery at another node may have been faster
                branch.state = decided
            if self.random.random() < 0.3:
                self._die()
            else:
                self._carry_out(name)
        elif step in (COMMIT, ROLLBACK, "one phase"):
            self.subject.ended(name, step != ROLLBACK)
            if step == ROLLBACK:
                self.rolling -= 1
                if not self.rolling:
                    self.session.start()
            if name == self.current:
                self.current = ""
            self._begin()

    def _carry_out(self, name: str) -> None:
        branch = self.subject.branches[name]
        branch.told = True
        if branch.state == COMMIT:
            self._tell(name, COMMIT, XaCommit(branch.xid, False))
        else:
            self.rolling += 1
            for delivery in self.waiting:
                self.consumer.handled(delivery.cost)
            self.waiting = []
            self.session.stop()
            self._tell(name, ROLLBACK, XaRollback(branch.xid))

    def _die(self) -> None:
        life = self.life
        self.world.at(0, lambda: self._end(life))

    def _end(self, life: int) -> None:
        """Kills the worker. Sometimes its node is scaled down at that moment, with the branch in doubt."""
        if self.life != life or not self.up:
            return
        self.kill()
        if self.subject.departures and self.leaving.random() < LEAVES:
            self.subject.leave(self.target)
            life = self.life
            self.world.at(SECOND, lambda: self._start_in(life))
        else:
            self.start()

    def _start_in(self, life: int) -> None:
        if self.life == life:
            self.start()

    # -- recovery -------------------------------------------------------------------------------
    def _in_doubt(self, packet: object) -> None:
        """Decides the branches that the node has prepared."""
        assert isinstance(packet, XaInDoubtResponse)
        names = [name_of(xid) for xid in packet.xids]
        for name, branch in self.subject.branches.items():
            if not name.startswith(self.name + "/"):
                continue
            if name in names:
                self.subject.decide(name)
                self._carry_out(name)
            elif not self.subject.departed.moved_from(self.target):
                self.subject.gone(name, branch)
        self._begin()

    def on_lost(self) -> None:
        if self.session.rolled_back:
            self.session.rollback()
        if self.rolling:
            self.session.start()
        self.waiting = []
        self.calls = 0
        self.current = ""
        self.rolling = 0


class Recoverer(SimClient):
    """A recovery manager with the log of all workers, at a node that may have taken over from theirs.

    The workers at its own node recover their branches themselves.
    """

    transacted = True
    xa = True

    def __init__(
        self, world: World, network: Network, name: str, target: str, subject: Transactions
    ) -> None:
        super().__init__(world, network, name, target)
        self.subject = subject
        self.calls = 0  # whose answers are awaited

    def on_session(self) -> None:
        self._look()

    def on_resumed(self) -> None:
        self._look()

    def _look(self) -> None:
        if not self.calls:
            self.calls += 1
            then(self.session.request(XaInDoubt(), FAIL), self._found)
        self.later(2 * SECOND, self._look)

    def _found(self, reply: Reply) -> None:
        packet = reply.value
        if isinstance(packet, XaInDoubtResponse):
            self.calls -= 1
            for xid in packet.xids:
                self._end(xid)
        elif reply.error is None or not self.cut_short(reply.error):
            raise Violation(f"{self.name}: {reply.error}")

    def _end(self, xid: Xid) -> None:
        name = name_of(xid)
        if name.startswith(f"xw-{self.target}/"):
            return
        self.subject.decide(name)
        branch = self.subject.branches[name]
        branch.told = True
        self.calls += 1
        commit = branch.state == COMMIT
        request = XaCommit(xid, False) if commit else XaRollback(xid)
        then(self.session.request(request, FAIL), lambda reply: self._ended(name, reply))

    def _ended(self, name: str, reply: Reply) -> None:
        branch = self.subject.branches[name]
        packet = reply.value
        if isinstance(packet, XaResponse) and not packet.error:
            self.calls -= 1
            self.subject.ended(name, branch.state == COMMIT)
        elif reply.error is None or not self.cut_short(reply.error):
            why = packet.message if isinstance(packet, XaResponse) else reply.error
            raise Violation(
                f"{self.name}: branch {name} to be {branch.state}: {why}", branch.keys[0]
            )

    def on_lost(self) -> None:
        self.calls = 0
