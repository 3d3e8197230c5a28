"""The `<jms>` section of Artemis 1: queues and topics become `<addresses>`, as in Artemis 2.

Source: LegacyJMSConfiguration (2.44). `<queue name="q">` is the address q with an anycast queue q, `<topic
name="t">` the multicast address t. The prefixes `jms.queue.` and `jms.topic.` of version 1 are dropped. The
other elements are for the JNDI of clients; the broker does not use them.
"""

from __future__ import annotations

from atalanta.config.problems import Report
from atalanta.config.xml.tree import XmlElement
from atalanta.kernel.unseen_options import UNREAD


def addresses_of(section: XmlElement, report: Report) -> XmlElement:
    """Returns `<addresses>` with elements at the lines of the section's elements."""
    addresses = _made(section, "addresses")
    for child in section.children:
        if child.name not in ("queue", "topic"):
            report.without_effect(child.file, child.line, child.name, UNREAD)  # for the JNDI of clients
            continue
        address = _made(child, "address", name=child.attributes.get("name", ""))
        kind = _made(child, "anycast" if child.name == "queue" else "multicast")
        if child.name == "queue":
            kind.children.append(_queue(child))
        address.children.append(kind)
        addresses.children.append(address)
    return addresses


def _queue(node: XmlElement) -> XmlElement:
    """Converts a queue with `<selector string="…"/>` and `<durable>`; `<entry>` is for clients."""
    queue = _made(node, "queue", name=node.attributes.get("name", ""))
    for child in node.children:
        if child.name == "selector":
            queue.children.append(_made(child, "filter", **child.attributes))
        elif child.name == "durable":
            queue.children.append(child)
    return queue


def _made(source: XmlElement, tag: str, /, **attributes: str) -> XmlElement:
    return XmlElement(tag, "", source.file, source.line, attributes)
