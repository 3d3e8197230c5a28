"""The check of an instance folder."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cli.instance.check import check_files, grouped_by_text
else:
    __getattr__ = face(__name__)

__all__ = ["check_files", "grouped_by_text"]
