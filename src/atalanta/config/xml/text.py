"""A tree of nodes as XML text."""

from __future__ import annotations

from typing import Any

from lxml import etree

from atalanta.config.xml.tree import XmlElement


def xml_text(root: XmlElement, comment: str = "") -> str:
    """Returns an indented XML document; `comment` precedes the root element."""
    element = _element(root, "", root.namespace)
    etree.indent(element, space="   ")
    text: str = etree.tostring(element, encoding="unicode")
    head = "<?xml version='1.0' encoding='UTF-8'?>\n"
    return head + (f"<!-- {comment.replace('--', '- -')} -->\n" if comment else "") + text + "\n"


def _element(node: XmlElement, around: str, namespace: str) -> etree._Element:
    """Creates an element. `namespace` is that of the nearest element with one, `around` that of its parent."""
    own = node.namespace or namespace
    nsmap: Any = {None: own} if own and own != around else None
    made = etree.Element(f"{{{own}}}{node.name}" if own else node.name, nsmap=nsmap)
    for name, value in node.attributes.items():
        made.set(name, value)
    if node.text:
        made.text = node.text
    for child in node.children:
        made.append(_element(child, own, own))
    return made
