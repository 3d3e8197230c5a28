"""The shell of one simulated node: a real Node on virtual ports, which can crash and restart."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from atalanta.kernel import Ids, Links, Passwords, StoredPassword, Timers, Trace, Wire
from atalanta.node import Node, Ports
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.checks.node_lives import NodeLives
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import LargeInputs, SimLargeFiles
from atalanta.sim.world.machine_clock import MachineClock
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.planted_commands import PlantedCommands, PlantedException
from atalanta.sim.world.world import SECOND, World

BEHIND_NS: Final = (0, 0, 0, -SECOND, -5 * SECOND)

MakeNode = Callable[[Ports], Node]


class SimWire(Wire):
    """The wire of a node. Output that its host holds waits, but for that to members of its group."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.exempted: dict[int, bool] = {}

    def exempt(self, conn: int) -> None:
        self.exempted[conn] = True

    def write(self, conn: int, data: bytes) -> None:
        network, output = self.host.network, bytes(data)
        self._pass(conn, lambda: network.send(conn, output))

    def close(self, conn: int, why: str) -> None:
        network = self.host.network
        self._pass(conn, lambda: network.close(conn, why))

    def local_address(self, conn: int) -> str:
        """Returns an address for a connection that the node opened. The port is also in the peer's remote address."""
        stream = self.host.network.streams.get(conn)
        if stream is None or not stream.dialed:
            return ""
        return f"{self.host.network.ip(self.host.name)}:{self.host.network.peer_of[conn] & 0xFFFF}"

    def _pass(self, conn: int, call: Callable[[], None]) -> None:
        if conn not in self.exempted and self.host.holds_output():
            self.host.outbox.append(call)
        else:
            call()


class SimTimers(Timers):
    """The timers of a node, by its clock."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.due: dict[str, int] = {}

    def set(self, key: str, at_ns: int) -> None:
        self.due[key] = at_ns
        life = self.host.life
        late_ns = self.host.late_by_ns if self.host.late and self.host.late in key else 0
        due_ns = self.host.world.now + self.host.wait_ns(at_ns) + late_ns
        self.host.world.at_time(due_ns, lambda: self._fire(key, at_ns, life))

    def cancel(self, key: str) -> None:
        self.due.pop(key, None)

    def _fire(self, key: str, at_ns: int, life: int) -> None:
        if self.host.life == life and self.due.get(key) == at_ns:
            if self.host.holds_back(lambda: self._fire(key, at_ns, life)):
                return
            if at_ns > self.host.now():  # the node's clock has stood still, or is slower than before
                self.host.world.at(self.host.wait_ns(at_ns), lambda: self._fire(key, at_ns, life))
                return
            del self.due[key]
            self.host.timer(key)


class SimLinks(Links):
    def __init__(self, host: Host) -> None:
        self.host = host

    def dial(self, key: str, host: str, port: int) -> None:
        self.host.network.dial(self.host, f"{self.host.life}/{key}", host, port)

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        """Dials like `dial`: TLS makes no difference in the simulation."""
        self.dial(key, host, port)

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        self.host.on_join("receive", group, f"{address}:{port}", interface, local_port)
        self.host.network.join(self.host, f"{address}:{port}")
        self.host.groups.setdefault(f"{address}:{port}", {})[group] = True
        self.host.group_addresses[group] = f"{address}:{port}"

    def join_to_send(
        self, group: str, address: str, port: int, interface: str, local_port: int
    ) -> None:
        self.host.on_join("send", group, f"{address}:{port}", interface, local_port)
        self.host.group_addresses[group] = f"{address}:{port}"

    def multicast(self, group: str, data: bytes) -> None:
        self.host.network.multicast(self.host, self.host.group_addresses[group], data)

    def resolve(self, key: str, name: str, port: int) -> None:
        self.host.network.resolve(self.host, f"{self.host.life}/{key}", name, port)

    def listen(self, key: str, host: str, port: int, port_range: int) -> None:
        for free in range(port, port + port_range + 1):
            if (self.host.address, free) not in self.host.network.listening:
                self.host.network.listen(self.host, self.host.address, free)
                self.host.dynamic_listeners[free] = key
                return

    def listening(self, key: str, towards: str) -> str:
        ports = [port for port, name in self.host.dynamic_listeners.items() if name == key]
        return f"{self.host.network.ip(self.host.address)}:{ports[0]}" if ports else ""

    def unlisten(self, key: str) -> None:
        for port in [port for port, name in self.host.dynamic_listeners.items() if name == key]:
            del self.host.dynamic_listeners[port]
            del self.host.network.listening[self.host.address, port]

    def post(self, key: str, folder: str, name: str, data: bytes) -> None:
        self.host.network.post(self.host, f"{self.host.life}/{key}", folder, name, data)

    def unpost(self, folder: str, name: str) -> None:
        self.host.network.folders.get(folder, {}).pop(name, None)

    def leave(self, group: str) -> None:
        address = self.host.group_addresses.pop(group, "")
        self.host.groups.get(address, {}).pop(group, None)


class SimPasswords(Passwords):
    """The password check: it takes no time, but never answers within the call."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        ok = stored.verify(password)
        life = self.host.life
        self.host.world.at(0, lambda: self.host.verified(life, token, ok))


class SimIds(Ids):
    def __init__(self, host: Host) -> None:
        self.host = host

    def uuid(self) -> bytes:
        return self.host.world.random(f"ids/{self.host.name}").randbytes(16)

    def secret(self, size: int) -> bytes:
        return self.host.world.random(f"ids/{self.host.name}").randbytes(size)


DAMAGED: Final = "page_file_damaged"  # an event
FREED: Final = "groups_freed"  # an event
FAILED: Final = "command_failed"  # an event
DROPPED: Final = ("diverted_nowhere", "messages_moved_nowhere")  # counters


class SimTrace(Trace):
    """The trace: counters and events. Events of single messages are not part of the digest."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.on = host.world.telling
        self.counters: dict[str, int] = {}

    def count(self, name: str, n: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + n

    def event(self, name: str, fields: dict[str, object]) -> None:
        if name.startswith("trace_"):
            self._tell(name[6:], fields)
            return
        told = " ".join(f"{key}={value}" for key, value in fields.items())
        self.host.world.note(f"{self.host.name} {name} {told}")
        if name == FREED:
            self.host.freed.append((self.host.world.now, str(fields["node"]).replace("node-", "n")))
        if name == FAILED and PlantedException.__name__ not in str(fields["why"]):
            raise Violation(f"{self.host.name} failed at a command: {told}")
        if name == DAMAGED:
            raise Violation(f"{self.host.name} lacks a page file, and no disk here loses one: {told}")

    def check(self) -> None:
        """Raises Violation if the node found no queue for a confirmed message; each load has one for all of its own."""
        for name in DROPPED:
            if self.counters.get(name):
                raise Violation(f"{self.host.name} counts {self.counters[name]} {name}")

    def _tell(self, what: str, fields: dict[str, object]) -> None:
        name = fields["name"]
        key = name.decode("utf-16-le") if isinstance(name, bytes) else ""
        key = key or f"{self.host.name}/{fields['id']}"
        text = f"{self.host.name}: {what} {fields['where']} (message {fields['id']})"
        self.host.world.tell(key, text)


class HostLarge(LargeInputs):
    """The results of jobs for large message files, delivered to the current node."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def large_written(self, file: int, size: int) -> None:
        host = self.host
        host.give(lambda node: node.on_large_written(host.now(), file, size))

    def large_synced(self, file: int) -> None:
        host = self.host
        host.give(lambda node: node.on_large_synced(host.now(), file))

    def large_failed(self, file: int, why: str) -> None:
        host = self.host
        host.give(lambda node: node.on_large_failed(host.now(), file, why))

    def large_read(self, token: int, data: bytes) -> None:
        host = self.host
        host.give(lambda node: node.on_large_read(host.now(), token, data))


def ignore_join(how: str, group: str, address: str, interface: str, local_port: int) -> None:
    """Ignores a join of a discovery group."""


def ignore_end() -> None:
    return None


def ignore_turn(host: Host) -> None:
    """Ignores the end of a turn."""


class Host(Machine):
    """A host. `life` counts starts: callbacks of an earlier life are ignored. The disk survives crashes.

    `paired` hosts are the two machines of one node.
    """

    paired: bool = False

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        address: str,
        port: int,
        make_node: MakeNode,
    ) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.address = address
        self.port = port
        self.listeners: dict[int, str] = {port: "netty-acceptor"}  # acceptors by port
        self.dynamic_listeners: dict[int, str] = {}  # opened by the node itself
        self.make_node = make_node
        self.late = ""  # delays timers with this text in their keys, so that other events come first
        self.late_by_ns = 0
        self.ahead_ns = 0  # the node's clock minus the world's
        self.settings_of_clock: random.Random | None = None  # somebody sets it while the node is down
        self.up = False
        self.life = 0
        self.groups: dict[str, dict[str, bool]] = {}
        self.group_addresses: dict[str, str] = {}
        self.disk = SimDisk(self._disk_later, world.random(f"disk/{name}"))
        self.large = SimLargeFiles(self._disk_later, world.random(f"large/{name}"))
        self.large.attach(HostLarge(self))
        self.trace = SimTrace(self)
        self.commands: PlantedCommands | None = None  # whose failures are faults of the simulation
        self.node: Node | None = None
        self.stops: list[int] = []  # times of graceful stops
        self.freed: list[tuple[int, str]] = []  # when it freed the groups of which node, as that was not back
        self.lives = NodeLives(name)
        self.clock: MachineClock | None = None  # of its own; without it the node's is the world's
        self.ending: Callable[[], None] = ignore_end  # called before the node ends
        self.on_turn: Callable[[Host], None] = ignore_turn  # called after each turn of the node
        self.on_join: Callable[[str, str, str, str, int], None] = ignore_join
        # Called with the reason before a node ends itself after an error.
        self.on_gave_up: Callable[[Host, str], None] | None = None
        # Called when the node runs again.
        self.on_started: list[Callable[[Host], None]] = []
        self._flush_due = False
        self.outbox: list[Callable[[], None]] = []  # output of the node that waits

    # -- time -----------------------------------------------------------------------------------
    def now(self) -> int:
        """Returns the time by the node's clock."""
        return self.world.now + self.ahead_ns

    def wait_ns(self, at_ns: int) -> int:
        """Returns how long it takes until the node's clock has reached `at_ns`, in the world's time."""
        return at_ns - self.now()

    def holds_back(self, call: Callable[[], None]) -> bool:
        """Returns True if the machine keeps this call for later, because it processes nothing at the moment."""
        return False

    # -- start and end --------------------------------------------------------------------------
    def start(self) -> None:
        self.life += 1
        self.up = True
        if self.settings_of_clock is not None and self.life > 1:
            self.ahead_ns = self.settings_of_clock.choice(BEHIND_NS)
        self.run_node()

    def ports(self) -> Ports:
        """Returns new ports on the disk, for a new node."""
        self.groups = {}
        self.group_addresses = {}
        self.dynamic_listeners = {}
        ports = Ports(
            SimWire(self),
            self.disk,
            SimTimers(self),
            SimLinks(self),
            SimIds(self),
            self.trace,
            SimPasswords(self),
        )
        ports.large = self.large
        if self.commands is not None:
            ports.command = self.commands
        return ports

    def run_node(self) -> None:
        """Starts a node on the disk."""
        self.outbox = []
        self.lives.begin(self.life)
        self.node = self.make_node(self.ports())
        self.disk.attach(self._committed, self._disk_failed, self._no_room)
        self.node.recover(self.now())
        for port in self.listeners:
            self.network.listen(self, self.address, port)
        self.world.note(f"{self.name} starts, life {self.life}")
        self.node.start(self.now())
        for call in self.on_started:
            call(self)

    def holds_output(self) -> bool:
        """Returns True if output waits: the node may not send, or older output waits already."""
        return len(self.outbox) > 0 or (self.node is not None and not self.may_send())

    def may_send(self) -> bool:
        """Returns True if output of the node may leave now."""
        return self.node is not None and self.node.may_send(self.now())

    def send_out(self) -> None:
        """Sends what waits on the wire, if the node may send."""
        if self.outbox and self.may_send():
            outbox, self.outbox = self.outbox, []
            for call in outbox:
                call()

    def standby(self) -> bool:
        """Returns True if another machine serves in place of this one."""
        return False

    def current(self) -> bool:
        """Returns True unless another machine has taken the files of this one."""
        return True

    def crash(self) -> None:
        """Simulates a power failure: connections end, the part of the disk without sync is lost."""
        self.ending()
        self.world.note(f"{self.name} crashes")
        self.up = False
        self.life += 1
        self.node = None
        self.network.drop_machine(self)
        self.disk.crash()
        self.large.crash()

    def stop(self) -> None:
        """Stops the node gracefully: it disconnects its clients, the disk keeps committed data."""
        if self.node is None:
            return
        self.node.stop(self.now())
        if not self.may_send():
            self.disk.finish_jobs()  # a node that stops waits for its disk
        self.send_out()
        self.ending()
        self.stops.append(self.world.now)
        self.world.note(f"{self.name} stops")
        self.freeze()
        self.network.leave(self)
        self.disk.crash()
        self.large.crash()

    def freeze(self) -> None:
        """Simulates a process that is stopped: its connections stay open, and it reads and sends nothing."""
        self.up = False
        self.life += 1
        self.node = None

    def take_over(self, former: Host) -> None:
        """Starts with the disk of a host that has ended, as the backup of a pair with a shared store does."""
        self.disk = former.disk
        self.large = former.large
        self.large.attach(HostLarge(self))
        self.start()

    # -- inputs ---------------------------------------------------------------------------------
    def give(self, call: Callable[[Node], None]) -> None:
        """Gives an input to the node that runs now, unless it has ended when the machine processes it."""
        if self.node is None or self.holds_back(lambda: self.give(call)):
            return
        call(self.node)
        self.flush_later()

    def on_accepted(self, conn: int, port: int) -> None:
        stream = self.network.streams.get(conn)
        dialer = self.name if stream is None else stream.target.name  # a machine that stood still accepts it later

        def accept(node: Node) -> None:
            acceptor = self.listeners.get(port)
            if acceptor is not None:
                node.on_accept(self.now(), conn, acceptor, f"sim:{conn}")
                return
            remote = f"{self.network.ip(dialer)}:{conn & 0xFFFF}"
            node.on_accept(self.now(), conn, self.dynamic_listeners[port], remote)

        self.give(accept)

    def on_dialed(self, conn: int, key: str) -> None:
        life, _, name = key.partition("/")
        if life == str(self.life):
            self.give(lambda node: node.on_dialed(self.now(), conn, name))
        else:
            self.network.close(conn, "dialled in an earlier life")

    def on_dial_failed(self, key: str, why: str) -> None:
        life, _, name = key.partition("/")
        if life == str(self.life):
            self.give(lambda node: node.on_dial_failed(self.now(), name, why))

    def on_bytes(self, conn: int, data: bytes) -> None:
        self.give(lambda node: self._receive(node, conn, data))

    def _receive(self, node: Node, conn: int, data: bytes) -> None:
        if self.commands is not None:
            self.commands.receive(True)
        node.on_data(self.now(), conn, data)
        if self.commands is not None:
            self.commands.receive(False)

    def on_closed(self, conn: int, why: str) -> None:
        self.give(lambda node: node.on_closed(self.now(), conn, why))

    def on_choked(self, conn: int, choked: bool) -> None:
        def tell(node: Node) -> None:
            if choked:
                node.on_blocked(self.now(), conn)
            else:
                node.on_unblocked(self.now(), conn)

        self.give(tell)

    def on_datagram(self, group: str, data: bytes) -> None:
        for name in list(self.groups.get(group, {})):
            self._give_datagram(name, data)

    def _give_datagram(self, name: str, data: bytes) -> None:
        self.give(lambda node: node.on_datagram(self.now(), name, data))

    def on_resolved(self, key: str, addresses: list[tuple[str, int]], why: str) -> None:
        life, _, name = key.partition("/")
        if life == str(self.life):
            self.give(lambda node: node.on_resolved(self.now(), name, addresses, why))

    def on_posted(self, key: str, files: dict[str, bytes], why: str) -> None:
        life, _, name = key.partition("/")
        if life == str(self.life):
            self.give(lambda node: node.on_posted(self.now(), name, files, why))

    def timer(self, key: str) -> None:
        self.give(lambda node: node.on_timer(self.now(), key))

    def verified(self, life: int, token: int, ok: bool) -> None:
        if self.life == life:
            self.give(lambda node: node.on_verified(self.now(), token, ok))

    def flush_later(self) -> None:
        """Flushes once per instant, after all inputs of it, like one event-loop iteration."""
        if not self._flush_due:
            self._flush_due = True
            life = self.life
            self.world.at(0, lambda: self._flush_now(life))

    def _flush_now(self, life: int) -> None:
        if self.life == life and self.holds_back(lambda: self._flush_now(life)):
            return
        self._flush_due = False
        if self.life == life:
            self.turn()

    def turn(self) -> None:
        """Flushes the node after all inputs of an instant."""
        if self.node is None:
            return
        self.node.flush(self.now())
        self.lives.note(self.life, self.node)
        if self.clock is None or not self.clock.stood_still:  # a successor that heard of it before counts on
            self.lives.show(self.life, self.now(), self.world.now)
        self.send_out()
        self.on_turn(self)
        if self.node.failed is not None:
            self._give_up(self.node.failed)

    def _give_up(self, why: str) -> None:
        self.world.note(f"{self.name} gives up: {why}")
        if self.on_gave_up is not None:
            self.on_gave_up(self, why)
        self.crash()

    # -- disk -----------------------------------------------------------------------------------
    def scan_disk(self) -> None:
        """Fills the disk's reserve, and reports the usage, as runtime/disk/disk_monitor.py does."""
        disk = self.disk

        def report(node: Node) -> None:
            node.on_room(self.now(), disk.fill_reserve(), "")
            used, room = disk.used_bytes(), disk.room_bytes
            if room < 0:
                node.on_disk_usage(self.now(), 0.0, 1 << 40)
            else:
                node.on_disk_usage(self.now(), used / room, max(0, room - used))

        self.give(report)

    def _disk_later(self, delay_ns: int, call: Callable[[], None]) -> None:
        self.world.at(delay_ns, call)

    def _committed(self, token: int) -> None:
        self.give(lambda node: node.on_committed(self.now(), token))

    def _disk_failed(self, why: str) -> None:
        self.give(lambda node: node.on_disk_failed(self.now(), why))

    def _no_room(self, name: str) -> None:
        self.disk.note_exhausted(self.world.now)
        self.give(lambda node: node.on_room(self.now(), False, name))
