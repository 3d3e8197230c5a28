"""Files as others ship them: the examples of releases of ActiveMQ Classic, and what `artemis create` writes."""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.ports import free_port

from .client_versions import group_of
from .tools import CACHE, SMALL_JVM, artemis_home, java, maven_file

CREATOR = Path(__file__).resolve().parents[1] / "java-created" / "CreatedInstances.java"
# The folders of a release that have broker files, and what these name.
CLASSIC_FOLDERS = ("conf", "examples/conf")
LOCAL = "127.0.0.1"
ADDRESS = re.compile(r"//(?:0\.0\.0\.0|localhost|127\.0\.0\.1):(\d+)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ACCEPTOR = re.compile(r'<acceptor name="([^"]*)">tcp://[^:]*:(\d+)\?([^<]*)</acceptor>')
CONNECTOR = re.compile(r'<transportConnector (?:name="([^"]*)" )?uri="([\w+]+)://[^:]*:(\d+)')
# Protocols of Classic's schemes; `+nio` and `+ssl` change nothing about them.
SCHEMES = {
    "tcp": ("OPENWIRE",),
    "nio": ("OPENWIRE",),
    "ssl": ("OPENWIRE",),
    "stomp": ("STOMP",),
    "ws": ("STOMP", "MQTT", "AMQP"),
    "amqp": ("AMQP",),
    "mqtt": ("MQTT",),
}
SERVED = ("CORE", "OPENWIRE", "STOMP")
CREATE_SECONDS = 120.0


@dataclass(frozen=True)
class ShippedAcceptor:
    """An acceptor of a file, or a transport connector; `protocols` are those that the file names."""

    name: str
    port: int
    protocols: tuple[str, ...]
    scheme: str = ""  # of a transport connector

    @property
    def classic(self) -> bool:
        return bool(self.scheme)

    @property
    def web_socket(self) -> bool:
        return self.scheme == "ws"

    @property
    def tls(self) -> bool:
        return self.scheme == "ssl"

    @property
    def served(self) -> tuple[str, ...]:
        return tuple(each for each in self.protocols if each in SERVED)


class LocalPorts:
    """Free ports of 127.0.0.1 in the place of those that files name: the same one for the same."""

    def __init__(self) -> None:
        self._ports: dict[str, int] = {}

    def local(self, text: str) -> str:
        """Returns the text with these ports. Nothing else is changed but what keeps it within this machine."""
        text = COMMENT.sub("", text)
        text = ADDRESS.sub(lambda match: f"//{LOCAL}:{self._port(match[1])}", text)
        text = text.replace(
            "multicast://default",
            f"multicast://239.255.2.3:{self._port('multicast')}?group=default&amp;interface={LOCAL}",
        )
        group = f"<local-bind-address>{LOCAL}</local-bind-address>\\1<group-port>{self._port('group')}</group-port>"
        return re.sub(r"(<group-address>[^<]*</group-address>\s*)<group-port>\d+</group-port>", group, text)

    def share(self, other: LocalPorts, name: str) -> None:
        """Takes a port of another file: "group" is that of a UDP group."""
        self._ports[name] = other._port(name)

    def _port(self, name: str) -> int:
        return self._ports.setdefault(name, free_port())


def acceptors(text: str) -> list[ShippedAcceptor]:
    """Returns the acceptors of a broker.xml or activemq.xml without comments."""
    found = []
    for name, port, options in ACCEPTOR.findall(text):
        named = dict(option.split("=", 1) for option in options.split(";"))
        found.append(ShippedAcceptor(name, int(port), tuple(named["protocols"].split(","))))
    for name, scheme, port in CONNECTOR.findall(text):
        kind = scheme.split("+")[0]
        found.append(ShippedAcceptor(name, int(port), SCHEMES[kind], kind))
    return found


@cache
def classic_release(version: str) -> Path:
    """Returns the folders `conf` and `examples/conf` as a distribution of ActiveMQ Classic has them.

    They come from the archive of the sources, which the distribution is packed from: Maven Central has that one only.
    """
    release = CACHE / f"activemq-release-{version}"
    if not release.exists():
        archive = maven_file("org.apache.activemq", "activemq-parent", version, "zip", "source-release")
        inside = f"activemq-parent-{version}/assembly/src/release/"
        with zipfile.ZipFile(archive) as packed:
            names = [
                name
                for name in packed.namelist()
                if name.startswith(tuple(f"{inside}{folder}/" for folder in CLASSIC_FOLDERS)) and not name.endswith("/")
            ]
            for name in names:
                target = CACHE / f"{release.name}.new" / name.removeprefix(inside)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(packed.read(name))
        (CACHE / f"{release.name}.new").rename(release)
        archive.unlink()
    return release


def create_instances(version: str, commands: Iterable[list[str]], folder: Path) -> None:
    """Executes `artemis create` of that version, once for each list of words, all in one JVM."""
    lines = folder / "commands"
    lines.write_text("".join("\t".join(["create", *words]) + "\n" for words in commands))
    home = artemis_home(version, group_of(version))
    command = [java(), *SMALL_JVM, f"-Dartemis.home={home}", "-cp", f"{home}/lib/*", str(CREATOR), str(lines)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=CREATE_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"artemis create failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
