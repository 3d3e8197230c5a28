"""The Spring beans of an activemq.xml, by their names: which class, and which database, a reference means.

No class is loaded. The names and texts alone say what a bean is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from atalanta.config.xml.properties import substitute
from atalanta.config.xml.tree import XmlElement, below

NAMES: Final = ("id", "name", "key")
# Attributes and elements that lead to another bean.
REFERENCES: Final = ("ref", "bean", "local", "parent")
JDBC: Final = "jdbc:"
DERBY: Final = "org.apache.derby.jdbc.Embedded"
# Beginnings of the URLs of databases that run within the process of the broker, and what makes them servers.
EMBEDDED: Final = ("jdbc:derby:", "jdbc:hsqldb:", "jdbc:h2:", "jdbc:sqlite:")
SERVERS: Final = (
    "jdbc:derby://", "jdbc:hsqldb:hsql", "jdbc:hsqldb:http", "jdbc:h2:tcp:", "jdbc:h2:ssl:",
)  # fmt: skip
SHARED_H2: Final = "AUTO_SERVER=TRUE"


class Beans:
    """The beans of one file. `values` replace `${name}` where they have it."""

    def __init__(self, root: XmlElement, values: Mapping[str, str]) -> None:
        self.values = values
        self.named: dict[str, XmlElement] = {}
        for node in below(root):
            for attribute in NAMES:
                if node.name == "bean" and attribute in node.attributes:
                    self.named.setdefault(node.attributes[attribute], node)

    def reachable(self, start: XmlElement | None) -> list[XmlElement]:
        """Returns the bean, everything in it, and the beans that these refer to."""
        found: list[XmlElement] = []
        open_beans = [] if start is None else [start]
        for bean in open_beans:
            for node in below(bean):
                found.append(node)
                for name, text in node.attributes.items():
                    other = self.named.get(text) if name in REFERENCES or name.endswith("-ref") else None
                    if other is not None and not any(other is each for each in open_beans):
                        open_beans.append(other)
        return found

    def referred(self, text: str) -> XmlElement | None:
        """Returns the bean of a reference `#name`; None if this file has none of that name."""
        return self.named.get(text.strip().removeprefix("#"))

    def meant(self, node: XmlElement) -> XmlElement | None:
        """Returns the bean that an element stands for: that of a `<ref bean>`, None if it is not here; else itself."""
        return self.referred(node.attributes.get("bean", "")) if node.name == "ref" else node

    def classes(self, start: XmlElement | None) -> list[str]:
        """Returns the classes of a bean and of those that it refers to."""
        return [node.attributes["class"] for node in self.reachable(start) if "class" in node.attributes]

    def is_embedded(self, source: XmlElement | None) -> bool:
        """Returns whether a data source is surely a database within this process: Derby, HSQLDB, H2, SQLite.

        Everything else may be a database that other brokers reach, too.
        """
        nodes = self.reachable(source)
        urls = [text for node in nodes for text in self._texts(node) if text.lower().startswith(JDBC)]
        if urls:
            return all(self._is_embedded_url(url) for url in urls)
        return any(node.attributes.get("class", "").startswith(DERBY) for node in nodes)

    def _is_embedded_url(self, url: str) -> bool:
        lower = url.lower()
        return lower.startswith(EMBEDDED) and not lower.startswith(SERVERS) and SHARED_H2 not in url.upper()

    def _texts(self, node: XmlElement) -> Iterator[str]:
        for text in (*node.attributes.values(), node.text):
            try:
                yield substitute(text.strip(), self.values)
            except (KeyError, ValueError):  # a name without a value: it does not concern this broker otherwise
                yield text.strip()
