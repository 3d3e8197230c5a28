"""The uri of a network connector: `static:(…)?…`, `masterslave:(…)?…` or `multicast://group`."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from atalanta.cluster.networks.config import (
    MASTERSLAVE,
    MULTICAST,
    STATIC,
    NetworkRetry,
    NetworkTarget,
    NetworkWay,
)
from atalanta.cluster.networks.settings import group_uri
from atalanta.config.problems import nearest
from atalanta.config.xml.reader import BadValue, convert
from atalanta.wire.openwire.multicast_discovery import parse_group
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_authority, parse_params, split_composite

KINDS: Final = (STATIC, MASTERSLAVE, MULTICAST)
WORDS: Final = ("nio", "ssl")  # of schemes such as nio+ssl
REFUSED: Final[dict[str, str]] = {
    "http": "brokers are not discovered over HTTP: name them with static:(…)",
    "https": "brokers are not discovered over HTTP: name them with static:(…)",
    "ldap": "brokers are not discovered in a directory: name them with static:(…)",
    "zeroconf": "brokers are not discovered by zeroconf: name them with static:(…), or let them find each other by"
    " multicast://default",
    "rendezvous": "brokers are not discovered by zeroconf: name them with static:(…), or let them find each other by"
    " multicast://default",
    "fanout": "messages are not copied to each broker of a list: write static:(…), with a bridge to each",
    "vm": "there are no connections within the process",
}


def read_uri(uri: str) -> NetworkWay:
    """Reads the brokers and options of a network's uri. UriError names what is wrong."""
    scheme, colon, rest = uri.strip().partition(":")
    if scheme in REFUSED:
        raise UriError(f"{scheme}: {REFUSED[scheme]}")
    if scheme == "simple":
        scheme = STATIC
    if not colon or scheme not in KINDS:
        raise UriError(f"uri '{uri}' begins with none of {', '.join(f'{kind}:' for kind in KINDS)}")
    if scheme == MULTICAST:
        params = parse_params(rest.partition("?")[2])
        of_retry = {entry.metadata["xml"] for entry in fields(NetworkRetry)}
        retry = {name: text for name, text in params.items() if name in of_retry}
        return NetworkWay(scheme, [], parse_group(group_uri(uri)).name, _retry(retry))
    members, query = split_composite(rest)
    bridges = [_alternatives(each) for each in members]
    if scheme == MASTERSLAVE:
        bridges = [[each for bridge in bridges for each in bridge]]
    return NetworkWay(scheme, bridges, "", _retry(parse_params(query)))


def _alternatives(text: str) -> list[NetworkTarget]:
    """Returns the brokers of one bridge: that of the address, or those of a `failover:(…)`."""
    if text.startswith("failover:"):
        members, _ = split_composite(text.removeprefix("failover:"))
        return [each for member in members for each in _alternatives(member)]
    scheme, separator, rest = text.partition("://")
    words = scheme.split("+")
    if scheme in REFUSED:
        raise UriError(f"{text}: {REFUSED[scheme]}")
    if not separator or words[0] not in (*WORDS, "tcp", "auto") or any(each not in WORDS for each in words[1:]):
        raise UriError(f"'{text}' does not begin with tcp://, nio://, ssl:// or nio+ssl://")
    authority, _, query = rest.partition("?")
    host, port = parse_authority(authority)
    params = tuple(parse_params(query).items())
    return [NetworkTarget(scheme, host, DEFAULT_PORT if port is None else port, params)]


def _retry(params: dict[str, str]) -> NetworkRetry:
    found = NetworkRetry()
    known = {entry.metadata["xml"]: entry for entry in fields(NetworkRetry)}
    for name, text in params.items():
        if name not in known:
            hint = nearest(name, known)
            raise UriError(f"unknown option '{name}' of the uri" + (f" ({hint})" if hint else ""))
        try:
            setattr(found, known[name].name, convert(text, known[name].metadata))
        except BadValue as error:
            raise UriError(f"{name}: {error}") from error
    return found
