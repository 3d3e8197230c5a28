"""The warnings of a broker.xml of version 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from atalanta.config.version_1.old_names import JMS, QUEUE, TOPIC, cores, old_names
from atalanta.config.xml.tree import XmlElement

# Options of an acceptor, and what they are for a client of version 1.
PREFIXES: Final = {"anycastPrefix": QUEUE, "multicastPrefix": TOPIC}


def version_1_warnings(root: XmlElement) -> list[str]:
    """Returns a line for each name of version 1, and for each acceptor that does not know the names of its clients."""
    names = old_names(root)
    if not names and not any(root.all(JMS)):
        return []
    warnings = [str(name) for name in names]
    for acceptor in unprefixed_acceptors(root):
        options = ";".join(f"{name}={before}" for name, before in PREFIXES.items())
        warnings.append(
            f"{acceptor.file}:{acceptor.line}: acceptor '{acceptor.attributes.get('name', '')}': clients of version 1"
            f" send to jms.queue.NAME and jms.topic.NAME, which are other addresses now: write {options} in its URL"
        )
    return warnings


def unprefixed_acceptors(root: XmlElement) -> Iterator[XmlElement]:
    """Iterates over the acceptors for CORE of a file of version 1 that do not have both prefixes."""
    for core in cores(root):
        for section in core.all("acceptors"):
            for acceptor in section.all("acceptor"):
                text = acceptor.text + " ".join(each.attributes.get("key", "") for each in acceptor.children)
                if _serves_core(acceptor) and not all(name in text for name in PREFIXES):
                    yield acceptor


def _serves_core(acceptor: XmlElement) -> bool:
    parameters = {each.attributes.get("key", ""): each.attributes.get("value", "") for each in acceptor.children}
    before, named, rest = acceptor.text.partition("protocols=")
    served = rest.partition(";")[0].partition("&")[0] if named else parameters.get("protocols", "CORE")
    return "CORE" in served.upper() and not before.startswith(("vm://", "in-vm://"))
