"""Users by client certificate, alone and together with passwords, as login.config orders them."""

from __future__ import annotations

import pytest

from atalanta.kernel.ports import Passwords
from atalanta.kernel.security.authentication import Logins
from atalanta.kernel.security.check_turns import LoginWaiter
from atalanta.kernel.security.login_modules import (
    ACCEPTED,
    CERTIFICATE,
    GUEST,
    PASSWORD,
    REFUSED,
    UNDECIDED,
    CertificateUsers,
    Guest,
    LoginChain,
    same_name,
)
from atalanta.kernel.security.password import StoredPassword, hash_password
from atalanta.kernel.security.security import Identity, Security
from tests.kernel.broker_rig import CountingIds

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
    with pytest.raises(ValueError, match="not a regular expression"):
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


def with_guests(
    *modules: tuple[str, str], strict: bool = False, anna: str = "secret", user: str = "guest"
) -> Security:
    made = security(*modules, anna=anna)
    assert made.chain is not None
    made.chain.guest = Guest(user, "guests", strict)
    return made


GUEST_ONLY = ("guest", ("guests",))
USUAL = [(PASSWORD, "sufficient"), (GUEST, "sufficient")]


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize(
    ("modules", "strict", "user", "password", "subject", "expected"),
    [
        # Guests with no credentials or invalid ones (Artemis' manual), and with none only.
        (USUAL, False, None, None, "", GUEST_ONLY),
        (USUAL, False, "anna", "wrong", "", GUEST_ONLY),
        (USUAL, False, "nobody", "x", "", GUEST_ONLY),
        (USUAL, False, "anna", None, "", GUEST_ONLY),
        (USUAL, False, "anna", "secret", "", ANNA),
        (USUAL, True, None, None, "", GUEST_ONLY),
        (USUAL, True, "anna", None, "", GUEST_ONLY),
        (USUAL, True, "anna", "wrong", "", None),
        (USUAL, True, "nobody", "", "", None),  # an empty password is one
        (USUAL, True, "anna", "secret", "", ANNA),
        # The cluster's name with another password, or none.
        (USUAL, False, "cluster", "wrong", "", None),
        (USUAL, False, "cluster", None, "", None),
        # Nobody else is asked where guests come first; where all must agree, who is nobody is none.
        ([(GUEST, "sufficient"), (PASSWORD, "sufficient")], False, "anna", "wrong", "", GUEST_ONLY),
        ([(PASSWORD, "required"), (GUEST, "required")], False, "anna", "wrong", "", None),
        ([(PASSWORD, "requisite"), (GUEST, "sufficient")], False, "anna", "wrong", "", None),
        ([(PASSWORD, "required"), (GUEST, "sufficient")], False, None, None, "", None),
        ([(PASSWORD, "required"), (GUEST, "required")], True, "anna", "secret", "", None),
        # Everybody who takes part gives roles, the first one the name.
        (
            [(PASSWORD, "required"), (GUEST, "optional")], False, "anna", "secret", "",
            ("anna", ("writer", "guests")),
        ),
        (
            [(GUEST, "optional"), (PASSWORD, "required")], False, "anna", "secret", "",
            ("guest", ("guests", "writer")),
        ),
        ([(PASSWORD, "required"), (GUEST, "optional")], True, "anna", "secret", "", ANNA),
        ([(CERTIFICATE, "sufficient"), (GUEST, "sufficient")], False, None, None, CLIENT, CARL),
        ([(CERTIFICATE, "sufficient"), (GUEST, "sufficient")], False, None, None, STRANGER, GUEST_ONLY),
        (
            [(CERTIFICATE, "optional"), (GUEST, "required")], False, None, None, CLIENT,
            ("carl", ("reader", "guests")),
        ),
    ],
)  # fmt: skip
def test_guests(
    modules: list[tuple[str, str]],
    strict: bool,
    user: str | None,
    password: str | None,
    subject: str,
    expected: tuple[str, tuple[str, ...]] | None,
    hashed: bool,
) -> None:
    anna = hash_password("secret", b"salt") if hashed else "secret"
    held = with_guests(*modules, strict=strict, anna=anna)
    waiter, later = Waiter(), Later()
    logins = Logins(held, later, CountingIds())
    logins.begin(0, user, password, waiter, subject)
    for token, stored, given in later.asked:
        verdict = logins.finished(0, token, stored.verify(given))
        for told in verdict.waiters:
            told.login_done(0, verdict.identity)
    [identity] = waiter.told
    assert who(identity) == expected
    assert identity is None or not identity.cluster


@pytest.mark.parametrize(
    ("user", "password", "expected"),
    [
        (None, None, GUEST_ONLY), ("nobody", None, None), ("anna", None, None), (None, "x", None),
        ("anna", "secret", ANNA),
    ],
)  # fmt: skip
def test_a_nameless_guest_sends_neither_name_nor_password(
    user: str | None, password: str | None, expected: tuple[str, tuple[str, ...]] | None
) -> None:
    """A mistyped name is not somebody else (`anonymousAccessAllowed` of ActiveMQ Classic)."""
    held = with_guests(*USUAL, strict=True)
    assert held.chain is not None and held.chain.guest is not None
    held.chain.guest.nameless = True
    assert who(login(held, user, password, "")) == expected


def test_the_right_password_of_the_cluster_is_the_clusters() -> None:
    peer = login(with_guests(*USUAL), "cluster", "cluster secret", "")
    assert peer is not None and peer.cluster


def test_all_guests_are_one_whatever_they_call_themselves() -> None:
    held = with_guests(*USUAL)
    first = login(held, None, None, "")
    assert first is login(held, "anna", "wrong", STRANGER) is login(held, "x", "y", "CN=other")
    assert len(held.certified) == 1


def test_guests_that_are_not_welcome_any_more_may_do_nothing() -> None:
    held = with_guests(*USUAL)
    first = login(held, None, None, "")
    held.replace(with_guests(*USUAL))
    assert who(first) == GUEST_ONLY and login(held, None, None, "") is first
    for fresh in (
        with_guests(*USUAL, strict=True),
        with_guests(*USUAL, user="visitor"),
        security((PASSWORD, "sufficient")),
        Security(True),
    ):
        held.replace(with_guests(*USUAL))
        guest = login(held, "anna", "wrong", "")
        assert who(guest) == GUEST_ONLY
        held.replace(fresh)
        assert guest is not None and guest.roles == () and not held.certified


def test_a_guest_may_what_its_role_may() -> None:
    held = with_guests(*USUAL)
    held.add_rule("open.#", {"consume": ["guests"]})
    held.add_rule("closed.#", {"consume": ["writer"]})
    guest = login(held, None, None, "")
    assert guest is not None
    assert held.allowed(guest, "consume", "open.a") and not held.allowed(guest, "send", "open.a")
    assert not held.allowed(guest, "consume", "closed.a")


def enter(held: Security, user: str | None, password: str | None, domain: str) -> Identity | None:
    waiter, later = Waiter(), Later()
    logins = Logins(held, later, CountingIds())
    logins.begin(0, user, password, waiter, "", domain)
    for token, stored, given in later.asked:
        verdict = logins.finished(0, token, stored.verify(given))
        for told in verdict.waiters:
            told.login_done(0, verdict.identity)
    [identity] = waiter.told
    return identity


def two_doors(*, other: str = "other secret") -> Security:
    held = Security(True, "cluster", "cluster secret")
    held.add_user("anna", hash_password("secret", b"salt"), ["writer"])
    there = Security(True, "cluster", "cluster secret")
    there.add_user("anna", hash_password(other, b"salt"), ["reader"])
    held.domains["there"] = there
    return held


def test_each_domain_has_its_users_and_the_cluster_is_everywhere() -> None:
    held = two_doors()
    assert who(enter(held, "anna", "secret", "")) == ANNA
    assert enter(held, "anna", "other secret", "") is None
    assert who(enter(held, "anna", "other secret", "there")) == ("anna", ("reader",))
    assert enter(held, "anna", "secret", "there") is None
    assert enter(held, "anna", "secret", "nowhere") is None
    assert enter(held, None, None, "there") is None
    for domain in ("", "there", "nowhere"):
        peer = enter(held, "cluster", "cluster secret", domain)
        assert peer is not None and peer.cluster
        assert enter(held, "cluster", "wrong", domain) is None


def test_what_was_right_in_one_domain_is_not_believed_in_another() -> None:
    held = two_doors(other="secret")  # same name, password and hash: another user all the same
    later = Later()
    logins = Logins(held, later, CountingIds())
    first, second, third = Waiter(), Waiter(), Waiter()
    logins.begin(0, "anna", "secret", first, "", "")
    logins.begin(0, "anna", "secret", second, "", "there")
    assert len(later.asked) == 2
    for token, stored, given in later.asked:
        verdict = logins.finished(0, token, stored.verify(given))
        for told in verdict.waiters:
            told.login_done(0, verdict.identity)
    logins.begin(0, "anna", "secret", third, "", "there")  # remembered by now
    assert [who(one) for one in (*first.told, *second.told, *third.told)] == [
        ANNA, ("anna", ("reader",)), ("anna", ("reader",)),
    ]  # fmt: skip


def test_changed_files_count_in_every_domain() -> None:
    held = two_doors()
    anna = enter(held, "anna", "other secret", "there")
    fresh = two_doors()
    fresh.domains["there"].users["anna"].roles = ("writer",)
    fresh.domains["new"] = Security(True)
    held.replace(fresh)
    assert who(anna) == ("anna", ("writer",))
    assert list(held.domains) == ["there", "new"]
    # A changed cluster password needs a restart, also in a new domain.
    assert enter(held, "cluster", "cluster secret", "new") is not None
    held.replace(Security(True))
    assert who(anna) == ("anna", ()) and enter(held, "anna", "other secret", "there") is None
