"""Spark talks to the node that it names, whatever that node tells of its cluster."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from atalanta.client.options import Server
from atalanta.spark.gateway.core_gateway import CoreGateway, connect
from atalanta.spark.gateway.gateway import Credentials
from tests.client.fake_server import ServerThread, meet
from tests.wire.core.client.fake_broker import PASSWORD

LOGIN = Credentials("u", PASSWORD, 5.0, 10.0)
POLICY = "connectionLoadBalancingPolicyClassName"


@pytest.mark.parametrize("options", ["", "?useTopologyForLoadBalancing=true", f"?{POLICY}=RoundRobin"])
def test_a_gateway_is_at_the_member_that_was_named(options: str) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(ServerThread("q")) for _ in range(3)]
        meet(servers)
        for named in servers:
            for _ in range(3):
                gateway = connect(f"tcp://127.0.0.1:{named.port}{options}", LOGIN)
                assert isinstance(gateway, CoreGateway)
                stack.callback(gateway.close)
                assert gateway.connection.server == Server("127.0.0.1", named.port)
        assert [len(each.broker.connections) for each in servers] == [3, 3, 3]
