"""Members of real JGroups clusters hear our nodes, and log nothing because of them."""

from __future__ import annotations

import pytest

from atalanta.cluster.discovery.tcp_channel import CALLERS_MAX, TcpChannel
from atalanta.sim.host import Host
from atalanta.wire.core.broadcast_datagram import decode_announcement
from atalanta.wire.jgroups.bundle import encode_bundle
from atalanta.wire.jgroups.connection_start import FRAME_BYTES_MAX
from atalanta.wire.jgroups.version import version_of
from atalanta.wire.jgroups_discovery import (
    FOLDER,
    HOSTS,
    MPING,
    MULTICAST,
    JgroupsStack,
    encode_channel_message,
)
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.discovery.discovery_rig import at, discovery_of
from tests.cluster.discovery.jgroups_member import GROUP, Member, announced

MPING_GROUP = "230.5.6.7:7555"
VERSIONS = ("3.6.13", "4.2.21", "5.2.0", "5.3.13", "5.5.6")


def udp(**more: object) -> JgroupsStack:
    stack = JgroupsStack(MULTICAST, "UDP", "c", address="230.5.6.8", port=7600)
    for name, value in more.items():
        setattr(stack, name, value)
    return stack


def tcp(*hosts: tuple[str, int], **more: object) -> JgroupsStack:
    stack = JgroupsStack(HOSTS, "TCPPING", "c", port=7800, port_range=5, hosts=list(hosts))
    for name, value in more.items():
        setattr(stack, name, value)
    return stack


def node(rig: Rig, stack: JgroupsStack) -> Host:
    rig.network.ips["n0"] = "10.0.0.1"
    host = rig.node(discovery=True, whole=at(stack))
    host.start()
    return host


def channel_of(host: Host) -> TcpChannel:
    [channel] = discovery_of(host).channels
    assert isinstance(channel, TcpChannel)
    return channel


def names(member: Member) -> list[str]:
    return sorted({decode_announcement(payload).node_id for payload in member.heard})


# -- UDP ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_by_udp_hears_a_node_and_is_heard(rig: Rig, version: str) -> None:
    host = node(rig, udp())
    member = Member(rig, version)
    member.join()
    member.cast(announced("real"))
    rig.until(lambda: member.heard, 5)
    assert names(member) == ["node-0"]
    rig.until(lambda: list(discovery_of(host).entries("group")) == ["real"], 5)
    rig.run(10)
    assert member.logged == [] and len(member.heard) >= 15
    assert len(rig.events("jgroups_version_heard")) == 1


def test_members_of_two_lines_each_hear_it_in_their_own(rig: Rig) -> None:
    node(rig, udp())
    old, new = Member(rig, "3.6.13", "10.0.0.98"), Member(rig, "5.3.13", "10.0.0.99")
    for member in (old, new):
        member.join()
        member.cast(b"hello")
        member.cast(b"hello")
    rig.run(5)
    assert names(old) == names(new) == ["node-0"]


def test_a_group_without_members_is_spoken_to_after_a_moment_and_at_once_if_the_version_is_named(rig: Rig) -> None:
    node(rig, udp())
    member = Member(rig, "5.3.13")
    member.join()
    rig.run(2)
    assert member.heard == []
    rig.until(lambda: member.heard, 3)
    other = Rig()
    node(other, udp(version=version_of("3.6")))
    named = Member(other, "3.6.13")
    named.join()
    other.until(lambda: named.heard, 1)
    assert member.logged == named.logged == []


def test_a_guess_ends_when_a_member_is_heard(rig: Rig) -> None:
    node(rig, udp())
    rig.run(5)  # it speaks 5.3 by now
    member = Member(rig, "5.2.0")
    member.cast(b"i come")
    member.cast(b"i come")
    rig.run(1)
    member.join()
    rig.run(5)
    assert names(member) == ["node-0"] and member.logged == []


def test_forged_versions_do_not_make_it_speak_without_end(rig: Rig) -> None:
    node(rig, udp())
    listener = Member(rig, "5.3.13")
    listener.join()
    for minor in range(30):
        Member(rig, f"5.{minor}.1").cast(b"x")
    rig.run(1)
    listener.heard.clear()
    listener.logged.clear()
    rig.run(0.6)
    assert len(listener.heard) + len(listener.logged) <= 2 * 8, "eight lines at most, twice a second"


def test_a_node_of_an_earlier_release_is_heard_by_udp_and_never_spoken_to_in_its_form(rig: Rig) -> None:
    host = node(rig, udp())
    member = Member(rig, "5.3.13")
    member.cast(b"hello")
    member.cast(b"hello")
    rig.run(1)
    member.join()
    for _ in range(5):
        rig.network.multicast(member, GROUP, encode_channel_message("c", announced("older")))
        rig.run(0.4)
    assert list(discovery_of(host).entries("group")) == ["older"]
    assert [each for each in member.logged if "ATLMEET1" not in each] == [], "the older node's own are the only ones"
    before = len(member.logged)
    rig.run(5)
    assert len(member.logged) == before


def test_an_encrypted_group_hears_nodes_of_ours_ever_more_seldom(rig: Rig) -> None:
    """Each of these is a line in a member's log, at most one a minute there."""
    host = node(rig, udp(unmet="it is encrypted"))
    member = Member(rig, "5.3.13")
    member.join()
    for _ in range(120):
        member.cast(b"\x00" * 50)
        rig.run(1)
    assert member.heard == [] and list(discovery_of(host).entries("group")) == []
    assert len(member.logged) <= 12


# -- TCP ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", ["5.3.0", "5.3.13"])
def test_a_member_that_is_dialled_hears_a_node_and_logs_nothing(rig: Rig, version: str) -> None:
    member = Member(rig, version)
    member.listen()
    node(rig, tcp((member.ip, 7800)))
    rig.until(lambda: member.heard, 3)
    assert names(member) == ["node-0"]
    rig.run(20)
    assert member.accepted == 1, "one connection, with one message a period"
    for _ in range(3):
        heard = len(member.heard)
        member.view()
        rig.run(2)
        assert len(member.heard) > heard, "it is dialled again"
    assert member.logged == [] and rig.events("jgroups_member_refused") == []


@pytest.mark.parametrize(("version", "lines"), [("5.2.0", 1), ("3.6.13", 2), ("4.2.21", 3), ("5.5.6", 5)])
def test_a_wrong_guess_is_tried_ever_more_seldom_until_the_line_is_found(rig: Rig, version: str, lines: int) -> None:
    member = Member(rig, version)
    member.listen()
    node(rig, tcp((member.ip, 7800)))
    rig.run(9)
    assert len(member.logged) == 1, "one guess"
    rig.until(lambda: member.heard, 400)
    rig.run(100)
    assert len(member.logged) == lines
    [told] = rig.events("jgroups_member_refused")
    assert f"member={member.ip}:7800" in told and "jgroups-version" in told


def test_a_member_that_never_takes_it_is_let_alone_ever_longer(rig: Rig) -> None:
    member = Member(rig, "5.9.1")
    member.listen()
    node(rig, tcp((member.ip, 7800)))
    rig.run(3_600)
    assert member.heard == [] and 5 <= len(member.logged) <= 10
    assert len(rig.events("jgroups_member_refused")) == 1


def test_the_named_version_is_the_first_word(rig: Rig) -> None:
    member = Member(rig, "4.2.21")
    member.listen()
    node(rig, tcp((member.ip, 7800), version=version_of("4.2")))
    rig.until(lambda: member.heard, 3)
    assert member.logged == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_member_that_dials_is_answered_and_dialled_from_then_on(rig: Rig, version: str) -> None:
    host = node(rig, tcp(("n0", 7800)))
    member = Member(rig, version)
    member.listen()
    rig.run(1)
    member.dial(host)
    rig.until(lambda: member.heard, 1)
    assert names(member) == ["node-0"] and member.accepted == 0, "over the connection that is there"
    member.view()
    member.heard.clear()
    rig.until(lambda: member.heard, 2)
    assert member.accepted == 1 and member.logged == []


def test_a_member_that_dials_tells_the_line_of_all(rig: Rig) -> None:
    other = Member(rig, "3.6.13", "10.0.0.98")
    other.listen()
    host = node(rig, tcp(("n0", 7800), (other.ip, 7800)))
    rig.run(2)
    assert len(other.logged) == 1 and not other.heard
    Member(rig, "3.6.13").dial(host)
    rig.until(lambda: other.heard, 2)
    assert len(other.logged) == 1


def test_an_address_that_is_not_the_caller_s_own_is_never_dialled(rig: Rig) -> None:
    host = node(rig, tcp(("n0", 7800)))
    victim, caller = Member(rig, "5.3.13", "10.0.0.50"), Member(rig, "5.3.13")
    victim.listen()
    caller.dial(host, (victim.ip, 7800))
    rig.run(10)
    assert victim.accepted == 0 and channel_of(host).callers == {}


def test_callers_are_bounded_and_who_is_gone_is_forgotten(rig: Rig) -> None:
    host = node(rig, tcp(("n0", 7800)))
    rig.run(1)
    caller = Member(rig, "5.3.13")
    for port in range(CALLERS_MAX + 20):
        conn = caller.dial(host, (caller.ip, 10_000 + port))
        rig.network.close(conn, "enough")
    assert len(channel_of(host).callers) <= CALLERS_MAX
    rig.run(10)
    assert channel_of(host).callers == {} and len(channel_of(host).records) <= 2


def test_a_greeting_that_does_not_come_and_a_frame_that_is_too_long_end_the_connection(rig: Rig) -> None:
    host = node(rig, tcp(("n0", 7800)))
    rig.run(1)
    caller = Member(rig, "5.3.13")
    caller.rig.network.dial(caller, "raw", host.name, 7800)
    rig.until(lambda: caller.conns)
    caller.write(b"bel")
    rig.run(15)
    assert len(caller.closed) == 1
    caller.dial(host)
    caller.write((FRAME_BYTES_MAX + 1).to_bytes(4, "big"))
    rig.run(1)
    assert len(caller.closed) == 2
    rig.run(3)
    assert channel_of(host).connections == {} and node_of(host).connections == {}


def test_an_encrypted_tcp_stack_is_only_greeted(rig: Rig) -> None:
    member = Member(rig, "5.3.13")
    member.listen()
    host = node(rig, tcp((member.ip, 7800), unmet="it is encrypted"))
    member.dial(host)
    rig.run(20)
    assert member.accepted >= 1 and member.heard == [] and member.logged == []


def test_what_a_node_of_ours_says_behind_a_greeting_is_heard(rig: Rig) -> None:
    """One that lists this node, and that this node does not list."""
    host = node(rig, tcp(("n0", 7800)))
    rig.run(1)
    caller = Member(rig, "5.2.0")
    conn = caller.dial(host, (caller.ip, 1))
    bundle = encode_bundle(version_of("5.2"), "c", bytes(16), [announced("other")])
    caller.write(len(bundle).to_bytes(4, "big") + bundle, conn)
    rig.run(1)
    assert list(discovery_of(host).entries("group")) == ["other"]


def test_no_frame_of_another_cluster_is_taken(rig: Rig) -> None:
    host = node(rig, tcp(("n0", 7800)))
    caller = Member(rig, "5.2.0")
    conn = caller.dial(host)
    bundle = encode_bundle(version_of("5.2"), "other", bytes(16), [announced("other")])
    caller.write(len(bundle).to_bytes(4, "big") + bundle, conn)
    rig.run(1)
    assert list(discovery_of(host).entries("group")) == []


# -- FILE_PING and MPING --------------------------------------------------------------------------
def test_members_of_file_ping_s_files_are_dialled_and_no_file_of_theirs_is_written(rig: Rig) -> None:
    member = Member(rig, "5.3.13")
    member.listen()
    listed = f"vm-1 \t {'1' * 36} \t {member.ip}:7800 \t T\n".encode()
    rig.network.folders["/shared/c"] = {"vm-1.list": listed}
    node(rig, JgroupsStack(FOLDER, "FILE_PING", "c", folder="/shared"))
    rig.until(lambda: member.heard, 3)
    assert names(member) == ["node-0"] and member.logged == []
    assert sorted(rig.network.folders["/shared/c"]) == ["node-0.atalanta", "vm-1.list"]
    assert rig.network.folders["/shared/c"]["vm-1.list"] == listed


@pytest.mark.parametrize("version", ["4.2.21", "5.3.13"])
def test_members_are_asked_for_by_mping_and_dial(rig: Rig, version: str) -> None:
    member = Member(rig, version)
    member.listen()
    member.join(MPING_GROUP)
    host = node(rig, JgroupsStack(MPING, "MPING", "c", address="230.5.6.7", group_port=7555, port=7800, port_range=5))
    rig.until(lambda: member.asked, 3)
    assert set(member.asked) == {("10.0.0.1", 7800)}
    member.dial(host)
    rig.until(lambda: member.heard, 1)
    assert names(member) == ["node-0"] and member.logged == []


def test_nothing_of_our_own_form_goes_to_mping_s_group(rig: Rig) -> None:
    """A member logs an error with a stack trace for what it cannot read there."""
    member = Member(rig, "3.6.13")
    stack = JgroupsStack(MPING, "MPING", "c", address="230.5.6.7", group_port=7555, port=7800)
    stack.version = version_of("3.6")
    host = node(rig, stack)
    member.join(MPING_GROUP)
    rig.network.multicast(member, MPING_GROUP, encode_channel_message("c", announced("older")))
    rig.network.multicast(member, MPING_GROUP, encode_channel_message("c", announced("older")))
    rig.run(2)
    assert list(discovery_of(host).entries("group")) == ["older"], "an earlier release announces itself there"
    assert member.asked and len(member.logged) <= 2
