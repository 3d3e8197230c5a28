"""Random plays: nodes crash and come back, links break, and no group is ever read at two nodes."""

from __future__ import annotations

from random import Random

import pytest

from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Client, Rig
from tests.cluster.grouping.grouping_rig import grouped_cluster, send_group

GROUPS = 12


class Play:
    """Senders at every node send to any of the groups; a reader at every node, most of the time."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rig = Rig(seed)
        self.hosts = grouped_cluster(
            self.rig, change=lambda config: setattr(config, "timeout_ms", 1_500)
        )
        self.readers: list[Client] = []
        self.senders: list[Client] = []
        for host in self.hosts:
            self.senders.append(self.rig.client(host))
            reader = Reading(self.rig, host)
            self.readers.append(reader)
        self.rig.run(0.5)
        self.down: list[Host] = []
        self.sent = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._step()
            self.rig.run(self.random.choice((0.001, 0.01, 0.1, 0.5)))
        for host in self.down:
            host.start()
        self.rig.formed(60)
        self.rig.run(20)

    def _step(self) -> None:
        what = self.random.random()
        if what < 0.8:
            for sender in self.senders:
                if sender.ready:
                    for _ in range(self.random.randrange(4)):
                        self.sent += 1
                        send_group(sender, f"g{self.random.randrange(GROUPS)}", f"{self.sent}")
        elif what < 0.9 and len(self.down) < 2:
            up = [host for host in self.hosts if host.up]
            host = self.random.choice(up)
            host.crash()
            self.down.append(host)
        elif self.down:
            self.down.pop(self.random.randrange(len(self.down))).start()


class Reading(Client):
    """Consumes again after every loss of its connection."""

    def __init__(self, rig: Rig, host: Host) -> None:
        rig.clients += 1
        super().__init__(rig.world, rig.network, f"reader{rig.clients}", host.name)
        self.start()

    def on_ready(self) -> None:
        super().on_ready()
        self.consume("orders")


@pytest.mark.parametrize("seed", range(12))
def test_a_group_never_splits(seed: int) -> None:
    play = Play(seed)
    play.run(60)
    where: dict[str, dict[str, bool]] = {}
    for reader in play.readers:
        for message in reader.messages:
            group = message.message.group_id
            assert group is not None
            where.setdefault(group, {})[reader.target] = True
    split = {group: list(nodes) for group, nodes in where.items() if len(nodes) > 1}
    assert not split, split
    got = {body for reader in play.readers for body in reader.bodies}
    confirmed = sum(len(sender.answers) for sender in play.senders)
    assert len(got) >= confirmed > 50
