"""XML of configurations: what is taken, and where it is said what is wrong."""

from __future__ import annotations

import pytest

from atalanta.files.xml import XmlError, xml_root


def test_elements_are_all_that_is_left() -> None:
    root = xml_root(b"<?xml version='1.0'?><a><!-- no --><b>1</b><?pi x?></a>")
    assert (root.tag, [child.tag for child in root], root[0].text) == ("a", ["b"], "1")


@pytest.mark.parametrize(
    ("data", "line", "text"),
    [
        (b"<a>\n<b>\n</a>", 3, "not well-formed XML: Opening and ending tag mismatch"),
        (b"", 1, "not well-formed XML: Document is empty"),
        (b"<a>&who;</a>", 1, "not well-formed XML: Entity 'who' not defined"),
        (b"<!DOCTYPE a><a/>", 1, "a document type (DOCTYPE) is not allowed here"),
        (b'<!DOCTYPE a [<!ENTITY who SYSTEM "file:///etc/passwd">]><a>&who;</a>', 1, "a document"),
    ],
)
def test_what_is_no_such_document_is_said_with_its_line(data: bytes, line: int, text: str) -> None:
    with pytest.raises(XmlError) as wrong:
        xml_root(data)
    assert wrong.value.line == line and wrong.value.text.startswith(text)
