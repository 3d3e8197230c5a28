"""URLs as the command line hands them to the client."""

from __future__ import annotations

import pytest

from atalanta.client.options import Server, parse_url
from atalanta.survey.broker_login import BrokerLogin, with_option


@pytest.mark.parametrize(
    "url",
    [
        "tcp://a:1",
        "tcp://a:1?user=x)y",
        "(tcp://a:1,tcp://b:2)",
        "(tcp://a:1?user=x,tcp://b:2)",
        "(tcp://a:1?user=x,tcp://b:2)?ackBatchSize=1",
        "failover:(tcp://a:1,tcp://b:2)",
        "failover:(tcp://a:1?user=x,tcp://b:2)?randomize=false",
        "failover:tcp://a:1?ackBatchSize=1",
        "discovery:(static:(tcp://a:1,tcp://b:2))?ackBatchSize=1",
    ],
)
def test_an_option_more_goes_where_the_url_has_them(url: str) -> None:
    before, options = parse_url(url), parse_url(with_option(url, "clientID", "desk 1"))
    assert options.client_id == "desk 1"
    assert (options.servers, options.user) == (before.servers, before.user)
    assert options.ack_batch_size == before.ack_batch_size


@pytest.mark.parametrize(
    ("url", "there"),
    [
        ("tcp://a:1", "tcp://b:2"),
        ("tcp://a:1?callTimeout=7", "tcp://b:2?callTimeout=7"),
        ("(tcp://a:1,tcp://c:3)?callTimeout=7", "(tcp://b:2)?callTimeout=7"),
        ("failover:(tcp://a:1,tcp://c:3)?randomize=false", "failover:(tcp://b:2)?randomize=false"),
        ("failover:tcp://a:1", "tcp://b:2"),
    ],
)
def test_another_broker_gets_the_same_options(url: str, there: str) -> None:
    assert BrokerLogin(url, None, None).at("b:2").url == there
    assert BrokerLogin(url, None, None).at("tcp://b:2").url == "tcp://b:2"
    assert parse_url(there).servers == [Server("b", 2)]
