"""The acceptors of this build: the protocols that they serve, and the options of each."""

from __future__ import annotations

from typing import Final

from atalanta.wire.endpoint import AcceptorConfig, ProtocolOptions, read_acceptor
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.stomp.acceptor import StompAcceptor

SERVED_PROTOCOLS: Final = ("CORE", "STOMP", "OPENWIRE")
PROTOCOL_OPTIONS: Final[tuple[type[ProtocolOptions], ...]] = (StompAcceptor, OpenWireAcceptor)


def parse_acceptor(name: str, text: str) -> AcceptorConfig:
    """Returns an acceptor. UriError names the wrong part of `text`."""
    return read_acceptor(name, text, PROTOCOL_OPTIONS)
