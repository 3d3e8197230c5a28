"""Artemis' `bootstrap.xml` beside the broker.xml: which security manager the broker has, and whose users it takes.

`<jaas-security domain="…"/>` names the entry of login.config. ActiveMQBasicSecurityManager knows no login.config: its
properties name the first user, and files of users. Those that are added later are in Artemis' bindings journal, here in
artemis-users.properties. Nothing else of the file is read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from atalanta.config.problems import Report
from atalanta.config.users.login_config import DOMAIN
from atalanta.files.regular import read_regular
from atalanta.files.xml import XmlError, xml_root

BOOTSTRAP_FILE: Final = "bootstrap.xml"
FILE_BYTES_MAX: Final = 1 << 20
BASIC: Final = "ActiveMQBasicSecurityManager"
JAAS: Final = "ActiveMQJAASSecurityManager"


@dataclass
class Bootstrap:
    """`domain`: the entry of login.config, "" for the usual one. `basic`: the properties of the basic security manager,
    None without it; `line` is its line."""

    domain: str = ""
    basic: dict[str, str] | None = field(default=None, repr=False)  # one is a password
    line: int = 0


def read_bootstrap(folder: Path, report: Report, warnings: list[str]) -> Bootstrap:
    """Reads the file in the folder of a broker.xml. Another security manager is a problem: it would let in others."""
    found = Bootstrap()
    path = folder / BOOTSTRAP_FILE
    try:
        root = xml_root(read_regular(path, FILE_BYTES_MAX)[:FILE_BYTES_MAX])
    except FileNotFoundError:
        return found
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror}")
        return found
    except XmlError as error:
        report.problem(str(path), error.line, error.text)
        return found
    for element in root:
        kind = _name(element)
        line = element.sourceline or 0
        if kind == "jaas-security":
            found.domain = element.get("domain", "")
            other = element.get("certificate-domain")
            if other and other != found.domain:
                warnings.append(
                    f"{path}:{line}: certificate-domain '{other}' has no effect, clients with a certificate log in by"
                    f" the entry '{found.domain}': write securityDomain={other} at their acceptor"
                )
        elif kind == "security-manager":
            given = {each.get("key", ""): each.get("value", "") for each in element if _name(each) == "property"}
            manager = element.get("class-name", "").rpartition(".")[2]
            if manager == BASIC:
                found.basic, found.line = given, line
            elif manager == JAAS:
                found.domain = given.get("domain", "")
            else:
                report.problem(
                    str(path), line, f"security manager {manager} is not supported", f"{JAAS} and {BASIC} are"
                )
    if found.domain == DOMAIN:
        found.domain = ""
    return found


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]
