"""How far a departure is, and what another node says of its own."""

from __future__ import annotations

import json
from typing import Final

NONE: Final = "none"
SEEKING: Final = "seeking"
READING: Final = "reading"
FREEZING: Final = "freezing"
MOVING: Final = "moving"
DONE: Final = "done"
FAILED: Final = "failed"
UNDER_WAY: Final = (SEEKING, READING, FREEZING, MOVING)


def told_in(value: object) -> tuple[str, str]:
    """Phase and target of what another node's `scaleDownProgress` answers; empty where it does not say."""
    try:
        told = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return "", ""
    phase = told.get("phase")
    target = told.get("target")
    return phase if isinstance(phase, str) else "", target if isinstance(target, str) else ""
