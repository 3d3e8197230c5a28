"""JGroups stack files (`<config><TCP …/><TCPPING …/>…</config>`), read as a JgroupsStack (wire/jgroups_discovery.py).

The transport (TCP, UDP) and the first discovery protocol are used, with the names and defaults of JGroups 5. Of the
other protocols only those count that encrypt: no real member is met then (JgroupsStack.unmet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from atalanta.files.regular import read_regular
from atalanta.files.xml import XmlError, xml_root
from atalanta.message.encoding.digits import all_digits
from atalanta.wire.jgroups_discovery import DNS, FOLDER, HOSTS, MPING, MULTICAST, JgroupsStack

FILE_BYTES_MAX: Final = 1 << 20
PORT_MAX: Final = 65_535
PORT_RANGE_MAX: Final = 100
HOSTS_MAX: Final = 1_000
PLACEHOLDER: Final = re.compile(r"\$\{([^${}]*)\}")
HOST: Final = re.compile(r"([^\[\]\s]+)\[(\d{1,5})\]")
# Symbolic bind addresses: the system chooses the address.
ANY_ADDRESS: Final = ("GLOBAL", "SITE_LOCAL", "LINK_LOCAL", "NON_LOOPBACK", "match-")
UNMET: Final = "no real member of JGroups is found by this stack: "
REMEDY: Final = "Atalanta nodes and clients find each other by it; for real nodes use static connectors or a UDP group"
KNOWN: Final = ("TCPPING", "DNS_PING", "FILE_PING", "MPING", "PING")


class StackError(Exception):
    """The file is invalid; line 0 if the problem concerns the whole file."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


class Element:
    """A protocol of the stack; placeholders in its values are replaced."""

    def __init__(self, element: Any, values: Mapping[str, str]) -> None:
        self.line: int = element.sourceline or 0
        # Protocols outside of JGroups' usual package have a package prefix: dns.DNS_PING.
        self.name = _name(element).rpartition(".")[2]
        self._element = element
        self._values = values

    def get(self, name: str, default: str = "") -> str:
        text = self._element.get(name)
        if text is None:
            return default
        return replaced(str(text), self._values, self.line).strip()

    def number(self, name: str, default: int, maximum: int) -> int:
        text = self.get(name, str(default))
        if not all_digits(text, 9) or int(text) > maximum:
            shown = text if len(text) <= 60 else text[:57] + "..."
            raise StackError(self.line, f"<{self.name}>: {name}='{shown}' is none of 0 to {maximum}")
        return int(text)

    def interface(self) -> str:
        """Returns the address to bind to, "" for any."""
        text = self.get("bind_addr")
        if text.startswith(ANY_ADDRESS):
            return ""
        return "127.0.0.1" if text == "LOOPBACK" else text


def read_stack(path: Path, channel: str, values: Mapping[str, str]) -> JgroupsStack:
    """Returns the discovery of `channel`. `values` replace `${name:default}`. StackError."""
    try:
        data = read_regular(path, FILE_BYTES_MAX)
    except OSError as error:
        raise StackError(0, f"cannot be read: {error.strerror or error}") from error
    if len(data) > FILE_BYTES_MAX:
        raise StackError(0, f"is larger than {FILE_BYTES_MAX} bytes")
    return parse_stack(data, channel, values)


def parse_stack(data: bytes, channel: str, values: Mapping[str, str]) -> JgroupsStack:
    """Implements `read_stack` for the contents of a file."""
    try:
        root = xml_root(data)
    except XmlError as error:
        raise StackError(error.line, error.text) from error
    if _name(root) != "config":
        raise StackError(root.sourceline or 0, "not a JGroups stack: its root element is <config>")
    protocols = [Element(child, values) for child in root if isinstance(child.tag, str)]
    if not protocols:
        raise StackError(root.sourceline or 0, "an empty JGroups stack")
    transport = protocols[0]
    discoveries = [each for each in protocols[1:] if each.name.endswith(("PING", "GOSSIP"))]
    for protocol in discoveries:
        make = MAKERS.get(protocol.name)
        if make is not None:
            made = make(transport, protocol, channel)
            obstacle = _obstacle(protocols, made)
            if obstacle is not None:
                made.unmet, made.unmet_line = UNMET + obstacle[0], obstacle[1]
            return made
    known = ", ".join(KNOWN)
    if discoveries:
        found = discoveries[0]
        raise StackError(
            found.line, f"<{found.name}> is not supported for discovery: use one of {known}"
        )
    raise StackError(transport.line, f"the stack has no discovery protocol: one of {known}")


def _obstacle(protocols: list[Element], made: JgroupsStack) -> tuple[str, int] | None:
    """Returns why members of the stack cannot be met, and the line."""
    transport = protocols[0]
    if transport.name not in ("UDP", "TCP", "TCP_NIO2"):
        return f"<{transport.name}> is not spoken here", transport.line
    if _secured(transport):
        return f"<{transport.name}> uses TLS", transport.line
    for protocol in protocols[1:]:
        if protocol.name.endswith("ENCRYPT"):
            return f"<{protocol.name}> encrypts what its members send", protocol.line
    if transport.name == "UDP" and not _has_group(transport):
        return "<UDP> has no multicast group (ip_mcast)", transport.line
    if transport.name == "UDP" and made.kind != MULTICAST:
        return f"<UDP> with <{made.protocol}> is met by the multicast group of <PING> or <MPING> only", transport.line
    return None


def _secured(transport: Element) -> bool:
    return transport.get("tls.enabled", "false").lower() == "true"


def _has_group(transport: Element) -> bool:
    return transport.get("ip_mcast", "true").lower() != "false"


def _tcpping(transport: Element, protocol: Element, channel: str) -> JgroupsStack:
    text = protocol.get("initial_hosts")
    hosts: list[tuple[str, int]] = []
    for part in text.split(","):
        found = HOST.fullmatch(part.strip())
        if found is None or int(found[2]) > PORT_MAX:
            raise StackError(
                protocol.line,
                f"<TCPPING>: initial_hosts='{text}' is not a list such as a[7800],b[7800]",
            )
        hosts.append((found[1], int(found[2])))
    if len(hosts) > HOSTS_MAX:
        raise StackError(protocol.line, f"<TCPPING>: more than {HOSTS_MAX} initial_hosts")
    made = _listening(transport, HOSTS, protocol, channel)
    made.hosts = hosts
    made.host_port_range = protocol.number("port_range", 1, PORT_RANGE_MAX)
    return made


def _dns_ping(transport: Element, protocol: Element, channel: str) -> JgroupsStack:
    names = [name.strip() for name in protocol.get("dns_query").split(",") if name.strip()]
    if not names:
        raise StackError(protocol.line, "<DNS_PING> needs dns_query")
    kind = protocol.get("dns_record_type", "A")
    if kind not in ("A", "AAAA", "SRV"):
        raise StackError(
            protocol.line, f"<DNS_PING>: dns_record_type='{kind}' is neither A nor SRV"
        )
    made = _listening(transport, DNS, protocol, channel)
    made.names = names
    made.srv = kind == "SRV"
    if protocol.get("probe_transport_ports", "false").lower() == "true":
        made.host_port_range = made.port_range
    return made


def _listening(transport: Element, kind: str, protocol: Element, channel: str) -> JgroupsStack:
    """Returns a stack that listens on the port of the transport: other members connect there, as with JGroups."""
    is_tcp = transport.name.startswith("TCP")
    return JgroupsStack(
        kind,
        protocol.name,
        channel,
        port=transport.number("bind_port", 7800 if is_tcp else 0, PORT_MAX) or 7800,
        port_range=transport.number("port_range", 10, PORT_RANGE_MAX),
        interface=transport.interface(),
    )


def _file_ping(transport: Element, protocol: Element, channel: str) -> JgroupsStack:
    folder = protocol.get("location")
    if not folder:
        raise StackError(
            protocol.line, "<FILE_PING> needs location, a folder that all members share"
        )
    return JgroupsStack(FOLDER, protocol.name, channel, folder=folder)


def _mping(transport: Element, protocol: Element, channel: str) -> JgroupsStack:
    """Returns the stack for MPING: a group in which members are asked for. Over UDP they have one for all messages."""
    address, port = protocol.get("mcast_addr", "230.5.6.7"), protocol.number("mcast_port", 7555, PORT_MAX)
    interface = protocol.interface() or transport.interface()
    if transport.name == "UDP" and _has_group(transport):
        made = _ping(transport, protocol, channel)
        made.protocol = protocol.name
        # Nodes of earlier releases announce themselves in the group of MPING.
        made.group_address, made.group_port, made.group_interface = address, port, interface
        return made
    if transport.name.startswith("TCP") and not _secured(transport):
        made = _listening(transport, MPING, protocol, channel)
        made.address, made.group_port, made.group_interface = address, port, interface
        return made
    return JgroupsStack(MULTICAST, protocol.name, channel, address=address, port=port, interface=interface)


def _ping(transport: Element, protocol: Element, channel: str) -> JgroupsStack:
    """Returns the stack for PING, which uses the transport to reach all members: with UDP a multicast group."""
    if transport.name != "UDP" or not _has_group(transport):
        raise StackError(
            protocol.line, "<PING> uses the multicast group of <UDP>, which is not there"
        )
    return JgroupsStack(
        MULTICAST,
        "UDP",
        channel,
        address=transport.get("mcast_addr", "228.8.8.8"),
        port=transport.number("mcast_port", 7600, PORT_MAX),
        interface=transport.interface(),
    )


MAKERS: Final[dict[str, Callable[[Element, Element, str], JgroupsStack]]] = {
    "TCPPING": _tcpping,
    "DNS_PING": _dns_ping,
    "FILE_PING": _file_ping,
    "MPING": _mping,
    "PING": _ping,
}


def replaced(text: str, values: Mapping[str, str], line: int) -> str:
    """Replaces `${name}`, `${name:default}`, `${first,second:default}` like JGroups. Placeholders in values are
    kept."""

    def value(found: re.Match[str]) -> str:
        names, separator, default = found[1].partition(":")
        for name in names.split(","):
            given = values.get(name.strip())
            if given is not None:
                return given
        if not separator:
            raise StackError(line, f"'${{{names}}}' has no value")
        return default

    return PLACEHOLDER.sub(value, text)


def _name(element: Any) -> str:
    """Returns the name without its namespace, which may be any text, even "}": lxml's QName refuses that."""
    return str(element.tag).rpartition("}")[2]
