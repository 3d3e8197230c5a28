"""The message, its properties and selectors."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.message.properties import Byte
    from atalanta.message.quick_dataclass import dataclass
else:
    __getattr__ = face(__name__)

__all__ = ["Byte", "Message", "dataclass"]
