"""Nodes of ours that are neighbours of Classic's brokers."""

from __future__ import annotations

from pathlib import Path

from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess


def openwire_node(brokers: Lineup) -> BrokerProcess:
    """Returns a node of ours with OpenWire, not started."""
    made = brokers.single("atalanta")
    change(made, "protocols=CORE<", "protocols=CORE,OPENWIRE<")
    return made


def change(node: BrokerProcess, old: str, new: str) -> None:
    """Replaces a text of the node's broker.xml."""
    path = broker_file(node)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def broker_file(node: BrokerProcess) -> Path:
    """Returns the path of the node's broker.xml."""
    return node.folder / "etc" / "broker.xml"


def numbers(first: int, count: int) -> list[str]:
    """Returns the texts of the messages `range(first, first + count)`."""
    return [str(number) for number in range(first, first + count)]
