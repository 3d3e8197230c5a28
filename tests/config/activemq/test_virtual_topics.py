"""Virtual topics of `<destinationInterceptors>`."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.config.activemq.classic_files import classic_file, findings, read

INTERCEPTORS = (
    "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>{}</virtualDestinations>"
    "</virtualDestinationInterceptor></destinationInterceptors>"
    '<transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:61616"/></transportConnectors>'
)


@pytest.mark.parametrize(
    ("attributes", "form"),
    [
        ('name="a.>" prefix="C.*."', "C.*.a.>;2"),
        ('name="a.>" prefix="C.*." local="true"', "C.*.a.>;2;local=true"),
        ('name="a.>" local="true" selectorAware="true"', "Consumer.*.a.>;2;selectorAware=true;local=true"),
    ],
)
def test_the_queues_of_a_virtual_topic(tmp_path: Path, attributes: str, form: str) -> None:
    configuration = read(classic_file(tmp_path, INTERCEPTORS.format(f"<virtualTopic {attributes}/>")))
    (acceptor,) = configuration.acceptors
    assert acceptor.options(OpenWireAcceptor).virtual_topic_forms == form
    assert not [each for each in findings(configuration) if "virtualTopic" in each]


@pytest.mark.parametrize(
    ("attributes", "demand", "of_queues"),
    [
        ("", False, False),
        ('useVirtualDestSubs="true"', True, False),
        ('useVirtualDestSubs="true" useVirtualDestSubsOnCreation="true"', True, True),
    ],
)
def test_demand_through_virtual_destinations(tmp_path: Path, attributes: str, demand: bool, of_queues: bool) -> None:
    configuration = read(classic_file(tmp_path, INTERCEPTORS.format("<virtualTopic/>"), attributes))
    broker = configuration.broker
    assert (broker.virtual_demand, broker.virtual_demand_of_queues) == (demand, of_queues)
    assert not [each for each in findings(configuration) if "useVirtual" in each]


def test_a_bridge_may_ask_for_it(tmp_path: Path) -> None:
    connector = '<networkConnector uri="static:(tcp://b:61616)" useVirtualDestSubs="true"/>'
    configuration = read(classic_file(tmp_path, f"<networkConnectors>{connector}</networkConnectors>"))
    assert configuration.networks.connectors[0].use_virtual_dest_subs
    assert not [each for each in findings(configuration) if "networkConnector" in each]
