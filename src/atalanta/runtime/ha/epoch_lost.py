"""The error of a process whose epoch is over."""

from __future__ import annotations


class EpochLost(Exception):
    """Another process has taken the store, or might have: this one confirms nothing and sends nothing any more."""
