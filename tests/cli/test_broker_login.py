"""URLs as the command line hands them to the client."""

from __future__ import annotations

import pytest

from atalanta.cli.broker_login import with_option
from atalanta.client.options import parse_url


@pytest.mark.parametrize(
    "url",
    [
        "tcp://a:1",
        "tcp://a:1?user=x)y",
        "(tcp://a:1,tcp://b:2)",
        "(tcp://a:1?user=x,tcp://b:2)",
        "(tcp://a:1?user=x,tcp://b:2)?ackBatchSize=1",
    ],
)
def test_an_option_more_goes_where_the_url_has_them(url: str) -> None:
    before, options = parse_url(url), parse_url(with_option(url, "clientID", "desk 1"))
    assert options.client_id == "desk 1"
    assert (options.servers, options.user) == (before.servers, before.user)
    assert options.ack_batch_size == before.ack_batch_size
