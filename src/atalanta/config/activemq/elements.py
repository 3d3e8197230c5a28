"""The common part of all readers of an activemq.xml: attributes by tables, findings, and the tree of the broker.xml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from atalanta.config.problems import OthersNamed, Report, nearest
from atalanta.config.xml.reader import BadValue, boolean
from atalanta.config.xml.tree import XmlElement, made
from atalanta.kernel.unseen_options import FixedValue

# Attributes that every element of a Spring file may have.
EVERYWHERE: Final = ("id", "start", "depends-on", "lazy-init", "init-method", "destroy-method")
SIZE: Final = re.compile(r"(\d{1,18})\s*([kmg]?)b?", re.IGNORECASE)
FACTORS: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
SO_IT_IS: Final = "so it is here"
NO_BEANS: Final = "Java classes cannot be loaded"
NO_REFERENCES: Final = "not followed: only elements of Classic and lists of them are read, and no beans"

Handler = Callable[[XmlElement], None]


class Core:
    """The `<core>` that is made. Its sections are created when they are used."""

    def __init__(self, source: XmlElement) -> None:
        self.node = made(source, "core")
        self.sections: dict[str, XmlElement] = {}
        self.addresses: dict[str, XmlElement] = {}

    def put(self, source: XmlElement, name: str, text: str) -> None:
        """Adds an element directly below `<core>`."""
        self.node.children.append(made(source, name, text))

    def add(self, section: str, entry: XmlElement) -> None:
        """Adds an element to a section."""
        if section not in self.sections:
            self.sections[section] = made(entry, section)
            self.node.children.append(self.sections[section])
        self.sections[section].children.append(entry)

    def address(self, source: XmlElement, name: str, queue: bool) -> None:
        """Adds an address: with its queue, or for topics. A repeat of the same is nothing new."""
        address = self.addresses.get(name)
        if address is None:
            address = self.addresses[name] = made(source, "address", name=name)
            self.add("addresses", address)
        kind = "anycast" if queue else "multicast"
        if any(address.all(kind)):
            return
        address.children.append(made(source, kind))
        if queue:
            address.children[-1].children.append(made(source, "queue", name=name))


class Elements:
    """Reads elements by tables of names. What is in no table is a problem with a hint."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.attributes_read: set[int] = set()
        self.sections: list[XmlElement] = []

    def values(
        self,
        node: XmlElement,
        honoured: Iterable[str],
        silent: Mapping[str, str] | None = None,
        lost: Mapping[str, str] | None = None,
        fixed: Mapping[str, FixedValue] | None = None,
    ) -> dict[str, str]:
        """Returns the honoured attributes. The others are findings with the reason of their table; `lost` are those
        that ask for a service which this node does not give, `fixed` do so with another value than that of here."""
        self.attributes_read.add(id(node))
        silent, lost, fixed = silent or {}, lost or {}, fixed or {}
        known = [*honoured, *silent, *lost, *fixed]
        found: dict[str, str] = {}
        for name, text in node.attributes.items():
            text = text.strip()
            if text.startswith("#") and name in known:
                self.finding(node, f"{node.name} {name}", NO_REFERENCES, True)
            elif name in fixed:
                self.fixed(node, f"{node.name} {name}", text, fixed[name])
            elif name in silent or name in lost:
                self.finding(node, f"{node.name} {name}", silent.get(name) or lost[name], name in lost)
            elif name in known:
                if text.startswith("ENC(") and "assword" in name:
                    self._masked(node, name)
                found[name] = text
            elif name not in EVERYWHERE:
                text = f"unknown attribute '{name}' of <{node.name}>"
                self.report.problem(node.file, node.line, text, nearest(name, known))
        return found

    def _masked(self, node: XmlElement, name: str) -> None:
        self.report.problem(
            node.file,
            node.line,
            f"{name} of <{node.name}> is encrypted (Jasypt), and the key is not in the file",
            "write it as ${NAME} and set that environment variable",
        )

    def children(
        self,
        node: XmlElement,
        handlers: Mapping[str, Handler],
        silent: Mapping[str, str] | None = None,
        lost: Mapping[str, str] | None = None,
    ) -> None:
        """Reads the children by name. `<bean>` and `<ref>` are findings everywhere."""
        self.sections.append(node)
        silent, lost = silent or {}, lost or {}
        for child in node.children:
            if child.name in handlers:
                handlers[child.name](child)
            elif child.name in silent or child.name in lost:
                self.finding(child, child.name, silent.get(child.name) or lost[child.name], child.name in lost)
            elif child.name in ("bean", "ref"):
                self.bean(child)
            else:
                text = f"unknown element <{child.name}> in <{node.name}>"
                hint = nearest(child.name, [*handlers, *silent, *lost])
                self.report.problem(child.file, child.line, text, hint)

    def finish(self) -> None:
        """Reports the attributes of elements that have none, but children: a reference, perhaps, that means nothing."""
        for node in {id(each): each for each in self.sections if id(each) not in self.attributes_read}.values():
            for name, text in node.attributes.items():
                if text.startswith("#"):
                    what = f"no element of Classic in this file has the id '{text[1:].strip()}'"
                    self.problem(node, f"{name} of <{node.name}>: {what}", f"write it as <{name}> in it")
                elif name not in EVERYWHERE:
                    self.problem(node, f"unknown attribute '{name}' of <{node.name}>")

    def bean(self, node: XmlElement) -> None:
        """Reports a bean of Spring inside the broker."""
        what = node.attributes.get("class") or node.attributes.get("bean") or node.attributes.get("id", "")
        self.finding(node, f"{node.name} {what}".strip(), NO_REFERENCES if node.name == "ref" else NO_BEANS, True)

    def fixed(self, node: XmlElement, name: str, text: str, value: FixedValue) -> None:
        """Reports an attribute whose value is another one than that of here, or the same."""
        same = value.holds(text)
        self.finding(node, name, SO_IT_IS if same else value.otherwise, not same)

    def finding(self, node: XmlElement, name: str, why: str, lost: bool = False) -> None:
        self.report.without_effect(node.file, node.line, name, why, lost)

    def others(self, node: XmlElement, name: str, why: str, ways: str) -> None:
        """Reports an element that says that there are other brokers: an error, or without effect for `why`."""
        self.report.others.append(OthersNamed(node.file, node.line, name, why, ways))

    def problem(self, node: XmlElement, text: str, hint: str = "") -> None:
        self.report.problem(node.file, node.line, text, hint)

    def true(self, node: XmlElement, values: Mapping[str, str], name: str, default: bool = False) -> bool:
        """Returns a boolean of `values`; a text that is none is a problem."""
        if name not in values:
            return default
        try:
            return boolean(values[name])
        except BadValue as error:
            self.problem(node, f"{name}: {error}")
            return default

    def whole(self, node: XmlElement, values: Mapping[str, str], name: str, default: int) -> int:
        """Returns a whole number of `values`; a text that is none is a problem."""
        text = values.get(name, str(default))
        if re.fullmatch(r"-?\d{1,18}", text) is None:
            self.problem(node, f"{name}: '{text}' is not a whole number")
            return default
        return int(text)

    def size(self, node: XmlElement, values: Mapping[str, str], name: str) -> int | None:
        """Returns bytes (`64 mb`, `100gb`, `1024`); None for an absent or wrong value."""
        if name not in values:
            return None
        found = SIZE.fullmatch(values[name])
        if found is None:
            self.problem(node, f"{name}: '{values[name]}' is not a size such as 1048576, 64 mb or 10 gb")
            return None
        return int(found.group(1)) * FACTORS[found.group(2).lower()]


def only(node: XmlElement) -> XmlElement | None:
    """Returns the single child of a wrapper such as `<persistenceAdapter>`; None with none or several."""
    return node.children[0] if len(node.children) == 1 else None


def listed(text: str) -> list[str]:
    """Splits a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
