"""The addresses at which a consumer at all members dials them."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.client.options import ClientOptions, Server, parse_url
from atalanta.client.shells.asyncio_shell import AsyncioShell
from atalanta.client.shells.member_connections import MemberConnections
from atalanta.wire.core.client.member_consumers import MemberConsumers
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.client.topology import Member
from atalanta.wire.core.packets.session import STAY_ADDRESS

A = Member("a", "one", 61616)
B = Member("b", "two", 61616, "spare", 61616)


def servers(member: Member, dialled: Server, atalanta: bool, *members: Member) -> list[str]:
    async def main() -> list[str]:
        shell = AsyncioShell(ClientOptions())
        shell.dialled = dialled
        shell.settles = atalanta
        shell.engine.topology = {each.node_id: each for each in members}
        shell.engine.node_id = members[0].node_id  # the first that the broker has named
        links = MemberConnections(shell, lambda: SessionSettings("s"))
        return [each.host for each in links._servers(member)]

    return asyncio.run(main())


@pytest.mark.parametrize("atalanta", [True, False])
def test_the_member_of_a_reached_address_is_the_one_that_announces_it(atalanta: bool) -> None:
    two = Server("two", 61616)
    assert servers(A, two, atalanta, A, B) == ["one"], "a is named first, and is not the one that was reached"
    assert servers(B, two, atalanta, A, B) == ["two", "spare"]
    assert servers(B, Server("spare", 61616), atalanta, A, B) == ["spare", "two"]


def test_an_address_that_nobody_announces_is_that_of_a_node_that_is_known_to_name_itself_first() -> None:
    outside = Server("outside", 61616)
    assert servers(A, outside, True, A, B) == ["outside", "one"]
    assert servers(B, outside, True, A, B) == ["two", "spare"]
    assert servers(A, outside, False, A, B) == ["one"], "an Artemis node: a may be the other one"
    assert servers(A, outside, False, A) == ["outside", "one"]


def test_members_are_dialled_with_options_of_one_connection_only_left_out() -> None:
    async def main() -> None:
        options = parse_url("tcp://one:61616?localAddress=127.0.0.1&localPort=4711&clientID=c&reconnectAttempts=-1&zone=west")
        links = MemberConnections(AsyncioShell(options), lambda: SessionSettings("s", client_id="c"))
        links.consumers = MemberConsumers(links, "orders")
        session = links.dial(A)
        shell = links._shells["a"]
        try:
            assert shell.options.local_end == ("127.0.0.1", 0)
            assert session.settings.client_id is None and session.settings.default_address == STAY_ADDRESS
        finally:
            await links.close()

    asyncio.run(main())


def test_a_member_is_away_when_none_of_its_addresses_was_reached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        links = MemberConnections(AsyncioShell(ClientOptions()), lambda: SessionSettings("s"))
        consumers = links.consumers = MemberConsumers(links, "orders")
        away: list[str] = []
        monkeypatch.setattr(consumers, "lost", away.append)
        links.dial(B)
        shell = links._shells["b"]
        for expected in ([], ["b"], ["b"], ["b", "b"]):
            shell.attempt_failed(0, "refused")
            assert away == expected
        links.hang_up("b")
        shell.transport_lost(0, "late")
        assert away == ["b", "b"], "another connection may be in its place"
        await links.close()

    asyncio.run(main())
    warnings = [each.message for each in caplog.records if "cannot be reached" in each.message]
    assert len(warnings) == 1 and "member b" in warnings[0] and "tcp://spare:61616: refused" in warnings[0]
