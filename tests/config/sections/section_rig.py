"""Reads a section of a broker.xml."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration


def read(folder: Path, core: str) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(f"<configuration><core>{core}</core></configuration>")
    return read_broker_xml(path)
