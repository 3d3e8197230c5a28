"""Findings about members: different views of the topology, wrong announced addresses, different settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from atalanta.survey.findings.cluster_finding import (
    ERROR,
    NOTE,
    WARNING,
    ClusterFinding,
    delay_line,
)
from atalanta.survey.model.cluster import NOT_ADMITTED, LiveCluster, NodeView, Unreachable
from atalanta.survey.model.links import ClusterConnectionView
from atalanta.survey.texts import duration_text
from atalanta.wire.loopback import is_loopback

CONNECTOR: Final = '<connector name="…">tcp://{host}:{port}</connector>'
SAME_CREDENTIALS: Final = "<cluster-user>…</cluster-user> <cluster-password>…</cluster-password>, the same on all nodes"
START: Final = "start the node, or correct host and port of its <connector>"
STATIC: Final = "<static-connectors><connector-ref>…</connector-ref></static-connectors>"
RIGHTS: Final = "ask as a user with the permission manage (and view, with management-message-rbac)"
NOT_AGREED: Final = "not_agreed"  # the console shows the way to its form
CLOCKS_MS: Final = 5_000
WELL_KNOWN: Final = (("admin", "admin"), ("artemis", "artemis"), ("guest", "guest"))


def member_findings(
    cluster: LiveCluster, user: str | None, password: str | None
) -> Iterator[ClusterFinding]:
    yield from shared_ids(cluster)
    yield from connectors(cluster)
    yield from views(cluster)
    yield from one_way(cluster)
    yield from lost_members(cluster)
    yield from announced_addresses(cluster)
    yield from differences(cluster)
    yield from clocks(cluster)
    yield from versions(cluster)
    for node in cluster.nodes:
        yield from passwords(node, user, password)
        yield from silences(node)


def shared_ids(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds node ids used by two nodes. Members take them for one node, so messages for one may go to the other."""
    for each in cluster.shared:
        yield ClusterFinding(
            ERROR,
            "shared_node_id",
            cluster.label(each.node_id),
            f"another node, at {each.other}, has the same node id {each.node_id}:"
            " one data folder is a copy of the other",
            f"stop the node at {each.other}, delete the file node-id in its data folder, and start it again",
            {"member": each.node_id, "other": each.other},
        )


# -- connectors -----------------------------------------------------------------------------------
def connectors(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds connectors that fail, and nodes that have found no member."""
    passive = cluster.passive_places()
    for node in cluster.nodes:
        for connection in node.connections:
            known = passive | {link.address for link in connection.links.values()}  # see lost_members
            for at, why in connection.failures.items():
                if at not in known:
                    yield ClusterFinding(
                        WARNING,
                        "connector_failed",
                        node.label,
                        f"cluster connection {connection.name} has no link to {at}: {why}",
                        SAME_CREDENTIALS if "cluster-password" in why else f"{START} at {at}",
                        {"connector": at, "why": why},
                    )
            if not connection.failures and not connection.links and searches(node, connection):
                yield ClusterFinding(
                    WARNING,
                    "no_member",
                    node.label,
                    f"cluster connection {connection.name} has found no other member",
                    f"{START}; {SAME_CREDENTIALS}",
                )


def searches(node: NodeView, connection: ClusterConnectionView) -> bool:
    """Returns whether the connection looks for members. An Artemis node does not tell which connectors are its own."""
    if connection.discovery_group is not None:
        return True
    return not node.ours and len(connection.static_connectors) > 1


def fails(node: NodeView) -> bool:
    return any(connection.failures for connection in node.connections)


# -- topology -------------------------------------------------------------------------------------
def views(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds members that do not know every other member."""
    known: dict[str, None] = {}
    for node in cluster.nodes:
        if node.connections:
            known.update(dict.fromkeys([*node.members, node.node_id]))
    for node in cluster.nodes:
        missing = [each for each in known if each not in node.members and each != node.node_id]
        if missing and node.connections and not fails(node):
            names = ", ".join(cluster.label(each) for each in missing)
            yield ClusterFinding(
                WARNING,
                "topology_differs",
                node.label,
                f"does not know {names}, which other members know",
                STATIC,
                {"missing": missing},
            )


def one_way(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds links without a link back: messages flow only one way."""
    for node in cluster.nodes:
        linked = node.linked()
        for other in cluster.nodes:
            if other is node or other.node_id in linked or node.node_id not in other.linked():
                continue
            # A node without known members only accepts: perhaps on purpose (the end of a chain).
            silent = all(
                not one.static_connectors and one.discovery_group is None
                for one in node.connections
            )
            yield ClusterFinding(
                NOTE if silent else WARNING,
                "one_way_link",
                node.label,
                f"no link to {other.label}, which has one to here: messages flow one way only",
                f"{STATIC} with a connector to {other.at}",
                {"member": other.node_id},
            )


def lost_members(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds members that others forwarded to before, but no longer. For a member that left for good only the queue
    remains."""
    missed: dict[str, list[str]] = {}
    since: dict[str, int] = {}
    expected: dict[str, bool] = {}
    for node in cluster.nodes:
        linked = node.linked()
        known = {each.forwards_to for each in node.queues.values() if each.forwards_to}
        for connection in node.connections:
            for node_id, link in connection.links.items():
                known.add(node_id)
                if not link.linked:
                    expected[node_id] = True
                    since[node_id] = min(since.get(node_id, 1 << 62), link.away_since_ms or 1 << 62)
        for node_id in sorted(known):
            if node_id not in linked and cluster.node(node_id) is None:
                missed.setdefault(node_id, []).append(node.label)
    now_ms = int(time.time() * 1_000)
    for node_id, names in missed.items():
        began = since.get(node_id, 1 << 62)
        long = f" for {duration_text(now_ms - began)}" if began < 1 << 62 else ""
        yield ClusterFinding(
            WARNING if node_id in expected else NOTE,
            "member_away",
            cluster.label(node_id),
            f"is away{long}: no link from {', '.join(names)}",
            "start it again; if it is gone for good, delete its store-and-forward queues when they are empty",
            {"member": node_id, "missed_by": names},
        )


# -- addresses ------------------------------------------------------------------------------------
def announced_addresses(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds members whose announced address does not lead to them, from everywhere."""
    advertised: dict[tuple[str, str], list[str]] = {}
    for node in cluster.nodes:
        for node_id, address in node.members.items():
            advertised.setdefault((node_id, address), []).append(node.label)
    hosts = [address.rpartition(":")[0] for _, address in advertised]
    spread = any(not is_loopback(host) and not _is_unconnectable(host) for host in hosts)
    for (node_id, address), _ in advertised.items():
        host = address.rpartition(":")[0]
        failed = next(
            (
                each
                for each in cluster.unreachable
                if each.node_id == node_id and each.at == address
            ),
            None,
        )
        if _is_unconnectable(host):
            yield _wrong(cluster, node_id, address, "which cannot be connected to")
        elif is_loopback(host) and spread:
            yield _wrong(
                cluster,
                node_id,
                address,
                "which only its own host can reach, and others are elsewhere",
            )
        elif failed is not None:
            yield from _unreachable(cluster, node_id, address, failed)
    passive = cluster.passive_places()
    for each in cluster.unreachable:
        if each.node_id is None and each.at not in passive:
            yield ClusterFinding(WARNING, "unreachable", each.at, f"cannot be asked: {each.why}", "")


def _wrong(cluster: LiveCluster, node_id: str, address: str, why: str) -> ClusterFinding:
    port = address.rpartition(":")[2]
    return ClusterFinding(
        ERROR,
        "wrong_address",
        cluster.label(node_id),
        f"advertises {address}, {why}",
        CONNECTOR.format(host="its-host", port=port),
        {"member": node_id, "address": address},
    )


def _unreachable(
    cluster: LiveCluster, node_id: str, address: str, failed: Unreachable
) -> Iterator[ClusterFinding]:
    if failed.found is not None:
        yield _wrong(
            cluster, node_id, address, f"but node {cluster.label(failed.found)} answers there"
        )
        return
    node = cluster.node(node_id)
    if node is not None:
        yield _wrong(cluster, node_id, address, f"but answers at {node.at} only ({failed.why})")
        return
    linked = [each.label for each in cluster.nodes if node_id in each.linked()]
    if failed.why == NOT_ADMITTED:
        yield ClusterFinding(
            WARNING,
            NOT_AGREED,
            cluster.label(node_id),
            f"was not asked at {address}: {failed.why}",
            f"name {address} on the command line of the console, or agree to it on the page of the cluster",
            {"member": node_id, "address": address},
        )
        return
    seen = f"; {', '.join(linked)} can" if linked else "; no member has a link to it"
    yield ClusterFinding(
        WARNING if linked else ERROR,
        "unreachable",
        cluster.label(node_id),
        f"advertises {address}, where it cannot be asked from here ({failed.why}){seen}",
        CONNECTOR.format(host="its-host", port=address.rpartition(":")[2]) if not linked else "",
        {"member": node_id, "address": address},
    )


def _is_unconnectable(host: str) -> bool:
    return host.strip("[]") in ("0.0.0.0", "::", "", "None", "null")


# -- what must be alike -----------------------------------------------------------------------------
SHARED_SETTINGS: Final[dict[str, tuple[str, Callable[[ClusterConnectionView], object]]]] = {
    "message-load-balancing": (WARNING, lambda one: one.load_balancing),
    "max-hops": (NOTE, lambda one: one.max_hops),
    "address": (NOTE, lambda one: one.address),
    "use-duplicate-detection": (WARNING, lambda one: str(one.duplicate_detection).lower()),
}


def differences(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds cluster connections of one name with different settings."""
    by_name: dict[str, list[tuple[NodeView, ClusterConnectionView]]] = {}
    for node in cluster.nodes:
        for connection in node.connections:
            by_name.setdefault(connection.name, []).append((node, connection))
    for name, members in by_name.items():
        for option, (severity, read) in SHARED_SETTINGS.items():
            values: dict[str, list[str]] = {}
            for node, connection in members:
                values.setdefault(str(read(connection)), []).append(node.label)
            if len(values) < 2:
                continue
            usual = max(values, key=lambda value: len(values[value]))
            for value, nodes in values.items():
                if value != usual:
                    yield ClusterFinding(
                        severity,
                        "settings_differ",
                        ", ".join(nodes),
                        f"{option} of cluster connection {name} is '{value}', elsewhere '{usual}'",
                        f"<{option}>{usual}</{option}>",
                        {"option": option, "value": value, "elsewhere": usual},
                    )
    yield from _delays(cluster)


def _delays(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    known: dict[str, dict[str, int]] = {}
    for node in cluster.nodes:
        for address, delay_ms in node.redistribution_delay_ms.items():
            known.setdefault(address, {})[node.label] = delay_ms
    for address, by_node in known.items():
        off = [name for name, delay_ms in by_node.items() if delay_ms < 0]
        if off and len(off) < len(by_node):
            usual = next(delay_ms for delay_ms in by_node.values() if delay_ms >= 0)
            yield ClusterFinding(
                WARNING,
                "settings_differ",
                ", ".join(off),
                f"redistribution-delay of {address} is -1 here, {usual} elsewhere",
                delay_line(address, usual),
                {"option": "redistribution-delay", "address": address},
            )


def clocks(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds clocks that differ: messages expire, and are delivered by schedule, by the clock of their node."""
    ahead = {
        node.label: node.clock_ms - node.asked_ms
        for node in cluster.nodes
        if node.clock_ms is not None and node.asked_ms is not None
    }
    if not ahead:
        return
    usual = sorted(ahead.values())[len(ahead) // 2]
    for name, ahead_ms in ahead.items():
        if abs(ahead_ms - usual) > CLOCKS_MS:
            way = "ahead of" if ahead_ms > usual else "behind"
            text = f"its clock is {duration_text(abs(ahead_ms - usual))} {way} that of the other nodes"
            remedy = "let a time service (NTP) set the clocks of all machines"
            yield ClusterFinding(WARNING, "clock_differs", name, text, remedy, {"difference_ms": ahead_ms - usual})


def versions(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Finds Atalanta nodes of several releases: right during an upgrade, else forgotten."""
    found: dict[str, list[str]] = {}
    for node in cluster.nodes:
        if node.ours and node.version:
            found.setdefault(node.version, []).append(node.label)
    if len(found) > 1:
        usual = max(found, key=lambda version: len(found[version]))
        for version, names in found.items():
            if version != usual:
                text = f"its release is {version}, elsewhere {usual}"
                yield ClusterFinding(NOTE, "versions_differ", ", ".join(names), text, "", {"version": version})


def silences(node: NodeView) -> Iterator[ClusterFinding]:
    """Finds what a node did not tell: what is wrong there is not seen, so it is more than a note."""
    for text in node.unasked:
        yield ClusterFinding(WARNING, "not_told", node.label, f"could not be asked for {text}", RIGHTS)
    if node.unsupported:
        text = f"its release does not tell: {', '.join(node.unsupported)}"
        yield ClusterFinding(NOTE, "not_supported", node.label, text, "")


# -- passwords --------------------------------------------------------------------------------------
def passwords(node: NodeView, user: str | None, password: str | None) -> Iterator[ClusterFinding]:
    if not node.security_enabled:
        yield ClusterFinding(
            WARNING,
            "security_off",
            node.label,
            "security is off: every client may do everything",
            "<security-enabled>true</security-enabled>",
        )
        return
    if node.default_cluster_password:
        yield ClusterFinding(
            ERROR,
            "default_cluster_password",
            node.label,
            "accepts the cluster user with the default password: that user may do everything",
            "<cluster-user>…</cluster-user> <cluster-password>…</cluster-password>",
        )
    if (user, password) in WELL_KNOWN:
        yield ClusterFinding(
            WARNING,
            "well_known_password",
            node.label,
            f"accepts {user} with a very common password",
            f"{user} = …  (artemis-users.properties; `atalanta user reset {user}`)",
        )
