"""Addresses as text, alone and in lists."""

from __future__ import annotations

import pytest

from atalanta.wire.uri import UriError, parse_uri, parse_uri_list

TCP = ("tcp",)


def test_one_address() -> None:
    uri = parse_uri(" tcp://host:1?a=b;c=d&e=f%3Bg+h ", TCP)
    assert (uri.scheme, uri.host, uri.port) == ("tcp", "host", 1)
    assert uri.params == {"a": "b", "c": "d", "e": "f;g h"}
    assert parse_uri("tcp://[::1]:5", TCP).host == "::1"
    assert parse_uri("tcp://host/", TCP).port is None
    assert parse_uri("tcp://host?", TCP).params == {}
    assert parse_uri("udp://231.7.7.7:9876?refreshTimeout=1", ("udp",)).port == 9876


@pytest.mark.parametrize(
    "text",
    [
        "(tcp://a:1,tcp://b:2)?x=1",
        "tcp://a:1,b:2?x=1",
        "tcp://a:1,tcp://b:2?x=1",
        "tcp://(a:1,b:2)?x=1",
        "( tcp://a:1 , tcp://b:2 )?x=1",
    ],
)
def test_lists(text: str) -> None:
    found = parse_uri_list(text, TCP)
    assert [(uri.host, uri.port) for uri in found.members] == [("a", 1), ("b", 2)]
    assert found.params == {"x": "1"}


def test_options_of_members_stay_theirs() -> None:
    found = parse_uri_list("(tcp://a:1?k=v,tcp://b:2)?x=1", TCP)
    assert [uri.params for uri in found.members] == [{"k": "v"}, {}]
    assert parse_uri_list("tcp://a:1?k=v", TCP).params == {"k": "v"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not begin with tcp://"),
        ("host:1", "does not begin"),
        ("http://a:1", "scheme 'http' is not supported"),
        ("tcp://", "host is missing"),
        ("tcp://:1", "no host"),
        ("tcp://a:b", "'b' is not a port"),
        ("tcp://a:", "not a port"),
        ("tcp://a:70000", "above 65535"),
        ("tcp://a:1:2", "brackets"),
        ("tcp://[::1", "no closing"),
        ("tcp://[::1]x", "not a port"),
        ("tcp://u@a:1", "not host:port"),
        ("tcp://a:1/path", "not host:port"),
        ("tcp://a b:1", "no host"),
        ("tcp://a:1?x=1;x=2", "twice"),
        ("tcp://a:1?=2", "not key=value"),
        ("tcp://a:1?x=%zz", "%25"),
        ("tcp://a:1?x=%ff", "UTF-8"),
    ],
)
def test_what_is_refused(text: str, words: str) -> None:
    with pytest.raises(UriError) as caught:
        parse_uri(text, TCP)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["(tcp://a:1", "(tcp://a:1)x", "(tcp://a:1,)", "()", "tcp://a:1,,b:2", "(a:1)", "(" * 50],
)
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(UriError):
        parse_uri_list(text, TCP)


def test_limits() -> None:
    with pytest.raises(UriError, match="more than"):
        parse_uri_list("tcp://" + "a:1," * 2000 + "b:1", TCP)
    with pytest.raises(UriError, match="more than"):
        parse_uri("tcp://" + "a" * 70_000, TCP)


def test_of_a_long_mistake_the_ends_are_told() -> None:
    with pytest.raises(UriError) as caught:
        parse_uri("tcp://host:" + "9" * 5_000, TCP)
    assert len(str(caught.value)) < 500 and str(caught.value).startswith("'host:999")
    assert str(caught.value).endswith("' is not a port")


@pytest.mark.parametrize(
    "text",
    [
        "tcp://h:1;trustStorePassword=S3CRET",
        "h:1?trustStorePassword=S3CRET",
        "tcp:/h:1?keyStorePassword=S3CRET;x=y",
        "(tcp://h:1?trustStorePassword=S3CRET",
        "udp://h:1?trustStorePassword=S3CRET",
        "tcp://user:S3CRET@h:1",
        "tcp://h:1?trustStorePassword=S3CRET%",
        "tcp://h:1?trustStorePassword=S3CRET%ff",
    ],
)
def test_a_password_is_in_no_error(text: str) -> None:
    with pytest.raises(UriError) as found:
        parse_uri_list(text, ("tcp",))
    assert "S3CRET" not in str(found.value) and str(found.value)
