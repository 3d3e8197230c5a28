"""Hashes of passwords are computed in fair shares of the hosts, for who is still there, and tell no names."""

from __future__ import annotations

import hashlib

import pytest

from atalanta.kernel.ports import Passwords
from atalanta.kernel.security.authentication import COMPUTED_MAX, Logins
from atalanta.kernel.security.check_turns import LoginWaiter
from atalanta.kernel.security.password import StoredPassword, hash_password
from atalanta.kernel.security.remote_host import remote_host
from atalanta.kernel.security.security import Identity, Security
from tests.kernel.broker_rig import CountingIds


class Thread(Passwords):
    """Computes a hash when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, StoredPassword, str]] = []

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        self.asked.append((token, stored, password))


class Visitor(LoginWaiter):
    def __init__(self, remote: str) -> None:
        self.remote = remote
        self.gone = False
        self.told: list[Identity | None] = []

    def peer(self) -> str:
        return self.remote

    def left(self) -> bool:
        return self.gone

    def login_done(self, now: int, identity: Identity | None) -> None:
        self.told.append(identity)


class Door:
    """Logins of a broker with one user, anna."""

    def __init__(self) -> None:
        self.security = Security(True, "cluster", "secret")
        self.security.add_user("anna", hash_password("secret", b"\x01" * 32, 2), ["admin"])
        self.thread = Thread()
        self.logins = Logins(self.security, self.thread, CountingIds())

    def comes(self, remote: str, password: str, user: str = "anna") -> Visitor:
        visitor = Visitor(remote)
        self.logins.begin(0, user, password, visitor)
        return visitor

    def compute(self, count: int = 1) -> None:
        for _ in range(count):
            token, stored, password = self.thread.asked.pop(0)
            verdict = self.logins.finished(0, token, stored.verify(password))
            for waiter in verdict.waiters:
                waiter.login_done(0, verdict.identity)


def test_a_host_with_a_thousand_wrong_passwords_delays_no_other_host() -> None:
    door = Door()
    for number in range(1_000):
        door.comes(f"10.0.0.1:{1_000 + number}", f"wrong {number}")
    anna = door.comes("10.0.0.2:5", "secret")
    door.compute(COMPUTED_MAX + 2)
    assert anna.told == [door.security.users["anna"].identity]


def test_one_network_of_ipv6_is_one_host() -> None:
    door = Door()
    for number in range(1_000):
        door.comes(f"[2001:db8::{number:x}]:1000", f"wrong {number}")
    anna = door.comes("[2001:db8:0:1::1]:5", "secret")
    door.compute(COMPUTED_MAX + 2)
    assert len(anna.told) == 1


def test_the_same_credentials_of_another_host_do_not_wait_behind_the_first_host() -> None:
    door = Door()
    for number in range(1_000):
        door.comes(f"10.0.0.1:{1_000 + number}", f"wrong {number}")
    door.comes("10.0.0.1:9", "secret")
    anna = door.comes("10.0.0.2:5", "secret")
    door.compute(COMPUTED_MAX + 2)
    assert len(anna.told) == 1


def test_no_hash_is_computed_for_who_has_left() -> None:
    door = Door()
    visitors = [door.comes(f"10.0.0.1:{1_000 + n}", f"wrong {n}") for n in range(1_000)]
    for visitor in visitors:
        visitor.gone = True
    anna = door.comes("10.0.0.1:5", "secret")
    door.compute(COMPUTED_MAX)
    assert [password for _, _, password in door.thread.asked] == ["secret"]
    door.compute()
    assert len(anna.told) == 1
    turns = door.logins.turns
    assert turns.checks == {} and turns.by_key == {} and turns.waiting == {}


def test_passwords_of_who_has_left_are_not_kept() -> None:
    door = Door()
    for number in range(5_000):
        door.comes("10.0.0.1:5", f"wrong {number}").gone = True
    assert len(door.logins.turns.checks) < 200


@pytest.mark.parametrize("user", ["anna", "bert", "plain", "unknown"])
def test_a_refusal_takes_as_long_as_the_strongest_hash_for_every_name(
    user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door()
    door.security.add_user("bert", hash_password("b", b"\x02" * 32, 5_000), [])
    door.security.add_user("plain", "text", [])
    rounds = 0
    real = hashlib.pbkdf2_hmac

    def counted(name: str, given: bytes, salt: bytes, iterations: int, size: int) -> bytes:
        nonlocal rounds
        rounds += iterations * -(-size // 20)  # blocks of SHA-1
        return real(name, given, salt, iterations, size)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    visitor = door.comes("10.0.0.1:5", "", user)
    assert visitor.told == [] and rounds == 0, "not on the node's own thread"
    door.compute()
    assert visitor.told == [None]
    assert rounds == 5_000 * 4


def test_a_right_plain_password_needs_no_hash_beside_hashed_ones() -> None:
    door = Door()
    door.security.add_user("plain", "text", [])
    assert door.comes("10.0.0.1:5", "text", "plain").told == [door.security.users["plain"].identity]


def test_hosts() -> None:
    assert remote_host("10.0.0.1:61616") == "10.0.0.1"
    assert remote_host("[fe80::1%eth0]:1") == remote_host("[fe80::2%eth0]:2")
    assert remote_host("[fe80::1]:1") != remote_host("[fe80:0:0:1::1]:1")
    assert remote_host("front") == "front" and remote_host("") == ""
