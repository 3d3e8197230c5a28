"""DNS resolution: addresses by the system's resolver (hosts file, search domains), SRV records by dnspython.

dnspython is imported for the first SRV query: the import takes 5 MB and a sixth of a node's start time.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.driver import Driver

if TYPE_CHECKING:
    import dns.asyncresolver
    import dns.resolver

LIFETIME_S = 5.0
Endpoints = list[tuple[str, int]]


class Resolver:
    """Makes at most one query per key at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        driver: Driver,
        servers: dns.asyncresolver.Resolver | None = None,
    ) -> None:
        self._loop = loop
        self._driver = driver
        self._servers = servers
        self._asking: dict[str, asyncio.Task[None]] = {}

    def resolve(self, key: str, name: str, port: int) -> None:
        """Implements Links.resolve; a newer query replaces an older one of its key."""
        before = self._asking.get(key)
        if before is not None:
            before.cancel()
        task = self._loop.create_task(self._answer(key, name, port))
        self._asking[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def cancel_all(self) -> None:
        """Cancels all queries without an answer."""
        for task in list(self._asking.values()):
            task.cancel()

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._asking.get(key) is done:
            del self._asking[key]

    async def _answer(self, key: str, name: str, port: int) -> None:
        endpoints: Endpoints = []
        why = ""
        try:
            async with asyncio.timeout(LIFETIME_S + 1):
                endpoints = await (self._addresses(name, port) if port else self._services(name))
        except TimeoutError:
            why = f"no answer within {LIFETIME_S:g} s"
        except OSError as error:
            why = error.strerror or str(error)
        except UnicodeError as error:
            why = str(error)
        self._driver.post(NodeInputs.on_resolved, key, endpoints, why)

    async def _addresses(self, name: str, port: int) -> Endpoints:
        found = await self._loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return sorted({str(address[0]): port for _, _, _, _, address in found}.items())

    async def _services(self, name: str) -> Endpoints:
        """Returns the targets of all priorities and weights: all members are needed, not one. OSError without an
        answer."""
        from dns.asyncresolver import Resolver as Servers
        from dns.exception import DNSException
        from dns.rdatatype import SRV

        try:
            if self._servers is None:
                self._servers = Servers()
            answer = await self._servers.resolve(name, SRV, search=True, lifetime=LIFETIME_S)
        except DNSException as error:
            raise OSError(str(error) or type(error).__name__) from error
        return services_of(answer)


def services_of(answer: dns.resolver.Answer) -> Endpoints:
    """Returns host and port of each SRV record."""
    from dns.rdtypes.IN.SRV import SRV

    endpoints: dict[tuple[str, int], None] = {}
    for record in answer:
        # Target "." means that the service does not exist (RFC 2782).
        if isinstance(record, SRV) and record.port and len(record.target.labels) > 1:
            endpoints[record.target.to_text(omit_final_dot=True), record.port] = None
    return sorted(endpoints)
