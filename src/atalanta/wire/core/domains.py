"""A reload that changes whose users come in at an acceptor (`securityDomain`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.security.security import Security
    from atalanta.wire.core.config import AcceptorConfig


def change_domains(
    trace: Trace,
    acceptors: dict[str, AcceptorConfig],
    fresh: list[AcceptorConfig],
    security: Security,
) -> None:
    """`acceptors` are those in use, `fresh` and `security` what was read. Nothing else of an acceptor changes.

    Connections made from now on ask the new domain. One that is open keeps its own, also for further sessions, and what
    `Security.replace` leaves its users; none of its sessions is reattached to a new one (wire/core/server/reattach.py:
    `_may`).
    """
    wanted = {acceptor.name: acceptor.security_domain for acceptor in fresh}
    for name, acceptor in list(acceptors.items()):
        domain = wanted.get(name, acceptor.security_domain)
        if domain != acceptor.security_domain:
            acceptors[name] = replace(acceptor, security_domain=domain)
            trace.event("security_domain_changed", {"acceptor": name, "domain": domain})
        elif domain and domain not in security.domains and security.enabled:
            trace.event("security_domain_without_users", {"acceptor": name, "domain": domain})
