"""Hosts, origins and peers of requests."""

from __future__ import annotations

import pytest

from atalanta.console.access.request_guard import RequestGuard

PROXIED = RequestGuard("127.0.0.1", False, {"ops.example.org": "https://ops.example.org"})
ALONE = RequestGuard("broker.example", True, {})


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8161", "localhost", "[::1]:8161", "ops.example.org", "OPS.example.org", "10.1.2.3"]
)
def test_own_names_and_addresses(host: str) -> None:
    assert PROXIED.knows_host(host)


@pytest.mark.parametrize(
    "host", ["", "evil.example", "ops.example.org:81", "ops.example.org.evil.example", "localhost.evil"]
)
def test_other_names(host: str) -> None:
    assert not PROXIED.knows_host(host)


def test_an_origin_is_that_of_the_host() -> None:
    assert PROXIED.comes_from_here("ops.example.org", {"Origin": "https://ops.example.org"})
    assert not PROXIED.comes_from_here("ops.example.org", {"Origin": "http://ops.example.org"})
    assert not PROXIED.comes_from_here("localhost:8161", {"Origin": "http://localhost:8162"})
    assert not PROXIED.comes_from_here("localhost:8161", {"Origin": "null"})
    assert not PROXIED.comes_from_here("localhost:8161", {"Sec-Fetch-Site": "same-site"})
    assert PROXIED.comes_from_here("localhost:8161", {})
    assert ALONE.comes_from_here("broker.example:8161", {"Origin": "https://broker.example:8161"})


def test_cookies_are_secure_where_the_browser_speaks_https() -> None:
    assert PROXIED.is_secure("ops.example.org") and not PROXIED.is_secure("localhost:8161")
    assert ALONE.is_secure("anything")


def test_the_peer_is_what_a_proxy_on_this_machine_says() -> None:
    assert PROXIED.peer("127.0.0.1", "6.6.6.6, 1.2.3.4") == "1.2.3.4"
    assert PROXIED.peer("127.0.0.1", "nonsense") == "127.0.0.1"
    assert PROXIED.peer("9.9.9.9", "1.2.3.4") == "9.9.9.9"
    assert ALONE.peer("127.0.0.1", "1.2.3.4") == "127.0.0.1"
