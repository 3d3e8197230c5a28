"""Scale-down: a node moves its messages to another member and stops."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.phase import DONE
    from atalanta.cluster.scale_down.scale_down import ScaleDown
else:
    __getattr__ = face(__name__)

__all__ = ["DONE", "ScaleDown"]
