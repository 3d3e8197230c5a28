"""`atalanta.toml`, Atalanta's own file beside broker.xml (options in cluster/native_config.py)."""

from __future__ import annotations

import re
import shlex
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from atalanta.cluster.discovery.dns import dns_names
from atalanta.cluster.native_config import OwnBridge, OwnConsole, OwnSettings, OwnZone, names_of
from atalanta.config.problems import Report, nearest
from atalanta.config.xml.reader import BadValue, convert
from atalanta.files.regular import read_regular
from atalanta.ha.policy import BACKUP, NONE, REPLICATION, HaPolicy
from atalanta.kernel.option import OptionGroup
from atalanta.wire.jgroups.version import VersionError, version_of
from atalanta.wire.uri import UriError

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig

NAME: Final = "atalanta.toml"
BRIDGES: Final = "bridges"
ZONES: Final = "zones"
NETWORKS: Final = "networks"
DNS: Final = "dns-discovery"
HA: Final = "ha"
CONSOLE: Final = "console"
MANAGER: Final = "manager"
OF_REPLICATION: Final = ("min_in_sync", "failback_after_s", "disk_timeout_ms", "guard_port")
ASYNCHRONOUS: Final = "asynchronous"
KIND: Final = "kind"
SIZE_MAX_BYTES: Final = 1 << 20
KINDS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int, str),  # "10M" for a size
    "float": (int, float),
    "str": (str,),
}
Positions = dict[tuple[str, str], tuple[str, int]]  # Configuration.positions
Own = TypeVar("Own", OwnBridge, OwnZone)
AT_LINE: Final = re.compile(r"\(at line (\d+)")


def own_file(broker_xml: Path) -> Path:
    """Returns `<stem>.atalanta.toml` if that exists, for several broker.xml in one folder; else `atalanta.toml`."""
    particular = broker_xml.with_name(f"{broker_xml.stem}.{NAME}")
    return particular if particular.exists() else broker_xml.with_name(NAME)


def ways_alone(path: Path) -> str:
    """Returns the lines that say of the file `path` that there are no other brokers: of a start, and of its file of
    own settings."""
    option = f"start it with `atalanta run --alone {shlex.quote(str(path))}`"
    return f"{option}, or write `alone = true` as the first line of {own_file(path)}"


def read_own_file(
    path: Path,
    report: Report,
    ha: HaPolicy,
    positions: Positions | None = None,
    networks: list[NetworkConnectorConfig] | None = None,
    data: bytes | None = None,
) -> OwnSettings:
    """Reads the settings in `path`, the defaults if the file does not exist; the table `[ha]` is read into `ha`.

    Problems are added to `report`, the positions of the keys in `[ha]` to `positions`, the tables `[networks.NAME]` to
    `networks`. `data` is read instead of the file, if it is given.
    """
    own = OwnSettings()
    try:
        data = read_regular(path, SIZE_MAX_BYTES) if data is None else data
    except FileNotFoundError:
        return own
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror or error}")
        return own
    if len(data) > SIZE_MAX_BYTES:
        report.problem(str(path), 0, f"has more than {SIZE_MAX_BYTES} bytes")
        return own
    import tomllib  # Most nodes have no such file, and a start is faster without it.

    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        report.problem(str(path), data[: error.start].count(b"\n") + 1, "is not UTF-8")
        return own
    except tomllib.TOMLDecodeError as error:
        found = AT_LINE.search(str(error))
        # Without a line number the file ended too early: the error is in the last line.
        line = int(found.group(1)) if found else text.count("\n") + 1
        report.problem(str(path), line, f"is not TOML: {error}")
        return own
    except (
        ValueError,
        RecursionError,
    ) as error:  # numbers of thousands of digits, deeply nested lists
        report.problem(str(path), 0, f"is not TOML that can be read: {error}")
        return own
    reader = OwnReader(path, text, report)
    reader.read(table, own, ha)
    if networks is not None:
        networks.extend(reader.networks)
    found_ha = table.get(HA)
    if positions is not None and isinstance(found_ha, dict):
        positions.update({(f"[{HA}]", key): (str(path), reader.line_of(key)) for key in found_ha})
    return own


class OwnReader:
    """Reads the TOML table into `OwnSettings` and `HaPolicy`, and checks each value against its option."""

    def __init__(self, path: Path, text: str, report: Report) -> None:
        self.path = path
        self.lines = text.splitlines()
        self.report = report
        self.networks: list[NetworkConnectorConfig] = []

    def read(self, table: dict[str, Any], own: OwnSettings, ha: HaPolicy) -> None:
        """Reads every key of the file; unknown keys are problems."""
        known = {entry.metadata["xml"]: entry for entry in fields(OwnSettings) if entry.metadata}
        for key, value in table.items():
            entry = known.get(key)
            if key == BRIDGES:
                own.bridges = self._named_tables(BRIDGES, value, OwnBridge)
                for bridge in own.bridges.values():
                    if bridge.transformer is not None and not is_function(bridge.transformer):
                        text = f"transformer: '{bridge.transformer}' is not module:function"
                        self.problem("transformer", text)
            elif key == ZONES:
                hint = 'write key = "first, second"'
                own.zones = self._named_tables(ZONES, value, OwnZone, hint)
                for name, zone in own.zones.items():
                    self._check_zone(name, zone)
            elif key == NETWORKS:
                self._read_networks(value)
            elif key == HA:
                self._read_ha(value, ha)
            elif key == CONSOLE:
                own.console = self._console(value)
            elif key == DNS and isinstance(value, dict):
                own.dns_by_cluster = self._texts(key, value)
            elif entry is None:
                self.problem(key, f"unknown key '{key}'", nearest(key, [*known, BRIDGES, ZONES, NETWORKS, HA, CONSOLE]))
            else:
                self._assign(own, entry, key, value)
        if own.jgroups_version is not None:
            try:
                version_of(own.jgroups_version)
            except VersionError as wrong:
                own.jgroups_version = None
                self.problem("jgroups-version", f"jgroups-version: {wrong}")
        for text in own.dns_texts():
            try:
                dns_names(text)
            except UriError as error:
                self.problem(DNS, f"{DNS}: {error}")

    def _named_tables(
        self, section: str, value: object, kind: type[Own], hint: str = ""
    ) -> dict[str, Own]:
        """Reads the tables `[section.NAME]` of texts; `hint` is for a value that is none."""
        found: dict[str, Own] = {}
        if not isinstance(value, dict):
            self.problem(section, f"{section} is not a table", f"write [{section}.NAME]")
            return found
        known = {entry.metadata["xml"]: entry for entry in fields(kind)}
        for name, table in value.items():
            if not isinstance(table, dict):
                text = f"{section}.{name} is not a table"
                self.problem(section, text, f"write [{section}.{name}]")
                continue
            found[name] = own = kind()
            for key, text in table.items():
                entry = known.get(key)
                if entry is None:
                    unknown = f"unknown key '{key}' in [{section}.{name}]"
                    self.problem(key, unknown, nearest(key, known))
                elif not isinstance(text, str):
                    self.problem(key, f"{key}: {text!r} is not a string", hint)
                else:
                    setattr(own, entry.name, text)
        return found

    def _check_zone(self, name: str, zone: OwnZone) -> None:
        from ipaddress import ip_network  # Imported here: nodes start without it.

        if not name or "," in name:
            text = f"[zones.{name!r}]: a zone's name is not empty and has no comma"
            self.problem(ZONES, text)
        for text in names_of(zone.networks):
            try:
                ip_network(text, strict=False)
            except ValueError as error:
                hint = "write an address or a network such as 10.1.0.0/16"
                self.problem("networks", f"networks: {error}", hint)
        for text in names_of(zone.members):
            host, _, port = text.rpartition(":")
            if not host or not port.isdecimal():
                self.problem("members", f"members: '{text}' is not host:port")

    def _read_networks(self, value: object) -> None:
        from atalanta.config.native.networks import (
            read_own_networks,  # Most nodes have no networks.
        )

        self.networks = read_own_networks(value, self._assign, self.problem)

    def _console(self, table: object) -> OwnConsole | None:
        if not isinstance(table, dict):
            self.problem(CONSOLE, f"{CONSOLE} is not a table", f"write [{CONSOLE}]")
            return None
        own = OwnConsole()
        known = {entry.metadata["xml"]: entry for entry in fields(OwnConsole)}
        for key, value in table.items():
            if key in known:
                self._assign(own, known[key], key, value)
            else:
                self.problem(key, f"unknown key '{key}' in [{CONSOLE}]", nearest(key, known))
        return own

    def _read_ha(self, table: object, ha: HaPolicy) -> None:
        if not isinstance(table, dict):
            self.problem(HA, f"{HA} is not a table", f"write [{HA}]")
            return
        known = {entry.metadata["xml"]: entry for entry in fields(HaPolicy) if entry.metadata}
        for key, value in table.items():
            if key == MANAGER:
                self._read_manager(value, ha)
                if ha.form != REPLICATION:
                    self._without_effect(key, "no effect (only the nodes of a replication need one)")
            elif key not in known:
                text = f"unknown key '{key}' in [{HA}]"
                self.problem(key, text, nearest(key, [*known, MANAGER]))
            else:
                self._assign(ha, known[key], key, value)
                if key == ASYNCHRONOUS:
                    self._check_asynchronous(ha)
                elif ha.form == NONE or (key in OF_REPLICATION and ha.form != REPLICATION):
                    self._without_effect(key, "no effect (this node has no ha-policy that needs it)")

    def _check_asynchronous(self, ha: HaPolicy) -> None:
        """Refuses an asynchronous member that could serve without an order, or that has no group."""
        if not ha.asynchronous:
            return
        if ha.form != REPLICATION:
            self.problem(
                ASYNCHRONOUS, f"{ASYNCHRONOUS}: this node has no <replication>, so there is nothing that it copies",
                "remove it, or make this node the <backup> of a <replication>",
            )  # fmt: skip
        elif ha.role != BACKUP:
            self.problem(
                ASYNCHRONOUS, f"{ASYNCHRONOUS}: a primary serves, it cannot be asynchronous",
                "remove it, or make this node the <backup> of its <replication>",
            )  # fmt: skip
        elif ha.allow_failback:
            self.problem(
                ASYNCHRONOUS, f"{ASYNCHRONOUS}: allow-failback has no place in an asynchronous member: an operator"
                " moves its service, in both directions",
                "remove allow-failback, and use `atalanta ha promote` at the member that is to serve",
            )  # fmt: skip

    def _read_manager(self, table: object, ha: HaPolicy) -> None:
        """Reads `[ha.manager]`, which is taken instead of one in broker.xml."""
        from atalanta.ha.manager_config import MANAGERS  # Most nodes have no manager.

        kinds = ", ".join(MANAGERS)
        kind = table.get(KIND) if isinstance(table, dict) else None
        if not isinstance(table, dict) or not isinstance(kind, str) or kind not in MANAGERS:
            text = f"[{HA}.{MANAGER}] has no kind" if kind is None else f"kind: {kind!r} is none of {kinds}"
            self.problem(MANAGER if kind is None else KIND, text, f"write [{HA}.{MANAGER}] and kind = one of {kinds}")
            return
        ha.manager = MANAGERS[kind]()
        options = fields(MANAGERS[kind])
        known = {entry.metadata["xml"]: entry for entry in options}
        for key, value in table.items():
            if key in known:
                self._assign(ha.manager, known[key], key, value)
            elif key != KIND:
                text = f"unknown key '{key}' of the manager '{kind}'"
                self.problem(key, text, nearest(key, known) or ", ".join(known))
        if options[0].metadata["xml"] not in table:
            required = options[0].metadata
            self.problem(KIND, f"the manager has no {required['xml']}", required["why"])

    def _without_effect(self, key: str, why: str) -> None:
        self.report.without_effect(str(self.path), self.line_of(key), f"[{HA}] {key}", why, True)

    def _texts(self, key: str, table: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, text in table.items():
            if isinstance(text, str):
                found[name] = text
            else:
                self.problem(key, f"{key}.{name}: {text!r} is not a string")
        return found

    def problem(self, key: str, text: str, hint: str = "") -> None:
        """Reports a problem at the line of `key`."""
        self.report.problem(str(self.path), self.line_of(key), text, hint)

    def line_of(self, key: str) -> int:
        """Returns the first line that assigns `key` or opens the table of that name; 0 if there is none."""
        stands = re.compile(rf"\s*(\[+\s*)?([\w-]+\.)*[\"']?{re.escape(key)}[\"']?\s*[\]=.]")
        for number, line in enumerate(self.lines, 1):
            if stands.match(line):
                return number
        return 0

    def _assign(self, own: OptionGroup, entry: Field[Any], key: str, value: object) -> None:
        kind = entry.metadata["kind"]
        if isinstance(value, bool) != (kind == "bool") or not isinstance(value, KINDS[kind]):
            self.problem(key, f"{key}: {value!r} is not of type {kind}")
            return
        try:
            setattr(own, entry.name, convert(str(value), entry.metadata))
        except BadValue as error:
            self.problem(key, f"{key}: {error}")


def is_function(text: str) -> bool:
    """Returns whether the text has the form `package.module:function`."""
    module, separator, function = text.partition(":")
    return bool(separator) and all(part.isidentifier() for part in (*module.split("."), function))
