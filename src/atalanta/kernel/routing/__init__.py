"""Addresses, bindings, wildcards and diverts."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.kernel.routing.bindings import NODE_ID_CHARACTERS
    from atalanta.kernel.routing.divert_config import ANYCAST, PASS, STRIP, DivertConfig
else:
    __getattr__ = face(__name__)

__all__ = ["ANYCAST", "NODE_ID_CHARACTERS", "PASS", "STRIP", "DivertConfig"]
