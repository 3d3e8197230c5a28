"""A passive member and the nodes that it hears."""

from __future__ import annotations

import random
import uuid

from atalanta.cluster.config import DiscoveryGroupConfig
from atalanta.cluster.discovery.discovering_backup import DiscoveringBackup
from atalanta.cluster.replication.passive.backup_config import (
    BackupConfig,
    BackupPorts,
    MemberIdentity,
)
from atalanta.ha.register_port import RegisterPort
from atalanta.kernel.ports import Disk, LargeFiles, Links, Timers, Wire
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.replication.machine_rig import RandomIds
from tests.cluster.replication.member_rig import KEY, LEASE, MS
from tests.kernel.broker_rig import RecordingTrace

OWN = uuid.UUID(int=7)
STRANGER = uuid.UUID(int=8)


class Dials(Links):
    """A network with one discovery group: it notes what is dialled."""

    def __init__(self) -> None:
        self.dialed: list[str] = []
        self.planted = 0  # a port at which dialling fails by a mistake

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        """Implements Links.join."""

    def dial_within(self, key: str, host: str, port: int, timeout_ms: int) -> None:
        if port == self.planted:
            raise ZeroDivisionError("planted")
        self.dialed.append(f"{host}:{port}")


class NoTimers(Timers):
    def set(self, key: str, at: int) -> None:
        """Implements Timers.set."""

    def cancel(self, key: str) -> None:
        """Implements Timers.cancel."""


class Rig:
    """A member that was started at 0."""

    def __init__(self, node_id: uuid.UUID | None, primary: bool = False) -> None:
        self.links = Dials()
        config = BackupConfig(
            "b", None if node_id is None else node_id.bytes, "", [], LEASE, primary, None, KEY,
        )  # fmt: skip
        self.trace = RecordingTrace()
        ports = BackupPorts(
            Wire(), Disk(), LargeFiles(), NoTimers(), self.links, RandomIds(random.Random(1)), self.trace,
            RegisterPort(), lambda data: False,
        )  # fmt: skip
        group = DiscoveryGroupConfig(name="d", group_address="231.7.7.7", group_port=9876)
        self.backup = DiscoveringBackup(config, ports, group, "own", False)
        self.backup.start(0)

    def hear(self, node_id: uuid.UUID, port: int, now: int = MS) -> None:
        announcement = Announcement(str(node_id), "x", [TransportConfiguration.tcp("c", "host", port)])
        self.backup.on_datagram(now, "discovery/d", encode_announcement(announcement))


def test_only_the_own_node_id_is_dialled_and_the_newest_address() -> None:
    rig = Rig(OWN)
    rig.hear(STRANGER, 1)
    rig.hear(OWN, 2)
    rig.hear(OWN, 2)
    rig.hear(OWN, 3)
    assert rig.links.dialed == ["host:2", "host:3"]
    rig.backup.on_timer(60_000 * MS, "discovery.expire.d")
    rig.hear(OWN, 3, 60_000 * MS)
    assert rig.links.dialed == ["host:2", "host:3", "host:3"], "it was silent, and is found again"


def test_a_new_primary_dials_all_and_founds_nothing_while_it_may_hear_somebody() -> None:
    rig = Rig(None, primary=True)
    for number in range(200):
        rig.hear(uuid.UUID(int=100 + number), 1000 + number)
    assert len(rig.links.dialed) == 100, "anybody can announce nodes"
    for number in range(100):
        rig.backup.on_dial_failed(2 * MS, f"active.host:{1000 + number}", "refused")
    assert not isinstance(rig.backup.outcome, MemberIdentity)


def test_a_mistake_at_a_datagram_does_not_end_the_member() -> None:
    rig = Rig(OWN)
    rig.trace.expects_failures = True
    rig.links.planted = 2
    rig.hear(OWN, 2)
    rig.hear(OWN, 3)
    assert rig.links.dialed == ["host:3"]
    ((name, fields),) = [each for each in rig.trace.events if each[0] == "command_failed"]
    assert fields["protocol"] == "datagram" and "planted" in str(fields["why"]), name
