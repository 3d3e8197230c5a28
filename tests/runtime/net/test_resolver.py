"""Names: addresses by the system, SRV records from a DNS server on the loopback interface."""

from __future__ import annotations

import asyncio
from typing import cast

import dns.asyncresolver
import dns.message
import dns.rcode
import dns.rrset

from atalanta.runtime.driver import Driver
from atalanta.runtime.net.resolver import Resolver
from atalanta.runtime.process.event_loop import run
from tests.runtime.net.echo import Running, with_echo

LOCAL = "127.0.0.1"
SRV = {
    "_core._tcp.broker.": [
        "0 5 61616 node-1.broker.",
        "0 5 61617 node-0.broker.",
        "1 0 61616 node-1.broker.",
    ],
    "_none._tcp.broker.": ["0 0 0 ."],
}


class DnsServer(asyncio.DatagramProtocol):
    """Answers SRV questions about SRV, refuses to know anything else."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is no subclass of asyncio.DatagramTransport.
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = dns.message.from_wire(data)
        answer = dns.message.make_response(question)
        name = question.question[0].name.to_text()
        if name in SRV:
            answer.answer.append(dns.rrset.from_text(name, 5, "IN", "SRV", *SRV[name]))
        else:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        self.transport.sendto(answer.to_wire(), addr)


Answer = tuple[object, ...]


def asked(*names: str) -> list[Answer]:
    """Returns what the node is told of the SRV records of each name."""

    async def use(running: Running) -> None:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(DnsServer, (LOCAL, 0))
        servers = dns.asyncresolver.Resolver(configure=False)
        servers.nameservers = [LOCAL]
        servers.port = transport.get_extra_info("sockname")[1]
        resolver = Resolver(loop, driver_of(running), servers)
        for name in names:
            resolver.resolve(name, name, 0)
        await running.until(lambda: len(running.node.words("resolved")) == len(names))
        transport.close()
        found.extend(sorted(running.node.words("resolved"), key=lambda words: str(words[1])))

    found: list[Answer] = []
    run(with_echo(use))
    return found


def driver_of(running: Running) -> Driver:
    return running.shell.driver


def test_srv_records_are_places_each_once() -> None:
    [answer] = asked("_core._tcp.broker.")
    assert answer[2:] == ([("node-0.broker", 61617), ("node-1.broker", 61616)], "")


def test_a_name_without_service_or_unknown_has_none() -> None:
    none, unknown = asked("_none._tcp.broker.", "_unknown._tcp.broker.")
    assert none[2:] == ([], "")
    assert unknown[2] == [] and "does not exist" in str(unknown[3])


def test_addresses_come_with_the_port_and_what_is_no_name_with_a_reason() -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        links.resolve("loop", LOCAL, 61616)
        links.resolve("bad", "." * 300, 61616)
        await running.until(lambda: len(running.node.words("resolved")) == 2)
        answers = {words[1]: words[2:] for words in running.node.words("resolved")}
        assert answers["loop"] == ([(LOCAL, 61616)], "")
        assert answers["bad"][0] == [] and answers["bad"][1]

    run(with_echo(use))


def test_a_newer_question_replaces_an_older_one_and_closing_ends_them() -> None:
    async def use(running: Running) -> None:
        links = running.shell.links
        links.resolve("k", LOCAL, 1)
        links.resolve("k", LOCAL, 2)
        await running.until(lambda: running.node.words("resolved"))
        links.resolve("k", LOCAL, 3)
        links.close()
        await asyncio.sleep(0.05)
        assert [words[2] for words in running.node.words("resolved")] == [[(LOCAL, 2)]]

    run(with_echo(use))
