"""The process: event loop, logs, signals and exit statuses."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.runtime.process.exit_codes import UNAVAILABLE
else:
    __getattr__ = face(__name__)

__all__ = ["UNAVAILABLE"]
