"""Grouping handlers (Artemis: `<grouping-handler>`)."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cluster.grouping.config import LOCAL, REMOTE, GroupingHandlerConfig
else:
    __getattr__ = face(__name__)

__all__ = ["LOCAL", "REMOTE", "GroupingHandlerConfig"]
