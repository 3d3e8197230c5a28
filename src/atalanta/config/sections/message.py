"""Elements that diverts and bridges share: `<filter string="…"/>` and `<transformer>`."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.config.xml.reader import XmlReader
from atalanta.config.xml.tree import XmlElement
from atalanta.message.selector.selector import FilterError, parse_optional


def read_filter(reader: XmlReader, node: XmlElement) -> str | None:
    """Returns the selector; None for a blank or invalid one. An invalid one is reported as a problem."""
    reader.read(node, [], attributes=("string",))
    text = node.attributes.get("string", "")
    try:
        parse_optional(text)
    except FilterError as error:
        reader.report.problem(node.file, node.line, f"filter: {error}")
        return None
    return text if text.strip() else None


def read_transformer(
    reader: XmlReader,
    node: XmlElement,
    properties: dict[str, str],
    class_name: Callable[[XmlElement], None],
) -> None:
    """Reads `<property key value>` into `properties` and each `<class-name>` with `class_name`. A missing class is
    a problem."""

    def property_(child: XmlElement) -> None:
        reader.read(child, [], attributes=("key", "value"))
        key = child.attributes.get("key", "")
        if not key:
            reader.report.problem(child.file, child.line, "a <property> needs a key")
            return
        properties[key] = child.attributes.get("value", "")

    names: list[XmlElement] = []
    reader.read(node, [], {"class-name": names.append, "property": property_})
    if not names:
        reader.report.problem(node.file, node.line, "a <transformer> needs a <class-name>")
    for name in names:
        class_name(name)
