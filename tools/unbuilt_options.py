"""Writes the table of docs/guide/migration.md: options of Artemis and WildFly without effect here, and who is told.

    PYTHONPATH=src python -m tools.unbuilt_options

It is made of the tables that the readers use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from atalanta.config.docs import SECTIONS, plain
from atalanta.config.sections import known_elements
from atalanta.config.wildfly import tables as wildfly
from atalanta.kernel.unseen_options import FixedValue
from atalanta.wire.endpoint import CONNECTOR_LOST, NOT_SPOKEN, REFUSED, UNUSED
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.stomp.acceptor import StompAcceptor

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "guide" / "migration.md"
BEGIN: Final = "<!-- options without effect: written by `make docs`, do not edit below -->"
END: Final = "<!-- end of the options without effect -->"
SILENT: Final[dict[str, str]] = {
    **known_elements.CORE,
    **UNUSED,
    **StompAcceptor.UNUSED,
    **OpenWireAcceptor.UNUSED,
}
FIXED: Final[dict[str, FixedValue]] = {**known_elements.CORE_FIXED, **StompAcceptor.FIXED, **OpenWireAcceptor.FIXED}
LOST: Final[dict[str, str]] = {
    **known_elements.CORE_LOST,
    "store": known_elements.STORE_WHY,
    **{f"{name} (of a connector)": why for name, why in CONNECTOR_LOST.items()},
    **StompAcceptor.LOST,
    **OpenWireAcceptor.LOST,
    "amqp… and MQTT parameters of an acceptor without protocols": NOT_SPOKEN,
    **{f"WildFly's {name}": why for name, why in {**wildfly.LOST, **wildfly.GROUPS_LOST}.items()},
    f"WildFly's entries that begin with {wildfly.EXPORTED}": wildfly.EXPORTED_WHY,
}


def table() -> str:
    """Returns the table, with the options of all sections of broker.xml."""
    silent, lost = dict(SILENT), dict(LOST)
    silent.update({f"WildFly's {name}": why for name, why in wildfly.WITHOUT_EFFECT.items()})
    silent.update({f"WildFly's {name}": why for name, why in wildfly.GROUPS_WITHOUT_EFFECT.items()})
    for title, _, group in SECTIONS:
        if "networks" in title:  # of ActiveMQ Classic
            continue
        for entry in fields(group):
            metadata = entry.metadata
            if metadata and not metadata["supported"]:
                (lost if metadata["named"] else silent)[metadata["xml"]] = metadata["why"]
    lines = ["| options | what becomes of them |", "|---|---|"]
    lines += _rows(REFUSED, "**the acceptor is not opened, with an error, if it is true**: {}")
    lines += _rows(lost, "**a warning**: {}")
    for name, fixed in FIXED.items():
        lines.append(f"| `{name}` | **a warning** unless it is `{fixed.here[0]}`: {plain(fixed.otherwise)} |")
    lines += _rows(silent, "nothing that a client could see: {}")
    return "\n".join([BEGIN, "", *lines, "", END])


def _rows(entries: Mapping[str, str], text: str) -> list[str]:
    """Returns a line for each reason, with all its options."""
    by_reason: dict[str, list[str]] = {}
    for name, why in entries.items():
        by_reason.setdefault(why, []).append(f"`{name}`")
    return [f"| {', '.join(names)} | {text.format(plain(why))} |" for why, names in by_reason.items()]


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + table() + rest.partition(END)[2], encoding="utf-8")
