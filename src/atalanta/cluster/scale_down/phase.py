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
# The phases that may follow each one, and when.
TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    NONE: (SEEKING, MOVING),  # it is asked to leave; it goes on after a crash
    SEEKING: (READING, FAILED),  # a member takes the messages; nobody does, or the time is up
    READING: (SEEKING, FREEZING, FAILED),  # that member is lost; no log reader is to acknowledge; the time is up
    FREEZING: (MOVING, FAILED),  # the clients are disconnected; the time is up, or the target leaves
    MOVING: (MOVING, DONE, FAILED),  # the members, too, are disconnected; nothing is left; as before, or some is left
    DONE: (),  # the node ends
    FAILED: (SEEKING,),  # it serves on, if it was not frozen, and is asked again
}


def reported_phase(value: object) -> str:
    """Returns the phase in another node's answer to `scaleDownProgress`, or "" if there is none."""
    try:
        progress = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        progress = None
    phase = progress.get("phase") if isinstance(progress, dict) else None
    return phase if isinstance(phase, str) else ""
