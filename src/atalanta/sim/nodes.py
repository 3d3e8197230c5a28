"""Configurations of simulated clusters: N equal nodes with distributed queues, one with an extra subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.cluster import (
    OFF,
    OFF_WITH_REDISTRIBUTION,
    ON_DEMAND,
    STRICT,
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    ClusterSettings,
    DiscoveryGroupConfig,
    OwnSettings,
)
from atalanta.kernel import (
    STEP_WORK_MAX,
    AddressConfig,
    AddressSettingsRepository,
    BrokerConfig,
    QueueConfig,
    Security,
)
from atalanta.kernel.queue import ANYCAST, MULTICAST
from atalanta.node import Node, NodeConfig, Ports
from atalanta.sim.checks.ledger import ALERTS, ARCHIVE, BOOK, ORDERS
from atalanta.sim.host import Host
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.store import JournalConfig
from atalanta.wire import STACK_KINDS, ConnectorConfig, JgroupsStack

if TYPE_CHECKING:
    from atalanta.sim.subject import Subject

PORT: Final = 61616
CLUSTER_USER: Final = "cluster"
CLUSTER_PASSWORD: Final = "secret"
USER: Final = "user"
PASSWORD: Final = "password"
PRICES: Final = "prices"
GROUP: Final = "sim-group"
GROUP_ADDRESS: Final = "231.7.7.7"
GROUP_PORT: Final = 9876
JGROUPS_PORT: Final = 7800
HEADLESS: Final = "headless"
DEPARTURES_SHARE: Final = 0.7  # of the simulations
STEPS_SHARE: Final = 0.3  # of the simulations: small transactions go in the steps of large ones, too
PAIRS_SHARE: Final = 0.25  # of the simulations
# The generator that draws them. With this number no seed of tests/sim/seeds.txt has a pair: they stay the same.
PAIRS_DRAW: Final = "pairs 219019"
GROUPS_SHARE: Final = 0.15  # of the simulations without a pair
GROUPS_DRAW: Final = "groups 78"  # like PAIRS_DRAW
PERMISSIONS: Final = ("send", "consume", "browse", "createDurableQueue", "createAddress", "manage")


class Shape:
    """The common settings of the nodes. The defaults are a cluster with static connectors and without faults."""

    def __init__(self) -> None:
        self.mode: str = ON_DEMAND
        self.discovery: bool = False
        self.stack: str = ""  # kind of the JGroups protocol of the discovery group; "" is the UDP group
        self.segment_bytes: int = 131_072
        self.block_bytes: int = 2 << 20
        self.redistribution_delay_ms: int = 200
        self.memory_bytes: int = 100 << 20
        self.page_bytes: int = 10 << 20
        self.full_policy: str = "PAGE"
        self.redelivery_delay_ms: int = 0
        self.parked_timeout_ms: int = 10_000
        self.step_work_max: int = STEP_WORK_MAX
        self.departures: bool = False
        self.subjects: list[Subject] = []
        self.networked: bool = False  # the nodes are no cluster: network connectors join them
        self.pair: int = -1  # a node on two machines with a shared folder
        self.groups: dict[int, int] = {}  # nodes that replicate their journals; how many machines each has
        self.joiner: int = (
            -1
        )  # a node that no static connectors name: it joins later, and the topology names it

    def draw(self, world: World) -> None:
        """Draws the settings. Small segments and blocks cause frequent compaction and torn commits. With little memory
        queues page or senders block."""
        draw = world.random("nodes")
        self.mode = draw.choice((*[ON_DEMAND] * 6, STRICT, OFF, OFF_WITH_REDISTRIBUTION))
        self.discovery = draw.random() < 0.3
        # A separate generator: the other draws stay the same.
        self.stack = world.random("meeting").choice(("", *STACK_KINDS))
        self.segment_bytes = draw.choice((4_096, 8_192, 32_768))
        self.block_bytes = draw.choice((64, 1_024, 2 << 20))
        self.redistribution_delay_ms = draw.choice((0, 200))
        self.full_policy = draw.choice(("PAGE", "PAGE", "BLOCK"))
        # A separate generator: the simulations of older seeds stay the same.
        self.parked_timeout_ms = world.random("parked").choice((0, 500, 2_000, 10_000))
        little = 10_000 if self.full_policy == "BLOCK" else 1_500
        self.memory_bytes = draw.choice((100 << 20, 10_000, little))
        self.page_bytes = draw.choice((600, 600, 5_000))
        self.redelivery_delay_ms = draw.choice((0, 0, 300))
        steps = world.random("steps")
        if steps.random() < STEPS_SHARE:
            self.step_work_max = steps.choice((1, 4))
        self.departures = world.random("departures").random() < DEPARTURES_SHARE

    def draw_pair(self, world: World, nodes: int) -> None:
        """Draws the pair, in a share of the simulations. Their nodes do not scale down."""
        draw = world.random(PAIRS_DRAW)
        if nodes > 1 and draw.random() < PAIRS_SHARE:
            self.pair = draw.choice([index for index in range(nodes) if index != self.joiner])
            self.departures = False

    def draw_groups(self, world: World, nodes: int, wanted: bool) -> None:
        """Draws a replicated group in a share of the simulations, one or several if they are wanted. The nodes do not
        scale down, and find each other by static connectors."""
        draw = world.random(GROUPS_DRAW)
        if not wanted and (nodes < 2 or self.pair >= 0 or draw.random() >= GROUPS_SHARE):
            return
        indexes = [index for index in range(nodes) if index != self.joiner]
        first = draw.choice(indexes)
        self.groups[first] = draw.choice((2, 2, 3))
        if wanted:
            others = [index for index in indexes if index != first]
            for index in sorted(draw.sample(others, draw.randint(0, len(others)))):
                self.groups[index] = draw.choice((2, 2, 3))
        self.pair = -1
        self.departures = False
        self.discovery = False

    def become_network(self) -> None:
        """Makes the nodes a network of brokers. Full addresses page: two brokers whose addresses are full wait for each
        other."""
        self.networked = True
        self.departures = False
        self.full_policy = "PAGE"

    @property
    def several(self) -> bool:
        """Returns whether a node has several machines."""
        return self.pair >= 0 or bool(self.groups)

    def taken_everywhere(self) -> bool:
        """Returns True if every node needs consumers: messages are not moved to other nodes, or (with scale-down and
        blocked senders) a consumer must free the memory that a scale-down waits for."""
        return not self.redistributes() or (self.departures and self.full_policy == "BLOCK")

    def redistributes(self) -> bool:
        return self.mode not in (OFF, STRICT)


def queue(
    name: str, address: str, routing_type: int, filter_text: str | None = None
) -> QueueConfig:
    made = QueueConfig()
    made.name = name
    made.address = address
    made.routing_type = routing_type
    made.filter_text = filter_text
    return made


def address_of(name: str, *queues: QueueConfig) -> AddressConfig:
    """Returns an address with these queues; without any, with an anycast one of its name."""
    made = AddressConfig(name)
    for each in queues or (queue(name, name, ANYCAST),):
        made.add(each)
    return made


def addresses(index: int) -> list[AddressConfig]:
    """Returns `orders` and `book`, anycast, and `prices`, multicast: `archive` everywhere, `alerts` on the first."""
    prices = address_of(PRICES, queue(ARCHIVE, PRICES, MULTICAST))
    if index == 0:
        prices.add(queue(ALERTS, PRICES, MULTICAST, "alert = TRUE"))
    return [address_of(ORDERS), address_of(BOOK), prices]


def backup_name(index: int) -> str:
    """Returns the name of the other machine of a pair, the second one of a group."""
    return f"n{index}b"


def machines_of(index: int, shape: Shape) -> list[str]:
    """Returns the names of the machines of node `index`: two for a pair, two or three for a group."""
    if index in shape.groups:
        return [f"n{index}", backup_name(index), f"n{index}c"][: shape.groups[index]]
    return [f"n{index}", backup_name(index)] if index == shape.pair else [f"n{index}"]


def cluster_settings(index: int, count: int, shape: Shape, name: str) -> ClusterSettings:
    """Returns the settings of node `index` on machine `name`."""
    settings = ClusterSettings()
    settings.cluster_user = CLUSTER_USER
    settings.cluster_password = CLUSTER_PASSWORD
    names = [each for number in range(count) for each in machines_of(number, shape)]
    for each in names:
        settings.connectors[each] = ConnectorConfig(each, each, PORT)
    connection = ClusterConnectionConfig()
    connection.name = "sim"
    connection.connector = name
    connection.connection_ttl_ms = 6_000
    connection.message_load_balancing = shape.mode
    if shape.discovery:
        connection.discovery_group = GROUP
        discover(settings, name)
        for group in (settings.discovery_groups[GROUP], settings.broadcast_groups[0]):
            group.stack = stack(shape)
    else:
        connection.static = True
        # The members of a group find each other by these connectors.
        machines = [name] if index in shape.groups else machines_of(index, shape)
        own = (*machines, f"n{shape.joiner}")
        connection.static_connectors = [each for each in names if each not in own]
    settings.cluster_connections.append(connection)
    if index in shape.groups:
        settings.group_connectors = [each for each in machines_of(index, shape) if each != name]
    return settings


def stack(shape: Shape) -> JgroupsStack | None:
    """Returns the discovery protocol of a JGroups stack. Of TCPPING's hosts only the first is named, or its pair."""
    if not shape.stack:
        return None
    hosts = [(name, JGROUPS_PORT) for name in machines_of(0, shape)]
    return JgroupsStack(
        shape.stack,
        "simulated",
        "sim",
        address="230.5.6.7",
        port=JGROUPS_PORT,
        hosts=hosts,
        names=[HEADLESS],
        folder="/shared",
    )


def discover(settings: ClusterSettings, name: str) -> None:
    settings.discovery_groups[GROUP] = DiscoveryGroupConfig(
        GROUP, group_address=GROUP_ADDRESS, group_port=GROUP_PORT
    )
    settings.broadcast_groups.append(
        BroadcastGroupConfig(
            GROUP, group_address=GROUP_ADDRESS, group_port=GROUP_PORT, connectors=[name]
        )
    )


def security() -> Security:
    made = Security(True, CLUSTER_USER, CLUSTER_PASSWORD)
    made.add_user(USER, PASSWORD, ("all",))
    made.add_rule("#", {name: ("all",) for name in PERMISSIONS})
    return made


def journal_config(index: int, shape: Shape) -> JournalConfig:
    return JournalConfig(
        group_id(index) if index in shape.groups else bytes([index]) * 16,
        shape.segment_bytes,
        compact_min_segments=2,
        compact_percentage=50,
        block_size_bytes_max=shape.block_bytes,
    )


def group_id(index: int) -> bytes:
    """Returns the node id of a group: 16 bytes, not zeros."""
    return bytes([index + 128]) * 16


def node_config(
    index: int, shape: Shape, cluster: ClusterSettings | None, configured: list[AddressConfig]
) -> NodeConfig:
    """Returns a new configuration of node `node-<index>`, as a restarted process would read it."""
    broker = BrokerConfig()
    broker.name = f"n{index}"
    broker.addresses = configured
    broker.global_max_size_bytes = shape.memory_bytes
    broker.step_work_max = shape.step_work_max
    settings = AddressSettingsRepository()
    settings.add(
        "#",
        {
            "redistribution_delay_ms": shape.redistribution_delay_ms,
            "max_delivery_attempts": -1,
            "page_size_bytes": shape.page_bytes,
            "address_full_policy": shape.full_policy,
            "redelivery_delay_ms": shape.redelivery_delay_ms,
        },
    )
    journal = journal_config(index, shape)
    own = OwnSettings(parked_message_timeout_ms=shape.parked_timeout_ms)
    return NodeConfig(f"node-{index}", broker, settings, security(), journal, [], cluster, own)


def node_maker(index: int, count: int, shape: Shape, name: str) -> Callable[[Ports], Node]:
    """Returns a function that creates the node on machine `name` at each start, like a restarted process."""

    def make(ports: Ports) -> Node:
        members = 1 if shape.networked else count
        clustered = members > 1 or index in shape.groups
        cluster = cluster_settings(index, members, shape, name) if clustered else None
        config = node_config(index, shape, cluster, addresses(index))
        for subject in shape.subjects:
            subject.configure(index, config)
        return Node(config, ports)

    return make


def make_hosts(world: World, network: Network, count: int, shape: Shape) -> list[Host]:
    names = [f"n{index}" for index in range(count)]
    network.names[HEADLESS] = [(name, 0) for name in names]
    return [
        Host(world, network, name, name, PORT, node_maker(index, count, shape, name))
        for index, name in enumerate(names)
    ]
