"""A broker.xml with a <core>, written, read and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError


def write(folder: Path, core: str, name: str = "broker.xml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n'
        f"{core}\n</core>\n</configuration>\n"
    )
    return path


def read(folder: Path, core: str, values: dict[str, str] | None = None) -> Configuration:
    return read_broker_xml(write(folder, core), values)


def problems(folder: Path, core: str) -> list[tuple[int, str, str]]:
    """(line within `core`, text, hint)"""
    with pytest.raises(ConfigError) as caught:
        read(folder, core)
    return [(found.line - 2, found.text, found.hint) for found in caught.value.problems]
