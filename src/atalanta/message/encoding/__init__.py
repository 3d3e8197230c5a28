"""Primitive encodings shared by messages, packets and records."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.message.encoding.buffer import Reader
    from atalanta.message.encoding.digits import all_digits
else:
    __getattr__ = face(__name__)

__all__ = ["Reader", "all_digits"]
