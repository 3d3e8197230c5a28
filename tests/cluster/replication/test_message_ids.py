"""The message ids of a group: no epoch uses one that another epoch may have used."""

from __future__ import annotations

from tests.cluster.replication.group_rig import Group


def test_an_epoch_that_left_nothing_has_its_ids_for_itself() -> None:
    """Ids are numbers of files, too, and a follower may have a file of the lost epoch."""
    group = Group()
    active = group.active
    firsts = [active.node.broker.store.next_message_id]
    for _ in range(3):
        active.crash()  # before its first block is on the disk
        active.start()
        firsts.append(active.node.broker.store.next_message_id)
    group.run(100)
    active.crash()
    active.start()
    firsts.append(active.node.broker.store.next_message_id)
    for before, first in zip(firsts, firsts[1:], strict=False):
        assert first - before >= 1 << 32
