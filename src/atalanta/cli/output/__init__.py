"""Tables, progress bars, pictures and the exit status of commands."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cli.output.escape import plain
    from atalanta.cli.output.outcome import FAILED, USAGE, Refused, ended, status_of_files
    from atalanta.cli.output.svg import (
        ALERT,
        EDGE,
        INK,
        PAPER,
        Box,
        Point,
        arrow_between,
        head,
        ring,
        text,
    )
else:
    __getattr__ = face(__name__)

__all__ = [
    "ALERT", "EDGE", "FAILED", "INK", "PAPER", "USAGE", "Box", "Point", "Refused", "arrow_between",
    "ended", "head", "plain", "ring", "status_of_files", "text",
]
