"""The handshake between two members: both must know the cluster password, and nothing recorded helps later."""

from __future__ import annotations

import pytest

from atalanta.cluster.replication.member_handshake import (
    BODY_SIZE_MAX,
    HEAD_SIZE,
    ActiveHandshake,
    FollowerHandshake,
    Welcome,
    member_key,
)
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.protocol_error import ProtocolError
from tests.cluster.replication.member_samples import HELLO, NODE_ID

KEY = member_key("user", "password")
WELCOME = Welcome(NODE_ID, 7, "A-11111111")


def follower(key: bytes = KEY, nonce: bytes = b"F" * 32) -> FollowerHandshake:
    return FollowerHandshake(key, nonce, HELLO)


def active(key: bytes = KEY, nonce: bytes = b"A" * 32) -> ActiveHandshake:
    return ActiveHandshake(key, nonce)


def recorded() -> tuple[list[bytes], list[bytes]]:
    """What the follower and the active node have sent in a good handshake."""
    one, other = follower(), active()
    hello_head = one.begin()
    challenge = other.feed(hello_head)
    hello = one.feed(challenge)
    assert other.feed(hello) == b""
    return [hello_head, hello], [challenge, other.answer(WELCOME)]


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("welcome", [WELCOME, Welcome(NODE_ID, 7, "A", "the group is full")])
def test_both_know_each_other(step: int, welcome: Welcome) -> None:
    one, other = follower(), active()
    to_active, to_follower = one.begin(), b""
    while not one.complete:
        answer = b""
        for start in range(0, len(to_active), step):
            to_follower += other.feed(to_active[start : start + step])
        if other.hello is not None and not answer:
            answer = other.answer(welcome) + b"first frame"
            to_follower += answer
        to_active = b""
        for start in range(0, len(to_follower), step):
            to_active += one.feed(to_follower[start : start + step])
        to_follower = b""
    assert other.hello == HELLO
    assert one.welcome == welcome
    assert other.rest() == b""
    assert one.rest() == b"first frame"


def test_another_password_is_refused_by_both() -> None:
    wrong = member_key("user", "passwore")
    one, other = follower(wrong), active()
    with pytest.raises(ProtocolError, match="cluster-password"):
        other.feed(one.feed(other.feed(one.begin())))
    sent, _ = recorded()
    one, other = follower(), active(wrong)
    other.feed(sent[0])
    one.feed(active(wrong).feed(sent[0]))
    with pytest.raises(ProtocolError, match="cluster-password"):
        one.feed(other.answer(WELCOME))


def test_user_and_password_are_not_one_text() -> None:
    assert member_key("user", "1password") != member_key("user1", "password")


def test_a_recorded_handshake_opens_nothing() -> None:
    from_follower, from_active = recorded()
    other = active(nonce=b"B" * 32)
    other.feed(from_follower[0])
    with pytest.raises(ProtocolError, match="cluster-password"):
        other.feed(from_follower[1])
    assert other.hello is None
    one = follower(nonce=b"G" * 32)
    one.feed(from_active[0])
    with pytest.raises(ProtocolError, match="cluster-password"):
        one.feed(from_active[1])
    assert one.welcome is None


def test_what_a_member_has_sent_is_not_taken_from_another() -> None:
    """A peer that sends everything back, the proofs included, proves nothing."""
    one = follower()
    with pytest.raises(ProtocolError, match="repeats"):
        one.feed(one.begin())
    one, other = follower(), active()
    hello = one.feed(other.feed(one.begin()))
    with pytest.raises(ProtocolError, match="cluster-password"):
        one.feed(hello)


def test_a_stranger_learns_nothing_but_a_random_number() -> None:
    other = active()
    assert len(other.feed(follower().begin())) == HEAD_SIZE
    for first in (b"GET / HTTP/1.1\r\n", b"ATLX", b"\0"):
        with pytest.raises(ProtocolError, match="no member"):
            active().feed(first)


def test_every_part_of_a_handshake_is_waited_for_and_every_change_refused() -> None:
    from_follower, from_active = recorded()
    for size in range(len(from_follower[1])):
        other = active()
        other.feed(from_follower[0])
        other.feed(from_follower[1][:size])
        assert other.hello is None and not other.complete
    for index in range(len(from_active[1])):
        one = follower()
        one.feed(from_active[0])
        changed = bytearray(from_active[1])
        changed[index] ^= 1
        try:
            one.feed(bytes(changed))
        except (ProtocolError, DecodeError):
            continue
        assert one.welcome is None  # a longer size: the rest is waited for


def test_another_version_is_named() -> None:
    head = bytearray(follower().begin())
    head[4] = 2
    with pytest.raises(ProtocolError, match="version 2 of the replication, this program 3"):
        active().feed(bytes(head[:5]))


def test_a_large_hello_is_refused_by_its_size() -> None:
    other = active()
    other.feed(follower().begin())
    with pytest.raises(ProtocolError, match=str(BODY_SIZE_MAX)):
        other.feed(bytes(32) + (BODY_SIZE_MAX + 1).to_bytes(2, "big"))
