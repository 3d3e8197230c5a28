"""What can go wrong with a description of TLS."""

from __future__ import annotations


class TlsError(Exception):
    """TLS cannot be had as it is described; the text names parameter and file."""
