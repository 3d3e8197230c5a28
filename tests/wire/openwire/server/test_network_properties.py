"""What a network connector tells of its options, as Java writes properties."""

from __future__ import annotations

import pytest

from atalanta.wire.openwire.bridge_filter import message_selector
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import BrokerId
from atalanta.wire.openwire.server.bridge.advisory_consumer import AdvisoryConsumer
from atalanta.wire.openwire.server.bridge.network_properties import NetworkProperties
from atalanta.wire.protocol_error import ProtocolError

TEXT = r"""#Sat Nov 28 05:50:03 UTC 2026
name=NC\:one
messageTTL=3
conduitSubscriptions=false
dynamicallyIncludedDestinations=[queue\://a.>,topic\://b?consumer.prefetchSize\=1]
staticallyIncludedDestinations=queue\://c, topic\://d
destinationFilter=\u003E
userName=
"""
MANY = f"excludedDestinations={','.join(f'queue://{number}' for number in range(1_001))}"


def test_options_are_read_as_classic_writes_them() -> None:
    found = NetworkProperties(TEXT)
    rules = found.rules("here", "there")
    assert (rules.names.connector, rules.message_ttl, rules.consumer_ttl, rules.conduit) == ("NC:one", 3, 1, False)
    assert rules.dynamic.names == [(True, "a.>"), (False, "b")]
    assert rules.static.names == [(True, "c"), (False, "d")] and rules.excluded.names == []
    assert found.text("destinationFilter") == ">" and found.text("userName", "x") == ""
    assert rules.names.local_client_id() == "NC:one_there_inbound_here"


@pytest.mark.parametrize("text", ["prefetchSize=many", "messageTTL=99999999999", "x=" + "y" * 70_000, MANY])
def test_options_that_cannot_be_read_are_told(text: str) -> None:
    with pytest.raises(ProtocolError, match="networkProperties"):
        NetworkProperties(text).rules("here", "there")


@pytest.mark.parametrize("text", ["", "\\", "a", "=b", "a\\", "a=\\u12", "\n\n#\n!"])
def test_odd_lines_do_no_harm(text: str) -> None:
    NetworkProperties(text).rules("here", "there")


def test_no_number_of_the_other_broker_sizes_anything() -> None:
    text = "messageTTL=2147483647\nconsumerTTL=2147483647\nconsumerPriorityBase=2147483647\n"
    rules = NetworkProperties(text).rules("here", "there")
    assert len(message_selector(BrokerId("ID:b"), rules.message_ttl)) < 1_000
    assert rules.priority(1) == 127


def test_long_lists_ask_for_all_consumers() -> None:
    """Their topics would not fit into one name; the rules of the bridge leave the others out."""
    names = ",".join(f"queue\\://orders.of.the.department.of.number.{number}" for number in range(900))
    rules = NetworkProperties(f"dynamicallyIncludedDestinations=[{names}]\n").rules("here", "there")
    info = AdvisoryConsumer("ID:c", 10, 75).info(None, rules)
    assert info.destination is not None
    assert (info.destination.physical_name or "").split(",")[0] == "ActiveMQ.Advisory.Consumer.>"
    assert rules.permits(ActiveMQQueue("orders.of.the.department.of.number.7"))
    assert not rules.permits(ActiveMQQueue("other"))
