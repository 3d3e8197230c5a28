"""Artemis' `bootstrap.xml` beside the broker.xml: who knows the users, and by which entry of login.config."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.config.users.login_config import DOMAIN
from atalanta.config.xml.tree import names_of
from atalanta.files.regular import read_regular
from atalanta.files.xml import XmlError, xml_root

if TYPE_CHECKING:
    from atalanta.config.problems import Report

BOOTSTRAP_FILE: Final = "bootstrap.xml"
FILE_BYTES_MAX: Final = 1024 * 1024


def bootstrap_domain(folder: Path, report: Report, warnings: list[str]) -> str:
    """Returns the entry of login.config that `<jaas-security>` names; "" for the usual one, and without the file.

    Another security manager is a problem: the users of the files beside it are perhaps others.
    """
    path = folder / BOOTSTRAP_FILE
    try:
        root = xml_root(read_regular(path, FILE_BYTES_MAX)[:FILE_BYTES_MAX])
    except FileNotFoundError:
        return ""
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror}")
        return ""
    except XmlError as malformed:
        report.problem(str(path), malformed.line, malformed.text)
        return ""
    domain = ""
    for element in root:
        name = names_of(element)[1] if isinstance(element.tag, str) else ""
        line = element.sourceline or 0
        if name == "security-manager":
            kind = str(element.get("class-name") or "").rpartition(".")[2]
            hint = f'write <jaas-security domain="{DOMAIN}"/> instead, and add its users by atalanta user add'
            report.problem(str(path), line, f"<security-manager> {kind} is Java: its users are not known here", hint)
        elif name == "jaas-security":
            domain = str(element.get("domain") or "")
            other = element.get("certificate-domain")
            if other and other != domain:
                warnings.append(
                    f"{path}:{line}: certificate-domain '{other}' has no effect, clients with a certificate log in by"
                    f" the entry '{domain}': write securityDomain={other} at their acceptor"
                )
    return "" if domain == DOMAIN else domain
