"""A queue's reference to a message, as far as the message knows it."""

from __future__ import annotations


class StoredReference:
    """The base of a queue's reference: the journal keeps a message as long as it has such references."""
