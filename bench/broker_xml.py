"""The broker.xml of a run: the one that `artemis create` writes, with the bench's port, queues and cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lxml import etree

CORE = "urn:activemq:core"
QUEUE_PREFIX = "bench.q"
NO_OPTIONS: Mapping[str, str] = {}
LOCK_MANAGER = "org.apache.activemq.artemis.lockmanager.file.FileBasedLockManager"


@dataclass(frozen=True)
class Store:
    """The shared folder of a pair, and the role of the node: "primary" or "backup"."""

    folder: str
    role: str


@dataclass(frozen=True)
class Replica:
    """The role of a node in a replicated pair, "primary" or "backup", and the folder of their lock manager; with ""
    they have none."""

    role: str
    locks_folder: str


@dataclass(frozen=True)
class Plan:
    """What a broker of the bench has."""

    queues: int = 8
    topics: tuple[int, ...] = ()  # for each an address with so many durable subscriptions
    peer_ports: tuple[int, ...] = ()  # of the other nodes of its cluster
    memory: str = ""  # for messages; empty: the broker's default
    store: Store | None = None
    replica: Replica | None = None
    protocols: str = "CORE"
    ring_size: int = 0  # of the anycast queues: nobody consumes, and they keep only so many; 0: all


def topic_address(subscribers: int) -> str:
    """Its subscriptions are this name, ".s" and a number from 0."""
    return f"bench.topic{subscribers}"


def edited(created: str, name: str, port: int, plan: Plan) -> str:
    """`created` is the text that `artemis create` wrote; all that is not named here stays as it is."""
    root = etree.fromstring(created.encode())
    core = root.find(f"{{{CORE}}}core")
    if core is None:
        raise ValueError("the broker.xml that Artemis created has no <core>")
    _only(core, "name").text = name
    if plan.memory:
        _only(core, "global-max-size").text = plan.memory
    acceptors = _emptied(core, "acceptors")
    _add(acceptors, "acceptor", f"tcp://127.0.0.1:{port}?protocols={plan.protocols}", name="artemis")
    addresses = _emptied(core, "addresses")
    for number in range(plan.queues):
        name = f"{QUEUE_PREFIX}{number}"
        _address(addresses, name, "anycast", [name], {"ring-size": str(plan.ring_size)} if plan.ring_size else {})
    for subscribers in plan.topics:
        address = topic_address(subscribers)
        queues = [f"{address}.s{number}" for number in range(subscribers)]
        _address(addresses, address, "multicast", queues)
    for dead in ("DLQ", "ExpiryQueue"):
        _address(addresses, dead, "anycast", [dead])
    if plan.peer_ports:
        _cluster(core, port, plan.peer_ports)
    if plan.store is not None:
        _shared_store(core, plan.store)
    if plan.replica is not None:
        _replication(core, plan.replica)
    return etree.tostring(root, pretty_print=True, encoding="unicode")


def _address(
    addresses: etree._Element, name: str, kind: str, queues: list[str], options: Mapping[str, str] = NO_OPTIONS
) -> None:
    routing = _add(_add(addresses, "address", name=name), kind)
    for queue in queues:
        _add(routing, "queue", name=queue, **options)


def _cluster(core: etree._Element, port: int, peer_ports: tuple[int, ...]) -> None:
    _add(core, "cluster-user", "bench-cluster")
    _add(core, "cluster-password", "bench-cluster-secret")
    connectors = _add(core, "connectors")
    _add(connectors, "connector", f"tcp://127.0.0.1:{port}", name="self")
    for peer in peer_ports:
        _add(connectors, "connector", f"tcp://127.0.0.1:{peer}", name=f"peer-{peer}")
    connection = _add(_add(core, "cluster-connections"), "cluster-connection", name="bench")
    _add(connection, "connector-ref", "self")
    _add(connection, "retry-interval", "200")
    _add(connection, "message-load-balancing", "ON_DEMAND")
    _add(connection, "max-hops", "1")
    members = _add(connection, "static-connectors")
    for peer in peer_ports:
        _add(members, "connector-ref", f"peer-{peer}")
    for setting in core.iter(f"{{{CORE}}}address-setting"):
        if setting.get("match") == "#":
            _add(setting, "redistribution-delay", "0")


def _shared_store(core: etree._Element, store: Store) -> None:
    """The killed process stays the backup of the other one: there is no failback."""
    for name in ("paging", "bindings", "journal", "large-messages"):
        _only(core, f"{name}-directory").text = f"{store.folder}/{name}"
    policy = _add(_add(core, "ha-policy"), "shared-store")
    role = _add(policy, store.role)
    _add(role, "failover-on-shutdown", "true")
    if store.role == "backup":
        _add(role, "allow-failback", "false")


def _replication(core: etree._Element, replica: Replica) -> None:
    """Artemis' form with a lock manager: without one its pairs can lose messages. They vote then."""
    role = _add(_add(_add(core, "ha-policy"), "replication"), replica.role)
    if replica.locks_folder:
        manager = _add(role, "manager")
        _add(manager, "class-name", LOCK_MANAGER)
        properties = _add(manager, "properties")
        _add(properties, "property", key="locks-folder", value=replica.locks_folder)
    elif replica.role == "primary":
        _add(role, "check-for-active-server", "true")  # or a primary that comes back serves beside its backup
    if replica.role == "backup":
        _add(role, "allow-failback", "false")


def _only(core: etree._Element, name: str) -> etree._Element:
    found = core.find(f"{{{CORE}}}{name}")
    return found if found is not None else _add(core, name)


def _emptied(core: etree._Element, name: str) -> etree._Element:
    found = _only(core, name)
    for child in list(found):
        found.remove(child)
    return found


def _add(
    parent: etree._Element, tag: str, text: str | None = None, **attributes: str
) -> etree._Element:
    child = etree.SubElement(parent, f"{{{CORE}}}{tag}", attributes)
    child.text = text
    return child
