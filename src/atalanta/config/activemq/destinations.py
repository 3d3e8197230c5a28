"""Conversion of `<destinations>` and `<destinationInterceptors>` to addresses and diverts."""

from __future__ import annotations

from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Core, Elements
from atalanta.config.xml.tree import XmlElement, made

CONSUMER_WILDCARDS: Final = "virtualTopicConsumerWildcards"
VIRTUAL_TOPICS: Final = "VirtualTopic.>"
PREFIX: Final = "Consumer.*."
WILD: Final = ("*", ">", "$")


class Destinations:
    """Reads destinations. `virtual_topics` are those of OpenWire acceptors, in the form of Artemis."""

    def __init__(self, elements: Elements, core: Core) -> None:
        self.elements = elements
        self.core = core
        self.virtual_topics = [consumers_of(VIRTUAL_TOPICS, PREFIX, False, False)]  # Classic's default
        self.diverts: dict[str, int] = {}

    def read(self, section: XmlElement) -> None:
        """Reads the destinations that exist from the start."""
        self.elements.children(
            section,
            {"queue": lambda node: self._destination(node, True), "topic": lambda node: self._destination(node, False)},
            {},
            tables.DESTINATIONS_LOST,
        )

    def _destination(self, node: XmlElement, queue: bool) -> None:
        name = self._name(node, "physicalName")
        if name:
            self.core.address(node, name, queue)

    def _name(self, node: XmlElement, attribute: str) -> str:
        name = self.elements.values(node, (attribute,)).get(attribute, "")
        if not name:
            self.elements.problem(node, f"a <{node.name}> needs a {attribute}")
        return name

    # -- interceptors -------------------------------------------------------------------------------
    def interceptors(self, section: XmlElement) -> None:
        """Reads virtual topics and composite destinations."""
        self.virtual_topics.clear()
        self.elements.children(
            section,
            {"virtualDestinationInterceptor": self._virtual},
            {},
            {"mirroredQueue": "write a <divert> in broker.xml for each queue"},
        )

    def _virtual(self, node: XmlElement) -> None:
        self.elements.children(node, {"virtualDestinations": self._virtual_destinations})

    def _virtual_destinations(self, node: XmlElement) -> None:
        self.elements.children(
            node,
            {
                "virtualTopic": self._virtual_topic,
                "compositeQueue": lambda each: self._composite(each, True),
                "compositeTopic": lambda each: self._composite(each, False),
            },
        )

    def _virtual_topic(self, node: XmlElement) -> None:
        silent, lost, fixed = tables.VIRTUAL_SILENT, tables.VIRTUAL_LOST, tables.VIRTUAL_FIXED
        values = self.elements.values(node, tables.VIRTUAL_TOPIC, silent, lost, fixed)
        name, prefix = values.get("name", ">"), values.get("prefix", PREFIX)
        selectors = self.elements.true(node, values, "selectorAware")
        local = self.elements.true(node, values, "local")
        if not prefix.endswith(".") or len(prefix) == 1:
            why = f"no effect: a prefix has whole words, as {PREFIX}, and '{prefix}' has not"
            self.elements.finding(node, f"virtualTopic {name}", why, True)
            return
        self.virtual_topics.append(consumers_of(name, prefix, selectors, local))

    def _composite(self, node: XmlElement, queue: bool) -> None:
        """Converts a composite destination: one divert for each destination behind `forwardTo`."""
        values = self.elements.values(node, tables.COMPOSITE, tables.VIRTUAL_SILENT, {}, tables.VIRTUAL_FIXED)
        name = values.get("name", "")
        if not name:
            self.elements.problem(node, f"a <{node.name}> needs a name")
            return
        if any(sign in name for sign in WILD):
            why = "read, no effect yet: a divert has an address without wildcards"
            self.elements.finding(node, f"{node.name} {name}", why, True)
            return
        only_there = self.elements.true(node, values, "forwardOnly", True)
        stays = self.elements.true(node, values, "sendWhenNotMatched")
        self.core.address(node, name, queue)

        def forward(child: XmlElement) -> None:
            self.elements.children(
                child,
                {
                    "queue": lambda each: self._divert(node, each, name, only_there, True),
                    "topic": lambda each: self._divert(node, each, name, only_there, False),
                    "filteredDestination": lambda each: self._filtered(node, each, name, only_there, stays),
                },
            )

        self.elements.children(node, {"forwardTo": forward})

    def _filtered(self, node: XmlElement, child: XmlElement, name: str, only_there: bool, stays: bool) -> None:
        values = self.elements.values(child, ("selector", "queue", "topic"))
        queue = "queue" in values
        target = values.get("queue", values.get("topic", ""))
        if not target:
            self.elements.problem(child, "a <filteredDestination> needs a queue or a topic")
            return
        if only_there and not stays:
            what = f"{node.name} {name}"
            self.elements.finding(child, what, "a message that no selector takes stays in it, and is not dropped", True)
        self._divert_to(child, name, target, queue, only_there, values.get("selector", ""))

    def _divert(self, node: XmlElement, child: XmlElement, name: str, only_there: bool, queue: bool) -> None:
        target = self._name(child, "physicalName")
        if target:
            self._divert_to(child, name, target, queue, only_there, "")

    def _divert_to(
        self, node: XmlElement, name: str, target: str, queue: bool, only_there: bool, selector: str
    ) -> None:
        if target == name or any(sign in target for sign in WILD):
            self.elements.finding(node, f"{name} to {target}", "read, no effect yet: not an address of its own", True)
            return
        self.diverts[name] = self.diverts.get(name, 0) + 1
        divert = made(node, "divert", name=f"{name}-{self.diverts[name]}")
        divert.children = [
            made(node, "address", name),
            made(node, "forwarding-address", target),
            made(node, "routing-type", "ANYCAST" if queue else "MULTICAST"),
            made(node, "exclusive", "true" if only_there else "false"),
        ]
        if selector:
            divert.children.append(made(node, "filter", string=selector))
        self.core.add("diverts", divert)
        self.core.address(node, target, queue)


def consumers_of(name: str, prefix: str, selectors: bool, local: bool) -> str:
    """Returns the consumers of virtual topics as Artemis writes them: `Consumer.*.VirtualTopic.>;2`, where 2 is the
    number of words before the topic's name."""
    words = len([word for word in prefix.split(".") if word])
    return f"{prefix}{name};{words}" + (";selectorAware=true" if selectors else "") + (";local=true" if local else "")
