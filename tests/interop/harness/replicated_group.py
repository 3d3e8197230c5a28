"""A replicated group of our nodes, with other nodes beside it if wanted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from atalanta.runtime.ha.group.member_status import MemberStatus, read_status

from .broker_xml import Cluster, Shape
from .jms import until
from .lineup import Lineup
from .node import BrokerProcess

HA = "<ha-policy><replication><{role}>{options}</{role}></replication></ha-policy>"
# How the JMS clients of a group connect. A call that was under way at a failover is sometimes never answered, whatever
# the broker: it waits for callTimeout.
OPTIONS = "ha=true&useTopologyForLoadBalancing=false&reconnectAttempts=-1&retryInterval=50&callTimeout=3000"
TAKEOVER_SECONDS = 60.0


class ReplicatedGroup:
    """`size` members, not started. `manager` are the lines of [ha.manager], `others` the kinds of further nodes of the
    cluster, `core` the elements that the node of an index has besides."""

    def __init__(
        self, brokers: Lineup, manager: str, size: int = 2, others: tuple[str, ...] = (), failback: bool = False,
        addresses: str = "", lease_ms: int = 1000, core: dict[int, str] | None = None, connectors: bool = False,
    ) -> None:
        own = f"[ha]\nlease_ms = {lease_ms}\nfailback_after_s = 1\n[ha.manager]\n{manager}"

        def shaping(index: int, ports: list[int]) -> Shape:
            peers = tuple(port for port in ports if port != ports[index])
            more = (core or {}).get(index, "")
            named = (("group", ports[0]),) if connectors else ()
            if index >= size:
                return Shape(Cluster(peers), core=more, addresses=addresses, connectors=named)
            options = "<allow-failback>true</allow-failback>" if failback and index else ""
            policy = HA.format(role="backup" if index else "primary", options=options)
            return Shape(Cluster(peers), core=policy + more, addresses=addresses, own=own, connectors=named)

        nodes = brokers.cluster("+".join(["atalanta"] * size + list(others)), shaping)
        self.members = nodes[:size]
        self.others = nodes[size:]
        servers = ",".join(f"tcp://127.0.0.1:{node.port}" for node in self.members)
        self.url = f"({servers})?{OPTIONS}"

    def start(self) -> None:
        """Starts all; every backup is in sync then."""
        for node in self.others:
            node.start()
        first, *backups = self.members
        first.launch()
        until(f"{first.name} serves", lambda: role(first) == "active", TAKEOVER_SECONDS)
        for node in backups:
            node.launch()
        self.until_synced()

    def active(self, other_than: BrokerProcess | None = None) -> BrokerProcess:
        """Returns the member that serves, when there is one."""
        found: list[BrokerProcess] = []

        def one() -> bool:
            found[:] = [node for node in self.members if role(node) == "active"]
            return len(found) == 1 and found[0] is not other_than

        until("one member serves", one, TAKEOVER_SECONDS)
        return found[0]

    def until_synced(self) -> None:
        """Waits until every other member that runs follows, in sync."""

        def all_follow() -> bool:
            active = self.active()
            epoch = int(re.findall(r"member_active .* epoch=(\d+)", active.log.read_text(errors="replace"))[-1])
            states = {node: status(node) for node in self.members if node.running}
            # A file may be of an earlier epoch, or of an earlier life of the process.
            if any(state is None or state.epoch != epoch or not role(node) for node, state in states.items()):
                return False
            found = {state.member: state for state in states.values() if state is not None}
            serves = states.pop(active)
            assert serves is not None
            followers = {each.member for each in serves.followers if each.in_sync}
            return serves.state == "active" and followers == found.keys() - {serves.member}

        until("all are in sync", all_follow, TAKEOVER_SECONDS)

    def __enter__(self) -> ReplicatedGroup:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        """Ends what still runs; after a failure the ends of the logs are printed."""
        for node in [*self.members, *self.others]:
            if kind is not None:
                print(f"--- {node.name}, port {node.port}\n{node.tail(60)}")
            node.close()


def role(node: BrokerProcess) -> str:
    """Returns the role that a running member has printed last."""
    if not node.running:
        return ""
    found = re.findall(r"^ready role=(\w+)", node.log.read_text(errors="replace"), re.MULTILINE)
    return found[-1] if found else ""


def status(node: BrokerProcess) -> MemberStatus | None:
    """Returns what `atalanta ha status` shows of a member; None before it has said anything."""
    return read_status(node.folder / "data" / "journal")


def hand_over(node: BrokerProcess) -> None:
    """`atalanta ha handover`; the node is passive then."""
    command = [sys.executable, "-m", "atalanta", "ha", "handover", str(node.folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    until("it is passive", lambda: role(node) == "passive")


def kill_broker(node: BrokerProcess) -> None:
    """Kills the broker; its guard ends behind it."""
    _kill(node, "pid")


def kill_guard(node: BrokerProcess) -> None:
    """Kills the guard; the system kills the broker, and nobody proves that."""
    _kill(node, "guard")


def _kill(node: BrokerProcess, which: str) -> None:
    """Kills a process that a member has named, and waits for the end of what was started."""
    pid = re.findall(rf"guard_started .*\b{which}=(\d+)", node.log.read_text(errors="replace"))[-1]
    os.kill(int(pid), signal.SIGKILL)
    assert node.await_end() == 128 + signal.SIGKILL
