"""Queues and topics of the `<jms>` section that files of version 1 have beside `<core>`."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError

JMS = """<jms xmlns="urn:activemq:jms">
<connection-factory name="cf"/>
<queue name="orders"><entry name="/queue/orders"/><selector string="price &gt; 10"/></queue>
<queue name="news.in"><durable>false</durable></queue>
<topic name="news"/></jms>"""
CORE = """<core xmlns="urn:activemq:core">
<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor></acceptors>
<addresses><address name="own"><anycast><queue name="own"/></anycast></address></addresses></core>"""


@pytest.mark.parametrize("sections", [JMS + CORE, CORE + JMS])
def test_they_are_addresses_as_artemis_2_has_them(tmp_path: Path, sections: str) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(f'<configuration xmlns="urn:activemq">{sections}</configuration>')
    configuration = read_broker_xml(path)
    addresses = {each.name: each for each in configuration.broker.addresses}
    (orders,) = addresses["orders"].queues
    assert addresses["orders"].anycast and (orders.name, orders.filter_text) == ("orders", "price > 10")
    assert [queue.durable for queue in addresses["news.in"].queues] == [False]
    assert addresses["news"].multicast and not addresses["news"].queues
    assert "own" in addresses
    assert [each.name for each in configuration.unsupported] == ["connection-factory"]


def test_what_is_wrong_in_it_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(f"<configuration><jms>\n<queue/>\n<topic/></jms>{CORE}</configuration>")
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    assert sorted(problem.line for problem in caught.value.problems) == [2, 3]
