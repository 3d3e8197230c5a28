"""Generic reading and writing of XML and properties files."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.config.xml.properties import in_capitals
    from atalanta.config.xml.text import xml_text
    from atalanta.config.xml.tree import XmlElement, below, made
else:
    __getattr__ = face(__name__)

__all__ = ["XmlElement", "below", "in_capitals", "made", "xml_text"]
