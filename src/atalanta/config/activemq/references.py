"""References of an activemq.xml to elements beside the broker: `plugins="#mine"`, `<ref bean="mine"/>`.

An element of Classic's own names, or a list of them, is read as if it stood where the reference is. Beans are no such
elements; they stand in the places where a bean would be named, so that it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Elements
from atalanta.config.xml.tree import CLASSIC_NAMESPACES, XmlElement, below, made

LIST: Final = "list"
REF: Final = "ref"
BEAN: Final = "bean"
PLUGINS: Final = "plugins"
STORE: Final = "persistenceAdapter"
PLACED_MAX: Final = 10_000  # elements that references put into one broker


class NamedElements:
    """The elements of one file that references can mean, by their ids. `used`: the ids that some reference means."""

    def __init__(self, root: XmlElement, elements: Elements) -> None:
        self.elements = elements
        self.named: dict[str, XmlElement] = {}
        self.used: set[str] = set()
        self.placed = 0
        for node in below(root):
            if node.attributes.get("id") and (is_classic_element(node) or node.name in (LIST, BEAN)):
                self.named.setdefault(node.attributes["id"], node)

    def place(self, broker: XmlElement) -> None:
        """Puts the elements that references mean into the tree of the broker."""
        self._place(broker, ())

    def _place(self, node: XmlElement, within: tuple[str, ...]) -> None:
        """`within`: the ids of the elements around, which may not come again."""
        children: list[XmlElement] = []
        for child in node.children:
            if child.name == LIST and not is_classic_element(child):
                children += child.children
            else:
                children.append(child)
        node.children = []
        for child in children:
            node.children += self._of_child(node, child, within)
        named = tables.BY_REFERENCE.get(node.name, {})
        for name, text in list(node.attributes.items()):
            if not text.startswith("#"):
                continue
            found = self._meant(node, text[1:].strip(), name in named, within)
            if found is not None:
                del node.attributes[name]
                section = made(node, name)
                section.children = found
                node.children.append(section)
            elif name in named:
                del node.attributes[name]
                self._missing(node, name, text)

    def _of_child(self, node: XmlElement, child: XmlElement, within: tuple[str, ...]) -> list[XmlElement]:
        """Returns what stands for a child: itself, or what it refers to."""
        if child.name != REF:
            self._place(child, within)
            return [child]
        name = child.attributes.get("bean") or child.attributes.get("local", "")
        found = self._meant(child, name, node.name == PLUGINS, within)
        if found is None and node.name == PLUGINS:
            self._missing(node, PLUGINS, name)
            return []
        return [child] if found is None else found

    def _meant(self, node: XmlElement, name: str, beans: bool, within: tuple[str, ...]) -> list[XmlElement] | None:
        """Returns copies of the elements of a reference; None if it means none that can stand here."""
        target = self.named.get(name)
        if target is None or (target.name == BEAN and not beans):
            return None
        self.used.add(name)
        if name in within:
            self.elements.problem(node, f"'{name}' refers to itself")
            return []
        copy = self._copied(target)
        holder = made(target, PLUGINS if beans else LIST)
        holder.children = copy.children if target.name == LIST else [copy]
        self._place(holder, (*within, name))
        return holder.children

    def _copied(self, node: XmlElement) -> XmlElement:
        if self.placed == PLACED_MAX:
            self.elements.problem(node, f"references put more than {PLACED_MAX} elements into the broker")
        self.placed += 1
        children = [] if self.placed > PLACED_MAX else [self._copied(each) for each in node.children]
        return replace(node, attributes=dict(node.attributes), children=children)

    def _missing(self, node: XmlElement, name: str, text: str) -> None:
        """Reports a reference to an element that is not in this file."""
        what = f"{node.name} {name}" if node.name != name else name
        if name == PLUGINS:
            hint = "write the plugins as elements in <plugins>: users and permissions may be among them"
            self.elements.problem(node, f"{what}: no element of this file has the id '{text.removeprefix('#')}'", hint)
        elif name == STORE:
            self.elements.others(node, what, tables.BY_REFERENCE[node.name][name], tables.WAYS_OF_PAIR)
        else:
            self.elements.finding(node, what, tables.BY_REFERENCE[node.name][name], True)


def is_classic_element(node: XmlElement) -> bool:
    """Returns whether an element has one of Classic's own names."""
    return node.namespace.startswith(CLASSIC_NAMESPACES["broker"])
