"""Phases of a scale-down, and the phase in the answer of another node."""

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


def reported_phase(value: object) -> str:
    """Returns the phase in another node's answer to `scaleDownProgress`, or "" if there is none."""
    try:
        progress = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        progress = None
    phase = progress.get("phase") if isinstance(progress, dict) else None
    return phase if isinstance(phase, str) else ""
