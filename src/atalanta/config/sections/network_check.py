"""Checks of the elements `<network-check-…>` of broker.xml (options in runtime/network_check/config.py).

As in Artemis (NetworkHealthCheck.parseAddressList, parseURIList), loopback addresses and invalid URLs are left
out with a warning. An impossible address stays and never answers. A value that could only fail later is a
problem.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from atalanta.config.problems import Report
from atalanta.config.xml.tree import XmlElement
from atalanta.runtime.network_check.config import (
    BadCommand,
    NetworkCheckConfig,
    PingCommand,
    listed,
)

SCHEMES: Final = ("http", "https")
OTHER_SCHEMES: Final = ("file", "ftp", "jar", "jrt", "mailto")  # schemes that Java supports
ENTRIES_MAX: Final = 100  # each is checked on a thread of its own
HOST_NAME: Final = re.compile(r"(?!.{254})[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
INTERFACE: Final = re.compile(r"[A-Za-z0-9_][^\s/]{0,14}")


def check_network(core: XmlElement, config: NetworkCheckConfig, report: Report) -> None:
    """Reports problems with file and line, and removes the entries that are not checked."""
    for node in core.all("network-check-list"):
        config.addresses = ",".join(_addresses(node, report))
    for node in core.all("network-check-URL-list"):
        config.urls = ",".join(_urls(node, report))
    for node in core.all("network-check-NIC"):
        _interface(node, config, report)
    for name in ("network-check-ping-command", "network-check-ping6-command"):
        for node in core.all(name):
            _command(node, report)


def _entries(node: XmlElement, report: Report) -> list[str]:
    entries = listed(node.text)
    if len(entries) > ENTRIES_MAX:
        why = f"{node.name}: {len(entries)} entries, more than {ENTRIES_MAX}"
        report.problem(node.file, node.line, why)
    return entries[:ENTRIES_MAX]


def _addresses(node: XmlElement, report: Report) -> list[str]:
    from ipaddress import ip_address  # Imported here: nodes start without it.

    kept: list[str] = []
    for name in _entries(node, report):
        loopback = name.lower() == "localhost"
        try:
            address = ip_address(name.strip("[]"))
            loopback = address.is_loopback
            name = str(address)
        except ValueError:
            if HOST_NAME.fullmatch(name) is None:
                text = f"'{name[:60]}' is neither an address nor a host name: it never answers"
                _warn(node, report, text)
        if loopback:
            _warn(node, report, f"'{name}' is left out: a loopback address always answers")
        else:
            kept.append(name)
    _warn_of_nothing(node, report, kept)
    return kept


def _urls(node: XmlElement, report: Report) -> list[str]:
    kept: list[str] = []
    for url in _entries(node, report):
        try:
            parts = urlsplit(url)
            scheme = parts.scheme
            known = scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            scheme, known = "", False
        if scheme in OTHER_SCHEMES:
            why = f"{node.name}: '{url[:60]}': only {' and '.join(SCHEMES)} are supported"
            report.problem(node.file, node.line, why)
        elif not known:
            _warn(node, report, f"'{url[:60]}' is left out: it is not a URL such as http://10.0.0.1:8080/")
        else:
            kept.append(url)
    _warn_of_nothing(node, report, kept)
    return kept


def _warn_of_nothing(node: XmlElement, report: Report, kept: list[str]) -> None:
    if node.text.strip(" ,") and not kept:
        _warn(node, report, "no entry is left to check")


def _interface(node: XmlElement, config: NetworkCheckConfig, report: Report) -> None:
    if not config.interface:
        return
    if INTERFACE.fullmatch(config.interface) is None:
        why = f"{node.name}: '{config.interface[:60]}' is not a name of a network interface"
        report.problem(node.file, node.line, why)
    elif config.custom():
        _warn(node, report, "has no effect: the ping command is your own, name the interface there")


def _command(node: XmlElement, report: Report) -> None:
    text = node.text.strip()
    if not text:
        return  # the default
    try:
        command = PingCommand(text)
    except BadCommand as error:
        report.problem(node.file, node.line, f"{node.name}: {error}")
        return
    if not command.takes_address:
        _warn(
            node, report, "does not get the address: add the second value, as in '%d %s' or '%2$s'"
        )


def _warn(node: XmlElement, report: Report, text: str) -> None:
    report.warnings.append(f"{node.file}:{node.line}: {node.name}: {text}")
