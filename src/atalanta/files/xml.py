"""XML files that are named in configurations: parsed without DTDs, entities and network."""

from __future__ import annotations

from typing import Any

from lxml import etree


class XmlError(Exception):
    """The document is invalid; line 0 if the line is unknown."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


def xml_root(data: bytes) -> Any:
    """Returns the root element of a document, without comments and processing instructions. XmlError."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root: Any = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise XmlError(error.lineno or 0, f"not well-formed XML: {error.msg}") from error
    if root.getroottree().docinfo.doctype:
        raise XmlError(1, "a document type (DOCTYPE) is not allowed here")
    return root
