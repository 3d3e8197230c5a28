"""A queue that has the name of a member's store-and-forward queue, such as one of an old journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.problems import ConfigError
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, both, count, linked
from tests.config.sections.section_rig import read

NAME = "$.artemis.internal.sf.test.node-1"


@pytest.mark.parametrize("address", ["other", NAME])
def test_the_node_says_so_when_the_member_comes_and_goes_on(rig: Rig, address: str) -> None:
    first = rig.node(peers=[1, 2], mode="STRICT", queues=[*both(), queue(NAME, address, ANYCAST)])
    second = rig.node(peers=[0], mode="STRICT")
    third = rig.node(peers=[0], mode="STRICT")
    for host in rig.hosts:
        host.start()
    rig.run(10)
    assert all(host.up for host in rig.hosts)
    told = rig.events("store_and_forward_name_taken")
    assert len(told) == 1 and NAME in told[0] and "delete it" in told[0]
    assert [linked(first), linked(third)] == [1, 2]  # of the first, to the third alone
    rig.stored(first, "orders", [bytes([number]) for number in range(4)], ANYCAST)
    rig.until(lambda: count(third, "orders") == 2)
    assert [count(first, "orders"), count(first, NAME), count(second, "orders")] == [2, 0, 0]


def test_a_queue_in_the_configuration_with_such_a_name_is_refused(tmp_path: Path) -> None:
    core = """<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor></acceptors>
    <addresses><address name="other"><anycast><queue name="%s"/></anycast></address></addresses>
    <internal-naming-prefix>%s</internal-naming-prefix>"""
    with pytest.raises(ConfigError, match=r"2: queue '\$\.artemis\.internal\.sf\.test\.node-1': names that begin with"):
        read(tmp_path, core % (NAME, "$.artemis.internal."))
    read(tmp_path, core % (NAME, "$.mine."))
