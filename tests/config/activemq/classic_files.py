"""Files of ActiveMQ Classic for tests, written for them: `beans` with one broker."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository

DATA: Final = Path(__file__).parent / "data"
BEANS: Final = "http://www.springframework.org/schema/beans"
CORE: Final = "http://activemq.apache.org/schema/core"


def copied(folder: Path, name: str) -> Path:
    """Copies a file of `data` to conf/activemq.xml in the folder, and returns it."""
    path = folder / "conf" / "activemq.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DATA / name, path)
    return path


def classic_file(folder: Path, inside: str, attributes: str = "") -> Path:
    """Writes a file whose broker has these elements, the first one in line 3."""
    path = folder / "conf" / "activemq.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<beans xmlns="{BEANS}">\n<broker xmlns="{CORE}" {attributes}>\n{inside}\n</broker></beans>')
    return path


def network_file(folder: Path, name: str, port: int, uri: str, further: str = "") -> Path:
    """Writes the file of a broker with one network connector, in a folder of its name."""
    return classic_file(
        folder / name,
        f'<networkConnectors><networkConnector name="to-next" uri="{uri}" {further}/></networkConnectors>\n'
        f'<transportConnectors><transportConnector name="openwire" uri="tcp://0.0.0.0:{port}"/></transportConnectors>',
        f'brokerName="{name}" dataDirectory="${{activemq.data}}"',
    )


def read(path: Path, **values: str) -> Configuration:
    """Reads a file as `atalanta run` does, with this environment."""
    return read_broker_xml(path, values)


def problems(path: Path) -> list[str]:
    """Returns the errors of a file as `line: text (hint)`; none is a failure of the test."""
    try:
        read(path)
    except ConfigError as error:
        return [str(each).removeprefix(f"{path}:") for each in error.problems]
    raise AssertionError("the file was read")


def settings(configuration: Configuration, address: str) -> AddressSettings:
    """Returns the settings of an address, merged as the broker does it."""
    broker = configuration.broker
    repository = AddressSettingsRepository(broker.wildcard, broker.literal_match_markers)
    for each in broker.address_settings:
        repository.add(each.match, each.values)
    return repository.match(address)


def findings(configuration: Configuration) -> list[str]:
    """Returns the findings as `line: name: why`, those of lost services with a `!` in front."""
    prefix = f"{configuration.path}:"
    return [("!" if each.lost else "") + str(each).removeprefix(prefix) for each in configuration.unsupported]
