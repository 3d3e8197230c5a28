"""Which links use TLS, and logins with hashed passwords in the virtual world."""

from __future__ import annotations

import pytest

from atalanta.kernel.ports import Links
from atalanta.kernel.security.password import hash_password
from atalanta.sim.nodes import PASSWORD, USER
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import parse_connector
from tests.cluster.cluster_rig import Rig, cluster_of, node_of

TLS = "?sslEnabled=true;trustStorePath=t.p12"


class RecordingLinks(Links):
    def __init__(self) -> None:
        self.dialled: list[tuple[str, int, str]] = []

    def dial(self, key: str, host: str, port: int) -> None:
        self.dialled.append((host, port, ""))

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        self.dialled.append((host, port, connector))


def announced(name: str, secure: bool) -> TransportConfiguration:
    """As a peer's announcement carries it."""
    made = TransportConfiguration.tcp(name, "peer", 7)
    if secure:
        made.put("sslEnabled", "true")
        made.put("trustStorePath", "the-peers-own.p12")
    return made


@pytest.mark.parametrize(
    ("own", "static", "name", "secure", "connector"),
    [
        ("", "", "theirs", False, ""),
        ("", TLS, "static", True, "static"),
        (TLS, TLS, "theirs", True, "n0"),
        # Whoever announces itself without TLS gets no credentials in plain text.
        (TLS, TLS, "theirs", False, "n0"),
        # A connector that is written without TLS is meant so.
        (TLS, "", "static", False, ""),
        # The peer wants TLS, and nobody said how: the shell refuses by the connector's name.
        ("", "", "theirs", True, "n0"),
    ],
)
def test_which_connector_describes_a_link(
    rig: Rig, own: str, static: str, name: str, secure: bool, connector: str
) -> None:
    host = rig.node(peers=[])
    host.start()
    cluster = cluster_of(host)
    settings = cluster.settings
    settings.connectors["n0"] = parse_connector("n0", f"tcp://n0:1{own}")
    settings.connectors["static"] = parse_connector("static", f"tcp://peer:7{static}")
    cluster.config.static_connectors = ["static"]
    links = RecordingLinks()
    cluster.dialer.links = links
    cluster.dialer.dial("key", announced(name, secure))
    assert links.dialled == [("peer", 7, connector)]


def test_hashed_passwords_in_the_virtual_world(rig: Rig) -> None:
    first, second = rig.cluster(2)
    for host in (first, second):
        stored = hash_password(PASSWORD, b"salt" * 8, 2)
        node_of(host).broker.security.add_user(USER, stored, ["all"])
    client = rig.client(first)
    client.publish("orders", b"x")
    rig.until(lambda: client.answers)
    assert node_of(first).host.logins.remembered
