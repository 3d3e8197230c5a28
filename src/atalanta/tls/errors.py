"""Errors in TLS settings."""

from __future__ import annotations


class TlsError(Exception):
    """The TLS settings cannot be used; the text names parameter and file."""
