"""The belongings of others than the user of an input, in fuzz in order: their state, and messages that are confirmed.

Each belonging is something that a user without the right to it may neither get, nor change, nor make ineffective.
"""

from __future__ import annotations

from collections.abc import Callable

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.registry.duplicate_spaces import (
    BRIDGE,
    CLIENT,
    NETWORK,
    begin_of_sent,
    sent_id,
    user_bridge_id,
    user_space,
)
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.kernel.transactions.xa import XaBranch, identifier
from atalanta.message.encoding.buffer import Writer, encode_utf16
from atalanta.wire.core.packets.consumer import Acknowledge
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.transaction import XaEnd, XaPrepare, XaStart, XaSuspend, Xid
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQMessage
from atalanta.wire.openwire.commands.producers import SessionInfo
from atalanta.wire.openwire.commands.transactions import TransactionInfo, XATransactionId
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.options import WireFormatOptions
from atalanta.wire.openwire.server.connection import OpenWireConnection
from atalanta.wire.openwire.server.peer_brokers import PeerBroker
from tests.wire.core.server.server_rig import Client, text_message
from tests.wire.core.server.xa_rig import ok
from tests.wire.mixed_server import MixedServer
from tests.wire.openwire.server.openwire_rig import BEGIN, END, PREPARE, OpenWireClient

SECRET = "SECRETBODY"
# A private name: of a durable subscription, and in xids.
SECRET_NAME = "SECRETNAME"
SECRETS = (SECRET.encode(), SECRET.encode("utf-16-le"), SECRET_NAME.encode(), SECRET_NAME.encode("utf-16-le"))
QUEUES = ("secret.a", "secret.b", "secret.in", "secret.out", "victim.sub")
# Where the user with few rights may send, and nothing else; the victims' messages are confirmed there, too.
SHARED = "shared.in"
# Where nobody but the victims may send.
CLOSED = "secret.once"
# The topic of a durable subscription that a bridge has left: others have all rights on the topic, but not on that.
KEPT_TOPIC = "pub.kept"
VICTIM_CONNECTION = "ID:victim-3"
FAILOVER_CONNECTION = "ID:victim"
ORIGIN = ProducerId("ID:origin", 1, 1)  # of the messages that a bridge brings
AFTER_RESTART = 1_000_000  # the number of the messages that the victims send after a restart
NEAR, FAR = "near", "far"  # the brokers of the victims' bridges
# Loose and without a cache: what nobody reads may be thrown away between two frames.
PLAIN = WireFormatOptions(tight=False, cache=False)


def xid(number: int) -> Xid:
    """One of the victims' xids."""
    return Xid(7, b"b%d" % number, SECRET_NAME.encode())


class Victims:
    """The belongings. `number` is that of the next messages of the victims, of which others know the ids.

    `known`: these numbers, for others.
    """

    def __init__(self, server: MixedServer) -> None:
        self.server = server
        self.number = 0
        self.known: tuple[int, ...] = (0,)
        self._users()
        core = self.core = server.login("admin")
        for name in ("secret.a", "secret.in", "secret.out", SHARED, CLOSED):
            core.create_queue(name)
        core.create_queue("victim.sub", "secret.t", 0)
        for number in range(5):
            core.publish("secret.a", f"{SECRET} {number}")
            core.publish("secret.in", f"{SECRET} {number}")
            core.publish("secret.t", f"{SECRET} {number}", routing_type=0)
        watcher = server.openwire_client("watcher")
        watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.>"))
        core.create_queue("told", "activemq.notifications", 0, temporary=True, durable=False)
        core.consume("told")
        victim = self._openwire()
        stomp = server.stomp_client(login="victim", passcode="victim")
        stomp.subscribe("/topic/secret.t", "1", ack="client")
        cores = self._branches()
        self._kept_subscription()
        self.connect_senders()
        self.conns = (
            core.conn, watcher.conn, victim.conn, stomp.conn, *(each.conn for each in cores),
            self.failover.conn, self.bridge.conn, self.member.conn, self.application.conn,
        )  # fmt: skip
        server.settle()
        self.queues = {name: server.broker.queues[name] for name in (*QUEUES, self.kept, self.temporary)}
        self.shared = [server.broker.queues[name] for name in (SHARED, CLOSED)]
        self.belongings = len(self.state())

    def _users(self) -> None:
        security = self.server.security
        for name in ("victim", "bridge"):
            security.add_user(name, name, [name])
        for match in ("secret.#", "ID:victim.#", f"{VICTIM_CONNECTION}:1", "hidden.t"):
            self._allow(match, "victim")
        for match in ("ActiveMQ.Advisory.#", "bridged.t"):
            self._allow(match, "bridge")
        self._allow(KEPT_TOPIC, "bridge", "low")
        security.add_rule(SHARED, {
            "send": ["admin", "victim", "bridge", "low"], "createAddress": ["admin"], "createDurableQueue": ["admin"],
        })  # fmt: skip

    def _allow(self, match: str, *roles: str) -> None:
        """Gives all permissions to these roles."""
        self.server.security.add_rule(match, dict.fromkeys(PERMISSIONS, ["admin", *roles]))

    def _openwire(self) -> OpenWireClient:
        """A client with a consumer, a durable subscription, a temporary queue and open transactions."""
        victim = self.server.openwire_client("victim", "victim", VICTIM_CONNECTION.removeprefix("ID:"))
        victim.consume(ActiveMQQueue("secret.b"))
        victim.producer(ActiveMQQueue("secret.b"))
        victim.publish(SECRET, "secret.b")
        victim.consume(ActiveMQTopic("hidden.t"), subscription_name=SECRET_NAME)
        self.temporary = victim.temporary_queue().physical_name or ""
        victim.publish(SECRET, "secret.b", transaction_id=victim.begin())
        for number, steps in ((6, (BEGIN,)), (7, (BEGIN, END, PREPARE))):
            named = openwire_xid(xid(number))
            for step in steps:
                victim.succeeds(TransactionInfo(ConnectionId(victim.id), named, step))
                if step == BEGIN:
                    victim.publish(SECRET, "secret.out", transaction_id=named)
        self.victim = victim
        return victim

    def _branches(self) -> list[Client]:
        """CORE sessions with a branch each: at work, suspended, ended, prepared, and ended by an operator."""
        found = []
        for number in range(1, 6):
            client = self.server.greeted()
            client.open_session(10, "victim", "victim", transacted=True, xa=True)
            named = xid(number)
            ok(client, XaStart(named))
            client.publish("secret.out", SECRET)
            client.consume("secret.in", credits=300 if number in (1, 4) else 0)
            for each in client.deliveries()[:1]:
                client.succeeds(Acknowledge(0, each.message.id, True))
            if number == 2:
                ok(client, XaSuspend())
            elif number > 2:
                ok(client, XaEnd(named, False))
            if number > 3:
                ok(client, XaPrepare(named))
            found.append(client)
        branches = self.server.broker.branches
        assert branches.end_by_operator(self.server.now, identifier(key(xid(5))), False)
        return found

    def _kept_subscription(self) -> None:
        """A durable subscription that the bridge of a broker has made, with a message; the bridge has gone."""
        server = self.server
        before = dict(server.broker.queues)
        near = bridge(server, NEAR, ConsumerInfo(
            ConsumerId("ID:there", 1, 1), destination=ActiveMQTopic(KEPT_TOPIC), client_id="reader",
            subscription_name="s",
        ))  # fmt: skip
        (self.kept,) = [name for name in server.broker.queues if name not in before]
        server.lost(near.conn)
        self.core.publish(KEPT_TOPIC, SECRET, routing_type=0)

    def connect_senders(self) -> None:
        """Connects the clients whose messages have ids by which a repeat is known."""
        server = self.server
        self.failover = OpenWireClient(server, FAILOVER_CONNECTION.removeprefix("ID:"), PLAIN)
        self.failover.greet()
        login = self.failover.login_info("failover", "victim", "victim", fault_tolerant=True)
        self.failover.succeeds(login)
        self.failover.succeeds(SessionInfo(SessionId(self.failover.id, 1)))
        self.bridge = bridge(server, FAR, ConsumerInfo(
            ConsumerId("ID:there", 1, 1), destination=ActiveMQTopic("bridged.t"), prefetch_size=10
        ))  # fmt: skip
        self.member = server.login("cluster", "secret")
        self.application = server.login("victim")

    # -- what it is now -------------------------------------------------------------------------
    def state(self) -> dict[str, object]:
        """Returns what must not change, as far as users with all rights have left it."""
        server = self.server
        broker = server.broker
        found: dict[str, object] = {}
        for name, queue in self.queues.items():
            if broker.queues.get(name) is queue:
                found[name] = (
                    queue.message_count, queue.delivering_count, queue.consumer_count(), queue.spec.user,
                    queue.spec.address,
                )  # fmt: skip
        for number in range(1, 8):
            named = key(xid(number))
            branch = broker.branches.by_xid.get(named)
            if branch is not None and branch.user == "victim":
                found[f"branch {number}"] = state_of(branch)
            ended = broker.branches.heuristics.get(named)
            if ended is not None:
                found[f"heuristic {number}"] = (ended.outcome, ended.user, branch)
        for client in (self.victim, self.bridge):
            connection = server.connections.get(client.conn)
            if isinstance(connection, OpenWireConnection) and connection.session is not None:
                session = connection.session
                held = [len(each.transaction.messages) for each in session.transactions.values()]
                found[f"session {client.id}"] = (held, sorted(session.temporary), len(session.subscriptions))
                if connection.duplex is not None:
                    demands = connection.duplex.bridge.table.index.by_id.values()
                    found["demand"] = [(each.opened, each.ending) for each in demands]
        found["neighbours"] = sorted(each.name for each in self._neighbours())
        return found

    def _neighbours(self) -> list[PeerBroker]:
        """The brokers that failover clients are told of."""
        peers = self.server.openwire.node_clients.peers
        return list(peers.neighbours.values())

    def complete(self) -> bool:
        """Returns True if nobody with all rights has taken anything."""
        return len(self.state()) == self.belongings and self.can_send()

    def restart(self) -> None:
        """Restarts the server with a compacted journal: what lasts is there, and so are the messages sent after it."""
        server = self.server
        before = self.lasting()
        server.settle()
        server.compact(server.journal.last // 2)
        server.settle()
        server.restart()
        after = self.lasting()
        for name, value in before.items():
            assert after.get(name) == value, f"a restart changed {name}: {value} to {after.get(name)}"
        self.connect_senders()
        self.number = AFTER_RESTART
        self.send()
        validate(server.broker)

    def lasting(self) -> dict[str, object]:
        """Returns what is in the journal."""
        broker = self.server.broker
        found: dict[str, object] = {}
        counts: dict[str, int] = {}
        for message in broker.store.messages.values():
            if message.durable:
                for reference in broker.store.references_of(message):
                    counts[reference.queue.name] = counts.get(reference.queue.name, 0) + 1
        for name in (*QUEUES, self.kept):
            spec = broker.queues[name].spec
            found[name] = (counts.get(name, 0), spec.user, spec.address)
        for number in (4, 5, 7):
            branch = broker.branches.by_xid.get(key(xid(number)))
            ended = broker.branches.heuristics.get(key(xid(number)))
            if branch is not None:
                work = branch.transaction
                found[f"branch {number}"] = (branch.state, branch.user, len(branch.plans), len(work.acknowledged))
            if ended is not None:
                found[f"heuristic {number}"] = (ended.outcome, ended.user)
        return found

    def xids(self) -> list[Xid]:
        """Returns the xids that are still the victims'."""
        branches = self.server.broker.branches
        known = [xid(number) for number in range(1, 8)]
        named = {each: branches.by_xid.get(key(each), branches.heuristics.get(key(each))) for each in known}
        return [each for each, found in named.items() if found is not None and found.user == "victim"]

    # -- messages that are confirmed ------------------------------------------------------------
    def begin(self, lasting: bool) -> None:
        """Begins an input, whose user may know the ids that the victims use next, and after a restart (`lasting`)."""
        self.number += 1
        self.known = (self.number, AFTER_RESTART) if lasting else (self.number,)

    def ids(self) -> list[str | bytes]:
        """Returns the duplicate ids by which the next messages of the victims could be taken for repeats."""
        return [each for number in self.known for each in duplicate_ids(number)]

    def message_ids(self) -> list[MessageId]:
        """Returns the ids of those messages in OpenWire."""
        return [each for number in self.known for each in openwire_ids(number)]

    def can_send(self) -> bool:
        """Returns True if nobody with all rights has removed the queues or the senders, or added queues beside them."""
        addresses = self.server.broker.addresses
        for queue in self.shared:
            address = addresses.get(queue.name)
            if address is None or address.wildcards or [id(each) for each in address.queues()] != [id(queue)]:
                return False
        senders = (self.failover, self.bridge, self.member, self.application)
        return all(each.conn in self.server.connections for each in senders)

    def send(self) -> None:
        """Sends a message of each kind: it is confirmed, and is in its queue."""
        number = self.number
        sent = self.failover.message("sent", SHARED)
        sent.message_id = MessageId(None, ProducerId(self.failover.id, 1, 1), number)
        self._arrives("the message of a failover client", SHARED, lambda: self.failover.succeeds(sent))
        brought = self.bridge.message("brought", SHARED)
        brought.message_id = MessageId(None, ORIGIN, number)
        brought.broker_path = [BrokerId(f"ID:{FAR}")]
        self._arrives("the message of a bridge", SHARED, lambda: self.bridge.succeeds(brought))
        member, application = self.member, self.application
        once = f"once-{number}"
        self._arrives("the message of an application", CLOSED, lambda: confirmed(application, CLOSED, "DUPL_ID", once))
        again = f"member-{number}".encode()
        self._arrives("the message of a member", SHARED, lambda: confirmed(member, SHARED, "BRIDGE_DUP", again))
        for client in (self.failover, self.bridge):
            client.pending.clear()

    def _arrives(self, what: str, name: str, send: Callable[[], object]) -> None:
        queue = self.server.broker.queues[name]
        before = queue.message_count
        send()
        self.server.settle()
        assert queue.message_count == before + 1, f"{what} was confirmed and is not in {name}"


def duplicate_ids(number: int) -> list[str | bytes]:
    """Returns the duplicate ids that clients can write, and those that the node makes of the messages' ids."""
    sent = f"{FAILOVER_CONNECTION}:1:1:{number}"
    brought = f"{ORIGIN.connection_id}:1:1:{number}"
    found: list[str | bytes] = [sent, brought, f"once-{number}", f"member-{number}"]
    for text in (sent, brought, f"member-{number}"):
        found += [text.encode(), encode_utf16(text)]
    for space in (user_space(CLIENT, "victim"), NETWORK, user_space(BRIDGE, "cluster")):
        found += [sent_id(begin_of_sent(space, "", hops), text) for text in (sent, brought) for hops in (0, 1)]
    found.append(user_bridge_id("cluster", f"member-{number}".encode()))
    return found


def openwire_ids(number: int) -> list[MessageId]:
    """Returns the ids of the messages of the failover client and of the bridge, and texts that show them."""
    failover = ProducerId(FAILOVER_CONNECTION, 1, 1)
    return [
        MessageId(None, failover, number), MessageId(None, ORIGIN, number),
        MessageId(f"{FAILOVER_CONNECTION}:1:1:{number}", None, number),
        MessageId(f"{ORIGIN.connection_id}:1:1:{number}", failover, number),
    ]  # fmt: skip


def confirmed(client: Client, address: str, header: str, value: str | bytes) -> None:
    """Sends a message of CORE with a duplicate id, and waits for its answer."""
    message = text_message(address, "sent")
    message.put_property(f"_AMQ_{header}", value)
    client.succeeds(SendMessage(message, requires_response=True, correlation=1, sender_id=0))


def bridge(server: MixedServer, broker: str, wanted: ConsumerInfo) -> OpenWireClient:
    """The duplex bridge of a broker that wants the messages of one consumer, with its own user."""
    client = OpenWireClient(server, f"{broker}-bridge", PLAIN)
    client.greet()
    info = BrokerInfo(BrokerId(f"ID:{broker}"), broker_name=broker, network_connection=True, duplex_connection=True)
    client.send(info)
    client.send(client.login_info(f"NC_{broker}_outbound", "bridge", "bridge"))
    server.verify()
    client.output()
    client.send(SessionInfo(SessionId(client.id, 1)))
    client.succeeds(advisory(wanted, ActiveMQTopic("ActiveMQ.Advisory.Consumer.Topic.x"), ProducerId(client.id, 1, 1)))
    return client


def advisory(data: DataStructure, topic: ActiveMQDestination, producer: ProducerId) -> ActiveMQMessage:
    """Returns what a broker tells the bridge of another one."""
    return ActiveMQMessage(
        producer, topic, message_id=MessageId(None, producer, 1), data_structure=data, persistent=False
    )


def state_of(branch: XaBranch) -> tuple[object, ...]:
    """Returns what must not change of a branch."""
    work = branch.transaction
    return (
        id(branch), branch.state, branch.user, branch.workers, branch.timed_out, branch.timeout_s,
        len(work.messages), len(work.acknowledged), len(branch.plans), str(work.rollback_only),
    )  # fmt: skip


def key(named: Xid) -> bytes:
    """Returns the kernel's form of an xid."""
    writer = Writer()
    writer.int32(named.format_id)
    writer.blob(named.branch_qualifier)
    writer.blob(named.global_transaction_id)
    return writer.getvalue()


def openwire_xid(named: Xid) -> XATransactionId:
    return XATransactionId(named.format_id, named.global_transaction_id, named.branch_qualifier)
