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
