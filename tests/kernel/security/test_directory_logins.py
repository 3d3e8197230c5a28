"""Logins that directories decide: in the order of the modules, once for the same credentials, and never by guess."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from atalanta.kernel.ports import Directories, Passwords, Trace
from atalanta.kernel.security.authentication import Logins
from atalanta.kernel.security.check_turns import LoginWaiter
from atalanta.kernel.security.directory import DirectoryAnswer, DirectoryConfig
from atalanta.kernel.security.directory_logins import ASKED_MAX, WAITING_OF_HOST_MAX
from atalanta.kernel.security.login_modules import (
    CERTIFICATE,
    DIRECTORY,
    GUEST,
    PASSWORD,
    CertificateUsers,
    Guest,
    LoginChain,
)
from atalanta.kernel.security.password import StoredPassword, hash_password
from atalanta.kernel.security.security import SEND, Identity, Security
from tests.kernel.broker_rig import CountingIds

SECOND = 1_000_000_000
CLIENT = "CN=client, O=Example"
FIRST = DirectoryConfig(("ldap://first:389",))
OTHER = DirectoryConfig(("ldap://second:389",))
ONLY_ROLES = DirectoryConfig(("ldap://first:389",), authenticates=False)
NO = DirectoryAnswer(False)
AWAY = DirectoryAnswer(False, problem="it is away", remedy="see where it is")


@dataclass
class Question:
    token: int
    directory: DirectoryConfig
    user: str
    password: str | None


class Directory(Directories):
    """Keeps what is asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def look_up(self, token: int, directory: DirectoryConfig, user: str, password: str | None) -> None:
        self.asked.append(Question(token, directory, user, password))


class Hashes(Passwords):
    def __init__(self) -> None:
        self.asked: list[tuple[int, StoredPassword, str]] = []

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        self.asked.append((token, stored, password))


class Events(Trace):
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, object]]] = []

    def event(self, name: str, fields: dict[str, object]) -> None:
        self.told.append((name, fields))

    def names(self) -> list[str]:
        return [name for name, _ in self.told]


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

    @property
    def who(self) -> tuple[str, tuple[str, ...]] | None:
        """The one answer."""
        [identity] = self.told
        return None if identity is None else (identity.user, identity.roles)


class Door:
    """Logins of a broker: `anna` of the files has the role writer, the certificate of `CLIENT` is carl's."""

    def __init__(
        self, *modules: tuple[str, str], directories: tuple[DirectoryConfig, ...] = (FIRST,), strict: bool = True
    ) -> None:
        self.security = made(*modules, directories=directories, strict=strict)
        self.directory, self.hashes, self.events = Directory(), Hashes(), Events()
        self.now = 0
        self.logins = Logins(
            self.security, self.hashes, CountingIds(), directories=self.directory, trace=self.events
        )

    def comes(
        self, user: str | None = "anna", password: str | None = "secret", subject: str = "", remote: str = "10.0.0.1:5"
    ) -> Visitor:
        visitor = Visitor(remote)
        self.logins.begin(self.now, user, password, visitor, subject)
        return visitor

    def answer(self, answer: DirectoryAnswer | tuple[str, ...] = NO) -> Question:
        """The directory answers the oldest question; with roles it accepts the user."""
        question = self.directory.asked.pop(0)
        said = DirectoryAnswer(True, answer) if isinstance(answer, tuple) else answer
        verdict = self.logins.directories.finished(self.now, question.token, said)
        for asker in verdict.askers:
            asker.looked_up(self.now, verdict.answer)
        return question


def made(
    *modules: tuple[str, str],
    directories: tuple[DirectoryConfig, ...] = (FIRST,),
    hashed: bool = False,
    strict: bool = True,
) -> Security:
    users = CertificateUsers()
    users.add("carl", CLIENT)
    users.roles = {"carl": ["reader"]}
    found = Security(True, "cluster", "cluster secret")
    found.add_user("anna", hash_password("secret", b"salt", 2) if hashed else "secret", ["writer"])
    found.add_rule("#", {SEND: ["users"]})
    guest = Guest("guest", "guests", strict)
    found.chain = LoginChain(modules or [(DIRECTORY, "required")], users, {"anna": ["writer"]}, guest, directories)
    return found


def test_the_directory_says_who_comes_in_and_with_which_roles() -> None:
    door = Door()
    good, bad = door.comes(), door.comes(password="wrong")
    assert good.told == [] and bad.told == []
    question = door.answer(("users", "admins"))
    assert (question.directory, question.user, question.password) == (FIRST, "anna", "secret")
    door.answer()
    assert good.who == ("anna", ("users", "admins")) and bad.who is None


@pytest.mark.parametrize(("user", "password"), [("anna", ""), ("anna", None), ("", "secret"), (None, None)])
def test_without_a_name_and_a_password_nothing_is_asked(user: str | None, password: str | None) -> None:
    door = Door()
    assert door.comes(user, password).who is None
    assert door.directory.asked == []


def test_the_cluster_user_is_never_asked_for() -> None:
    door = Door()
    peer, wrong = door.comes("cluster", "cluster secret"), door.comes("cluster", "secret")
    assert peer.told[0] is not None and peer.told[0].cluster
    assert wrong.who is None and door.directory.asked == []


BOTH = ((PASSWORD, "sufficient"), (DIRECTORY, "sufficient"))
CERTIFIED = ((CERTIFICATE, "required"), (DIRECTORY, "required"))
FILES = ("anna", ("writer",))
HERE = ("anna", ("users",))


@pytest.mark.parametrize(
    ("modules", "password", "subject", "answer", "expected"),
    [
        # The first that knows the user is enough.
        (BOTH, "secret", "", None, FILES),
        (BOTH, "other", "", ("users",), HERE),
        (BOTH, "other", "", NO, None),
        (BOTH[::-1], "secret", "", ("users",), HERE),
        (BOTH[::-1], "secret", "", NO, FILES),
        (BOTH[::-1], "secret", "", AWAY, FILES),
        # Both must agree: the roles of both.
        (((PASSWORD, "required"), (DIRECTORY, "required")), "secret", "", ("users",), ("anna", ("writer", "users"))),
        (((PASSWORD, "required"), (DIRECTORY, "required")), "secret", "", AWAY, None),
        (((PASSWORD, "requisite"), (DIRECTORY, "required")), "wrong", "", None, None),
        (((PASSWORD, "required"), (DIRECTORY, "required")), "wrong", "", None, None),
        (((PASSWORD, "required"), (DIRECTORY, "optional")), "secret", "", AWAY, FILES),
        (((PASSWORD, "required"), (DIRECTORY, "optional")), "secret", "", ("users",), ("anna", ("writer", "users"))),
        # A certificate and a directory.
        (((CERTIFICATE, "sufficient"), (DIRECTORY, "sufficient")), "secret", CLIENT, None, ("carl", ("reader",))),
        (((CERTIFICATE, "sufficient"), (DIRECTORY, "sufficient")), "secret", "", ("users",), HERE),
        (CERTIFIED, "secret", CLIENT, ("users",), ("carl", ("reader", "users"))),
        (CERTIFIED, "secret", "", None, None),
        # A guest sends no password.
        (((DIRECTORY, "sufficient"), (GUEST, "sufficient")), None, "", None, ("guest", ("guests",))),
        (((DIRECTORY, "sufficient"), (GUEST, "sufficient")), "wrong", "", NO, None),
        (((DIRECTORY, "sufficient"), (GUEST, "sufficient")), "secret", "", ("users",), HERE),
    ],
)  # fmt: skip
def test_flags_are_those_of_java(
    modules: tuple[tuple[str, str], ...],
    password: str | None,
    subject: str,
    answer: DirectoryAnswer | tuple[str, ...] | None,
    expected: tuple[str, tuple[str, ...]] | None,
) -> None:
    door = Door(*modules)
    visitor = door.comes("anna", password, subject)
    assert len(door.directory.asked) == (answer is not None)
    if answer is not None:
        door.answer(answer)
    assert visitor.who == expected


def test_two_directories_are_asked_one_after_the_other() -> None:
    door = Door((DIRECTORY, "sufficient"), (DIRECTORY, "sufficient"), directories=(FIRST, OTHER))
    visitor = door.comes()
    assert [each.directory for each in door.directory.asked] == [FIRST]
    door.answer()
    assert door.answer(("users",)).directory == OTHER
    assert visitor.who == HERE
    refused = door.comes("bert")
    door.answer()
    door.answer()
    assert refused.who is None


def test_a_hash_is_computed_between_two_questions() -> None:
    door = Door((DIRECTORY, "required"), (PASSWORD, "required"))
    door.security.replace_users(made((DIRECTORY, "required"), (PASSWORD, "required"), hashed=True))
    visitor = door.comes()
    door.answer(("users",))
    [(token, stored, password)] = door.hashes.asked
    verdict = door.logins.finished(0, token, stored.verify(password))
    for waiter in verdict.waiters:
        waiter.login_done(0, verdict.identity)
    assert visitor.who == ("anna", ("users", "writer"))


def test_a_directory_may_have_the_roles_of_another_modules_users() -> None:
    modules = ((CERTIFICATE, "required"), (DIRECTORY, "optional"))
    door = Door(*modules, directories=(ONLY_ROLES,))
    visitor = door.comes(None, None, CLIENT)
    question = door.answer(("users",))
    assert (question.user, question.password) == ("carl", None)
    assert visitor.who == ("carl", ("reader", "users"))
    without = door.comes(None, None, "CN=stranger")
    assert without.who is None and door.directory.asked == []


@pytest.mark.parametrize(("flag", "comes_in"), [("optional", True), ("required", False)])
def test_roles_that_cannot_be_had(flag: str, comes_in: bool) -> None:
    door = Door((CERTIFICATE, "required"), (DIRECTORY, flag), directories=(ONLY_ROLES,))
    visitor = door.comes(None, None, CLIENT)
    door.answer(AWAY)
    assert visitor.who == (("carl", ("reader",)) if comes_in else None)


def test_answers_are_remembered_for_a_time_refusals_too() -> None:
    door = Door()
    door.comes(), door.comes(password="wrong")
    door.answer(("users",))
    door.answer()
    door.now += 9 * SECOND
    assert door.comes().who == HERE and door.comes(password="wrong").who is None
    assert door.directory.asked == []
    door.now += 2 * SECOND
    door.comes(), door.comes(password="wrong")
    assert len(door.directory.asked) == 2


def test_an_operator_has_all_asked_again() -> None:
    door = Door()
    door.comes()
    door.answer(("users",))
    door.security.clear_login_cache()
    assert door.comes().told == [] and len(door.directory.asked) == 1


def test_no_password_is_kept() -> None:
    door = Door()
    visitor = door.comes()
    door.answer(("users",))
    assert visitor.who == HERE
    [key] = door.logins.directories.remembered
    assert len(key) == 32 and b"secret" not in key
    assert door.logins.directories.by_token == {}
    [turns] = door.logins.directories.by_directory.values()
    assert turns.turns.checks == {} and turns.turns.by_key == {}


def test_what_is_remembered_is_that_of_one_directory() -> None:
    door = Door((DIRECTORY, "sufficient"), (DIRECTORY, "sufficient"), directories=(FIRST, OTHER))
    door.comes()
    door.answer()
    door.answer()
    door.security.replace_users(made(directories=(replace(OTHER, user_base="ou=x"),)))
    door.comes()
    assert len(door.directory.asked) == 1


def test_an_outage_is_told_once_and_not_remembered() -> None:
    door = Door()
    for _ in range(3):
        visitor = door.comes()
        door.answer(AWAY)
        assert visitor.who is None
    visitor = door.comes()
    door.answer(("users",))
    assert visitor.who == HERE
    assert door.events.told == [
        (
            "directory_unavailable",
            {"directory": "ldap://first:389", "why": "it is away", "what_to_do": "see where it is"},
        ),
        ("directory_available", {"directory": "ldap://first:389"}),
    ]
    door.now += 11 * SECOND
    door.comes()
    door.answer(AWAY)
    assert door.events.names()[2:] == ["directory_unavailable"]


def test_who_is_remembered_comes_in_while_the_directory_is_away() -> None:
    door = Door()
    door.comes()
    door.answer(("users",))
    other = door.comes("bert")
    door.answer(AWAY)
    assert other.who is None and door.comes().who == HERE


def test_a_refusal_that_is_not_the_users_fault_is_told() -> None:
    door = Door()
    for port in range(3):
        door.comes(remote=f"10.0.0.1:{port}")
        door.answer(DirectoryAnswer(False, why="two entries"))
        door.logins.forget()
    told = {"directory": "ldap://first:389", "user": "anna", "why": "two entries"}
    assert door.events.told == [("directory_user_refused", told)]


def test_the_same_credentials_of_a_host_are_one_question() -> None:
    door = Door()
    visitors = [door.comes(remote=f"10.0.0.1:{port}") for port in range(50)]
    assert len(door.directory.asked) == 1
    door.answer(("users",))
    assert [visitor.who for visitor in visitors] == [HERE] * 50
    identities = {id(visitor.told[0]) for visitor in visitors}
    assert len(identities) == 1


def test_a_host_with_many_passwords_delays_no_other_host() -> None:
    door = Door()
    for number in range(500):
        door.comes(password=f"wrong {number}")
    visitor = door.comes(remote="10.0.0.2:5")
    assert len(door.directory.asked) == ASKED_MAX
    for _ in range(ASKED_MAX + 2):
        if not visitor.told:
            door.answer(("users",) if door.directory.asked[0].password == "secret" else NO)
    assert visitor.who == HERE


def test_so_many_of_one_host_may_wait() -> None:
    door = Door()
    waiting = [door.comes(password=f"wrong {number}") for number in range(WAITING_OF_HOST_MAX + ASKED_MAX)]
    assert not any(visitor.told for visitor in waiting)
    assert door.comes(password="one more").who is None
    other = door.comes(remote="10.0.0.2:5")
    assert other.told == []


def test_nothing_is_asked_for_who_has_left() -> None:
    door = Door()
    for visitor in [door.comes(password=f"wrong {number}") for number in range(500)]:
        visitor.gone = True
    for _ in range(ASKED_MAX):
        door.answer()
    assert door.directory.asked == [] and door.logins.directories.by_token == {}


def test_new_roles_count_for_who_is_logged_in() -> None:
    door = Door()
    visitor = door.comes()
    door.answer(("guests",))
    [identity] = visitor.told
    assert identity is not None and not door.security.allowed(identity, SEND, "orders")
    door.now += 11 * SECOND
    door.comes()
    door.answer(("users",))
    assert identity.roles == ("users",) and door.security.allowed(identity, SEND, "orders")


@pytest.mark.parametrize(
    ("modules", "subject", "name"),
    [
        (((CERTIFICATE, "required"), (DIRECTORY, "required")), CLIENT, "carl"),
        (((GUEST, "optional"), (DIRECTORY, "required")), "", "guest"),
    ],
)
def test_users_of_one_name_have_their_own_roles(
    modules: tuple[tuple[str, str], ...], subject: str, name: str
) -> None:
    door = Door(*modules, strict=False)
    high, low = door.comes("anna", subject=subject), door.comes("bert", subject=subject)
    door.answer(("admins",))
    door.answer(("watchers",))
    [boss], [watcher] = high.told, low.told
    assert boss is not None and watcher is not None
    assert (boss.user, watcher.user) == (name, name)
    assert "admins" in boss.roles and "admins" not in watcher.roles
    assert "watchers" in watcher.roles and "watchers" not in boss.roles


def test_a_reload_keeps_the_roles_of_the_same_modules_and_takes_those_of_others() -> None:
    door = Door()
    visitor = door.comes()
    door.answer(("users",))
    [identity] = visitor.told
    assert identity is not None
    door.security.replace(made())
    assert identity.roles == ("users",) and door.security.allowed(identity, SEND, "orders")
    door.security.replace(made((DIRECTORY, "required"), directories=(OTHER,)))
    assert not list(identity.roles)
    other = door.comes()
    door.answer(("users",))
    assert other.told[0] is not identity and other.who == HERE


def test_another_password_of_the_node_takes_nobodys_roles() -> None:
    door = Door()
    visitor = door.comes()
    door.answer(("users",))
    waiting = door.comes("bert")
    [identity] = visitor.told
    assert identity is not None
    door.security.replace(made(directories=(replace(FIRST, bind_password="new", read_timeout_ms=1),)))
    assert identity.roles == ("users",)
    door.answer(("watchers",))
    assert waiting.who == ("bert", ("watchers",))
    door.security.replace(made(directories=(replace(FIRST, role_filter="(x={0})"),)))
    assert not list(identity.roles)


def test_an_answer_after_a_change_of_the_modules_lets_in_nobody() -> None:
    door = Door()
    visitor, other = door.comes(), door.comes("bert")
    door.security.replace(made())
    door.answer(("users",))
    assert visitor.who == HERE
    door.security.replace(made((PASSWORD, "required"), directories=()))
    door.answer(("users",))
    assert other.who is None


def test_another_password_in_the_files_ends_what_the_old_one_gave_beside_a_directory() -> None:
    modules = ((PASSWORD, "required"), (DIRECTORY, "required"))
    door = Door(*modules)
    visitor = door.comes()
    door.answer(("users",))
    [identity] = visitor.told
    assert identity is not None and identity.roles == ("writer", "users")
    door.security.replace(made(*modules))
    assert identity.roles == ("writer", "users")
    door.security.replace(made(*modules, hashed=True))
    assert not list(identity.roles)


def test_a_user_whose_password_changes_while_the_directory_is_asked_stays_outside() -> None:
    modules = ((PASSWORD, "required"), (DIRECTORY, "required"))
    door = Door(*modules)
    visitor = door.comes()
    door.security.replace(made(*modules, hashed=True))
    door.answer(("users",))
    assert visitor.who is None


def test_an_answer_to_a_question_of_before_is_not_remembered_after_the_cache_was_cleared() -> None:
    door = Door()
    visitor = door.comes()
    door.logins.forget()
    door.answer(("users",))
    assert visitor.who == HERE
    assert door.comes().told == [] and len(door.directory.asked) == 1


def test_every_user_of_a_classic_broker_has_its_role() -> None:
    door = Door(directories=(replace(FIRST, more_roles=("everyone",)),))
    visitor = door.comes()
    door.answer(("users",))
    assert visitor.who == ("anna", ("users", "everyone"))
