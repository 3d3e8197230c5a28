"""A broker.xml of version 1 as one of version 2: the same queues, with today's names."""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.config.problems import Report
from atalanta.config.sections.jms import addresses_of
from atalanta.config.version_1.matches import KindNames, settle_matches
from atalanta.config.version_1.name_warnings import PREFIXES, unprefixed_acceptors
from atalanta.config.version_1.old_names import (
    JMS,
    QUEUE,
    REMOTE,
    TOPIC,
    cores,
    is_version_1,
    new_name,
    old_names,
)
from atalanta.config.xml.tree import XmlElement, below, made


@dataclass
class Version2:
    """The tree of the file, and lines for people about what is not the same."""

    root: XmlElement
    differs: list[str] = field(default_factory=list)


def version_2(root: XmlElement, report: Report) -> Version2 | None:
    """Returns the file as version 2 has it, None if it is of version 2 already. Changes the tree `root`."""
    if not is_version_1(root):
        return None
    result = Version2(root)
    sections = list(root.all(JMS))
    names: KindNames = {
        QUEUE: [each.attributes.get("name", "") for section in sections for each in section.all("queue")],
        TOPIC: [each.attributes.get("name", "") for section in sections for each in section.all("topic")],
    }
    for acceptor in list(unprefixed_acceptors(root)):
        _add_prefixes(acceptor)
    for old in old_names(root):
        if not old.attribute:
            old.element.text = old.new
    for core in cores(root):
        for section in core.children:
            if section.name in ("address-settings", "security-settings"):
                result.differs += settle_matches(section, names)
        result.differs += _remote_names(core)
        for section in (*core.all("cluster-connections"), *core.all("grouping-handler")):
            _drop_empty_addresses(section)
        core.children.extend(addresses_of(section, report) for section in sections)
        _join_addresses(core)
    root.children = [each for each in root.children if each.name != JMS]
    return result


def _add_prefixes(acceptor: XmlElement) -> None:
    """Adds the options by which an acceptor takes the names of version 1."""
    if acceptor.children:
        given = {each.attributes.get("key") for each in acceptor.children}
        acceptor.children += [
            made(acceptor, "param", key=name, value=before) for name, before in PREFIXES.items() if name not in given
        ]
        return
    options = ";".join(f"{name}={before}" for name, before in PREFIXES.items() if name not in acceptor.text)
    text = acceptor.text.strip()
    acceptor.text = f"{text}{';' if '?' in text else '?'}{options}"


def _drop_empty_addresses(section: XmlElement) -> None:
    """Removes each `<address>` without text: everything is meant."""
    for element in below(section):
        element.children = [each for each in element.children if each.name != "address" or each.text.strip()]


def _remote_names(core: XmlElement) -> list[str]:
    """Returns a line for each bridge to an address with a name of version 1, which stays as it is."""
    return [
        f"{element.file}:{element.line}: '{element.text.strip()}' is an address of another node, and stays: write"
        f" '{new_name(element.text.strip())}' if that node is of version 2"
        for section in core.all("bridges")
        for element in below(section)
        if element.name == REMOTE and new_name(element.text.strip()) is not None
    ]


def _join_addresses(core: XmlElement) -> None:
    """Joins the sections `<addresses>`, of which version 2 has one, and the kinds of an address that has both."""
    sections = list(core.all("addresses"))
    if not sections:
        return
    joined: dict[str, XmlElement] = {}
    for section in sections:
        for address in section.children:
            name = address.attributes.get("name", "")
            if name in joined:
                joined[name].children += address.children
            else:
                joined[name] = address
    sections[0].children = list(joined.values())
    core.children = [each for each in core.children if each.name != "addresses" or each is sections[0]]
