"""Nine connections of one factory are three at each of three real nodes, however the URL names them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest

from atalanta.client import ConnectionFactory, connect
from atalanta.client.blocking import ConnectionFactory as BlockingFactory
from tests.broker_process import BrokerProcess
from tests.broker_xml import LOGIN, write_broker_xml
from tests.ports import free_port
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.process

GROUPS = """
<connectors><connector name="own">tcp://127.0.0.1:{port}</connector>{others}</connectors>
{login}
<broadcast-groups>
  <broadcast-group name="udp"><group-address>231.7.7.77</group-address><group-port>{udp}</group-port>
    <local-bind-address>127.0.0.1</local-bind-address>
    <broadcast-period>200</broadcast-period><connector-ref>own</connector-ref></broadcast-group>
  <broadcast-group name="stack"><jgroups-file>stack.xml</jgroups-file><jgroups-channel>c1</jgroups-channel>
    <broadcast-period>200</broadcast-period><connector-ref>own</connector-ref></broadcast-group>
</broadcast-groups>
<cluster-connections><cluster-connection name="x"><connector-ref>own</connector-ref>
<message-load-balancing>OFF</message-load-balancing>
<static-connectors>{references}</static-connectors></cluster-connection></cluster-connections>
"""
USER = "user=u&password=p"


class Nodes:
    """Three nodes of a cluster, which announce themselves in every way."""

    def __init__(self, folder: Path) -> None:
        self.ports = [free_port() for _ in range(3)]
        self.udp, self.classic, stack_port = free_port(), free_port(), free_port()
        stack = f'<TCP bind_addr="127.0.0.1" bind_port="{stack_port}" port_range="3"/>'
        stack += f'<TCPPING initial_hosts="127.0.0.1[{stack_port}]" port_range="1"/>'
        group = f"multicast%3A//239.255.2.4%3A{self.classic}%3Fgroup%3Dg%26interface%3D127.0.0.1"
        self.files: list[Path] = []
        for port in self.ports:
            others = [each for each in self.ports if each != port]
            more = GROUPS.format(
                port=port,
                login=LOGIN,
                udp=self.udp,
                others="".join(f'<connector name="to{each}">tcp://127.0.0.1:{each}</connector>' for each in others),
                references="".join(f"<connector-ref>to{each}</connector-ref>" for each in others),
            )
            options = f"?discoveryUri={group}"
            file = write_broker_xml(folder / str(port), port, f"n{port}", more, options=options)
            file.with_name("stack.xml").write_text(f'<config xmlns="urn:org:jgroups">{stack}</config>')
            self.files.append(file)
        self.stack = self.files[0].with_name("stack.xml")

    def url(self, form: str) -> str:
        a, b, c = (f"tcp://127.0.0.1:{port}" for port in self.ports)
        return {
            "list": f"({a},{b},{c})?{USER}",
            "one server": f"{b}?{USER}",
            "udp": f"udp://231.7.7.77:{self.udp}?localBindAddress=127.0.0.1&{USER}",
            "jgroups": f"jgroups://c1?file={self.stack}&{USER}",
            "failover": f"failover:({a},{b},{c})?{USER}",
            "failover of one": f"failover:{c}?{USER}",
            "static": f"static:({a},{b},{c})?{USER}",
            "discovery static": f"discovery:(static:({a},{b},{c}))?{USER}",
            "discovery multicast": (
                f"discovery:(multicast://239.255.2.4:{self.classic}?group=g&interface=127.0.0.1)?{USER}"
            ),
        }[form]


FORMS = (
    *("list", "one server", "udp", "jgroups"),
    *("failover", "failover of one", "static", "discovery static", "discovery multicast"),
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    found = Nodes(tmp_path_factory.mktemp("nodes"))
    with ExitStack() as stack:
        for file in found.files:
            stack.enter_context(BrokerProcess(file))
        asyncio.run(met(found))
        yield found


async def met(nodes: Nodes) -> None:
    """Waits until each node knows the others."""
    for port in nodes.ports:
        async with asyncio.timeout(DEADLINE_S), connect(f"tcp://127.0.0.1:{port}?{USER}") as connection:
            while len(connection.topology) < 3:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("form", FORMS)
def test_three_at_each_of_three(form: str, nodes: Nodes) -> None:
    async def main() -> Counter[int]:
        async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
            factory = ConnectionFactory(nodes.url(form))
            made = [await stack.enter_async_context(factory.connect()) for _ in range(9)]
            return Counter(each.server.port for each in made if each.server is not None)

    assert asyncio.run(main()) == dict.fromkeys(nodes.ports, 3)


@pytest.mark.parametrize("form", FORMS)
def test_of_a_blocking_factory_too(form: str, nodes: Nodes) -> None:
    factory = BlockingFactory(nodes.url(form))
    with ExitStack() as stack:
        made = [stack.enter_context(factory.connect()) for _ in range(9)]
        assert Counter(each.server.port for each in made if each.server is not None) == dict.fromkeys(nodes.ports, 3)


@pytest.mark.parametrize("number", range(3))
def test_management_is_that_of_the_named_node(number: int, nodes: Nodes) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            for options in (USER, f"{USER}&stay=true", f"{USER}&useTopologyForLoadBalancing=true"):
                async with connect(f"tcp://127.0.0.1:{nodes.ports[number]}?{options}") as connection:
                    assert await connection.management().get("broker", "Name") == f"n{nodes.ports[number]}"

    asyncio.run(main())
