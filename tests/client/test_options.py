"""URLs of clients: what they say, and what is refused."""

from __future__ import annotations

import pytest

from atalanta.client.options import Server, parse_url
from atalanta.wire.uri import UriError


def test_servers_and_options() -> None:
    options = parse_url(
        "(tcp://a:1,tcp://[::1]:2,tcp://c)?reconnectAttempts=-1&retryInterval=100;"
        "retryIntervalMultiplier=1.5&maxRetryInterval=900&callTimeout=5000&stay=true&"
        "consumerWindowSize=0&sendWindow=7&blockOnDurableSend=false&user=u&password=p%3D"
    )
    assert options.servers == [Server("a", 1), Server("::1", 2), Server("c", 61616)]
    assert [str(server) for server in options.servers][1] == "tcp://[::1]:2"
    assert (options.reconnect_attempts, options.retry_interval_ms) == (-1, 100)
    assert (options.retry_interval_multiplier, options.max_retry_interval_ms) == (1.5, 900)
    assert (options.call_timeout_ms, options.stay, options.send_window) == (5_000, True, 7)
    assert (options.consumer_window_size, options.block_on_durable_send) == (0, False)
    assert (options.user, options.password) == ("u", "p=")


def test_artemis_defaults() -> None:
    options = parse_url("tcp://h:5")
    assert (options.reconnect_attempts, options.initial_connect_attempts) == (0, 1)
    assert (options.retry_interval_ms, options.call_timeout_ms) == (2_000, 30_000)
    assert (options.connection_ttl_ms, options.client_failure_check_period_ms) == (60_000, 30_000)
    assert options.min_large_message_size == 102_400


def test_arguments_come_before_the_url() -> None:
    options = parse_url("tcp://h:5?user=a&password=b", "x", "y")
    assert (options.user, options.password) == ("x", "y")


def test_known_options_without_effect_are_accepted() -> None:
    options = parse_url("tcp://h:5?ha=true&tcpNoDelay=true&sslEnabled=false")
    assert options.servers == [Server("h", 5)]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("tcp://h:5?sslEnabled=maybe", "neither true nor false"),
        ("tcp://h:5?sslEnabled=true&sslContext=x", "sslContext: a Java object"),
        ("tcp://h:5?reconectAttempts=3", "reconectAttempts; is reconnectAttempts meant"),
        ("tcp://h:5?callTimeout=soon", "callTimeout: 'soon' is not a whole number"),
        ("tcp://h:5?callTimeout=0", "callTimeout: '0' is below 1"),
        ("tcp://h:5?reconnectAttempts=-2", "is below -1"),
        ("tcp://h:5?stay=yes", "stay: 'yes' must be true or false"),
        ("tcp://h:5?zone=east", "option zone: needs reconnectAttempts other than 0, and not stay=true"),
        ("tcp://h:5?zone=east&reconnectAttempts=-1&stay=true", "option zone: needs reconnectAttempts"),
        ("tcp://h:5?retryIntervalMultiplier=0", "must be greater than 0"),
        ("amqp://h:5", "amqp"),
        ("h:5", "tcp://"),
        ("tcp://h:99999", "above 65535"),
    ],
)
def test_what_cannot_be_used_is_named(url: str, says: str) -> None:
    with pytest.raises(UriError, match=says.replace("?", r"\?")):
        parse_url(url)
