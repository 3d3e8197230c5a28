"""Clients that send any well-formed packet at any time: no error gets out, the broker's books agree."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.transactions import xa
from tests.share import share
from tests.wire.core.server.random_client import Chaos


@pytest.mark.parametrize("seed", share(range(6)))
def test_any_packet_at_any_time(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(700):
        chaos.step()
    for conn in list(chaos.server.connections):
        chaos.server.lost(conn)
    chaos.server.protocol.resumable.end_all(chaos.server.now)
    for branch in chaos.server.broker.branches.list_prepared():
        chaos.server.broker.branches.end_by_operator(chaos.server.now, xa.identifier(branch.xid), seed % 2 == 0
        )
    chaos.server.settle()
    assert chaos.server.protocol.resumable.sessions == {}
    assert chaos.server.broker.branches.prepared == 0
    assert chaos.server.broker.branches.stored_bytes == 0
    invariants.validate(chaos.server.broker)
    assert chaos.server.protocol.shared.metadata == {}
    assert not chaos.server.broker.memory.waiting
    for queue in chaos.server.broker.queues.values():
        assert queue.consumers == []
        assert not queue.spec.temporary and not queue.spec.transient
        assert queue.delivering_count == 0
