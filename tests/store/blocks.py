"""Blocks of a journal segment, made by hand."""

from __future__ import annotations


def encode_record(kind: int, payload: bytes) -> bytes:
    """Returns a record as it stands in a block."""
    return (len(payload) + 1).to_bytes(4, "big") + kind.to_bytes(1, "big") + payload
