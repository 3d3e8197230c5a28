"""Prometheus' text format: the head of a metric and the value of a label."""

from __future__ import annotations


def head(name: str, why: str, kind: str = "gauge", prefix: str = "artemis_") -> str:
    """Returns the lines HELP and TYPE of a metric."""
    return f"# HELP {prefix}{name} {why}\n# TYPE {prefix}{name} {kind}\n"


def escape(value: str) -> str:
    """Returns an escaped label value."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
