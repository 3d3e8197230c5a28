"""Users by client certificate, alone and together with passwords, as login.config orders them."""

from __future__ import annotations

import pytest

from atalanta.kernel.login_chain import (
    ACCEPTED,
    CERTIFICATE,
    PASSWORD,
    REFUSED,
    UNDECIDED,
    CertificateUsers,
    LoginChain,
    same_name,
)
from atalanta.kernel.logins import Logins, LoginWaiter
from atalanta.kernel.password import StoredPassword, hash_password
from atalanta.kernel.ports import Passwords
from atalanta.kernel.security import Identity, Security
from tests.kernel.bench import CountingIds

CLIENT = "CN=client, O=Example"
STRANGER = "CN=stranger, O=Elsewhere"


class Later(Passwords):
    """Keeps what is to be compared."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, StoredPassword, str]] = []

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        self.asked.append((token, stored, password))


class Waiter(LoginWaiter):
    def __init__(self) -> None:
        self.told: list[Identity | None] = []

    def login_done(self, now: int, identity: Identity | None) -> None:
        self.told.append(identity)


def security(*modules: tuple[str, str], anna: str = "secret") -> Security:
    users = CertificateUsers()
    users.add("carl", "CN=client,O=Example")
    users.add("dora", "/CN=d.*, O=Example/")
    users.roles = {"carl": ["reader"], "dora": ["reader"]}
    made = Security(True, "cluster", "cluster secret")
    made.add_user("anna", anna, ["writer"])
    made.chain = LoginChain(modules, users, {"anna": ["writer"], "carl": ["extra"]})
    return made


def login(held: Security, user: str | None, password: str | None, subject: str) -> Identity | None:
    waiter = Waiter()
    Logins(held, Later(), CountingIds()).begin(0, user, password, waiter, subject)
    [identity] = waiter.told
    return identity


def who(identity: Identity | None) -> tuple[str, tuple[str, ...]] | None:
    return None if identity is None else (identity.user, identity.roles)


CARL = ("carl", ("reader",))
ANNA = ("anna", ("writer",))


@pytest.mark.parametrize(
    ("modules", "user", "password", "subject", "expected"),
    [
        # Only certificates.
        ([(CERTIFICATE, "required")], None, None, CLIENT, CARL),
        ([(CERTIFICATE, "required")], "anna", "secret", STRANGER, None),
        ([(CERTIFICATE, "required")], "anna", "secret", "", None),
        # A password, or a certificate (the order of Artemis' manual).
        ([(PASSWORD, "sufficient"), (CERTIFICATE, "sufficient")], "anna", "secret", "", ANNA),
        ([(PASSWORD, "sufficient"), (CERTIFICATE, "sufficient")], None, None, CLIENT, CARL),
        ([(PASSWORD, "sufficient"), (CERTIFICATE, "sufficient")], "anna", "wrong", CLIENT, CARL),
        ([(PASSWORD, "sufficient"), (CERTIFICATE, "sufficient")], "anna", "wrong", "", None),
        # The properties' roles count for who a certificate named before.
        (
            [(CERTIFICATE, "sufficient"), (PASSWORD, "optional")], None, None, CLIENT,
            ("carl", ("reader", "extra")),
        ),
        # Both.
        ([(CERTIFICATE, "required"), (PASSWORD, "required")], "anna", "wrong", CLIENT, None),
        ([(CERTIFICATE, "required"), (PASSWORD, "required")], "anna", "secret", STRANGER, None),
        (
            [(CERTIFICATE, "required"), (PASSWORD, "required")], "anna", "secret", CLIENT,
            ("carl", ("reader", "writer", "extra")),
        ),
        ([(CERTIFICATE, "optional"), (PASSWORD, "required")], "anna", "secret", STRANGER, ANNA),
    ],
)  # fmt: skip
def test_who_comes_in_as_whom(
    modules: list[tuple[str, str]],
    user: str | None,
    password: str | None,
    subject: str,
    expected: tuple[str, tuple[str, ...]] | None,
) -> None:
    assert who(login(security(*modules), user, password, subject)) == expected


def test_the_cluster_needs_no_certificate_and_none_makes_somebody_the_cluster() -> None:
    held = security((CERTIFICATE, "required"))
    peer = login(held, "cluster", "cluster secret", STRANGER)
    assert peer is not None and peer.cluster
    assert who(login(held, "cluster", "wrong", CLIENT)) == CARL
    assert login(held, "cluster", "wrong", STRANGER) is None


def test_patterns_and_spaces_in_names() -> None:
    held = security((CERTIFICATE, "required"))
    assert who(login(held, None, None, "CN=daniel, O=Example")) == ("dora", ("reader",))
    assert login(held, None, None, "CN=daniel, O=Example, C=DE") is None
    assert who(login(held, None, None, "CN=client,O=Example")) == CARL
    assert same_name('CN="a,  b" , O=c\\, d') == 'CN="a,  b",O=c\\, d'
    with pytest.raises(ValueError, match="no regular expression"):
        CertificateUsers().add("x", "/(/")


def test_hashed_passwords_are_compared_elsewhere_and_only_where_they_matter() -> None:
    held = security(
        (CERTIFICATE, "sufficient"), (PASSWORD, "sufficient"), anna=hash_password("secret", b"salt")
    )
    later = Later()
    logins = Logins(held, later, CountingIds())
    certain, other = Waiter(), Waiter()
    logins.begin(0, "anna", "secret", certain, CLIENT)
    assert [who(one) for one in certain.told] == [("carl", ("reader", "extra"))]
    logins.begin(0, "anna", "secret", other, STRANGER)
    [(token, stored, password)] = later.asked
    assert other.told == []
    verdict = logins.finished(0, token, stored.verify(password))
    for waiter in verdict.waiters:
        waiter.login_done(0, verdict.identity)
    assert [who(one) for one in other.told] == [ANNA]


def test_changed_files_count_for_who_is_logged_in() -> None:
    held = security((CERTIFICATE, "required"))
    carl = login(held, None, None, CLIENT)
    assert carl is not None and login(held, None, None, CLIENT) is carl
    fresh = security((CERTIFICATE, "required"))
    assert fresh.chain is not None
    fresh.chain.certificates.roles["carl"] = ["writer"]
    held.replace(fresh)
    assert list(carl.roles) == ["writer"]
    held.replace(Security(True))
    assert list(carl.roles) == []


def test_a_certificate_that_is_another_users_now_logs_in_as_that_one() -> None:
    held = security((CERTIFICATE, "required"))
    carl = login(held, None, None, CLIENT)
    fresh = security((CERTIFICATE, "required"))
    assert fresh.chain is not None
    fresh.chain.certificates.add("emil", CLIENT)
    fresh.chain.certificates.roles["emil"] = ["reader"]
    held.replace(fresh)
    assert carl is not None and carl.roles == ()
    assert who(login(held, None, None, CLIENT)) == ("emil", ("reader",))
    held.replace(security((CERTIFICATE, "required")))
    assert who(login(held, None, None, CLIENT)) == CARL


def test_another_password_ends_what_the_old_one_gave_beside_a_certificate() -> None:
    modules = ((PASSWORD, "optional"), (CERTIFICATE, "optional"))
    held = security(*modules)
    anna = login(held, "anna", "secret", CLIENT)
    assert who(anna) == ("anna", ("writer", "reader"))
    held.replace(security(*modules))
    assert who(anna) == ("anna", ("writer", "reader"))
    held.replace(security(*modules, anna="another"))
    assert anna is not None and anna.roles == ()
    assert who(login(held, "anna", "another", CLIENT)) == ("anna", ("writer", "reader"))
    assert anna.roles == ()


def test_verdicts() -> None:
    def verdict(certified: bool, ok: bool | None, *modules: tuple[str, str]) -> int:
        return LoginChain(modules, CertificateUsers(), {}).verdict(certified, ok)

    both = ((CERTIFICATE, "requisite"), (PASSWORD, "required"))
    assert verdict(False, None, *both) == REFUSED
    assert verdict(True, None, *both) == UNDECIDED
    assert verdict(True, True, *both) == ACCEPTED
    late = ((CERTIFICATE, "required"), (PASSWORD, "sufficient"))
    assert verdict(False, None, *late) == REFUSED and verdict(False, True, *late) == REFUSED
    assert verdict(True, False, *late) == ACCEPTED
    only = ((CERTIFICATE, "optional"), (PASSWORD, "optional"))
    assert verdict(False, False, *only) == REFUSED and verdict(False, True, *only) == ACCEPTED
