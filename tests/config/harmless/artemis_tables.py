"""The tables of what is taken from Artemis' and WildFly's files without a word: table -> entry -> why."""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass

from atalanta.config.sections import known_elements
from atalanta.config.wildfly import tables as wildfly
from atalanta.config.wildfly import transports
from atalanta.kernel.unseen_options import FixedValue
from atalanta.wire import endpoint
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.stomp.acceptor import StompAcceptor
from tests.source_tree import SOURCE

SILENT: dict[str, dict[str, str]] = {
    "UNUSED": endpoint.UNUSED,
    "StompAcceptor": StompAcceptor.UNUSED,
    "OpenWireAcceptor": OpenWireAcceptor.UNUSED,
    "CORE": known_elements.CORE,
    "WILDFLY": wildfly.WITHOUT_EFFECT,
    "WILDFLY_HTTP": {"http-acceptor": transports.SAME_LISTENER},
    "WILDFLY_GROUPS": wildfly.GROUPS_WITHOUT_EFFECT,
}
# Harmless with one value, which has its case.
FIXED: dict[str, dict[str, FixedValue]] = {
    "StompAcceptor": StompAcceptor.FIXED,
    "OpenWireAcceptor": OpenWireAcceptor.FIXED,
    "CORE_FIXED": known_elements.CORE_FIXED,
}
# What is named has no case.
LOST: tuple[dict[str, str], ...] = (
    StompAcceptor.LOST, OpenWireAcceptor.LOST, endpoint.CONNECTOR_LOST, known_elements.CORE_LOST, wildfly.LOST,
    wildfly.GROUPS_LOST,
)  # fmt: skip


def ignored_options() -> dict[str, dict[str, str]]:
    """Returns the options made with `ignored`: class -> name in the file -> why."""
    tables: dict[str, dict[str, str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if " = ignored(" not in path.read_text():
            continue
        module = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
        for group in vars(module).values():
            if not isinstance(group, type) or not is_dataclass(group):
                continue
            for entry in fields(group):
                if entry.metadata and not entry.metadata["supported"] and not entry.metadata["named"]:
                    tables.setdefault(group.__name__, {})[entry.metadata["xml"]] = entry.metadata["why"]
    return tables
