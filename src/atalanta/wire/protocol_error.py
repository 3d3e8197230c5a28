"""The error of a peer that broke its protocol, in a module of its own: clients start without the node's connections."""

from __future__ import annotations


class ProtocolError(Exception):
    """The error of a peer that broke the protocol. The node closes the connection with this text."""
