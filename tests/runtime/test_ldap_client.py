"""What LDAPLoginModule asks a directory, and what comes of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from atalanta.kernel.security.directory import DirectoryAnswer, DirectoryConfig

pytest.importorskip("ldap3", reason="the extra `ldap` is not installed")

from atalanta.runtime.ldap_client import LdapClient, _parts
from tests.certificates import Authority
from tests.runtime.ldap_server import (
    SERVICE,
    SERVICE_PASSWORD,
    SUFFIX,
    UNWILLING,
    LdapServer,
    group,
    person,
)

ANNA = f"uid=anna,ou=people,{SUFFIX}"


@pytest.fixture
def server() -> Iterator[LdapServer]:
    made = LdapServer(
        [
            person("anna", "secret", seealso=[f"cn=direct,cn=other,{SUFFIX}"], mail=["one@example.org"]),
            person("bert", "secret", "ou=staff,ou=people", mail=["one@example.org"]),
            group("writers", ANNA),
            group("all", f"cn=writers,ou=groups,{SUFFIX}"),
            group("circle", f"cn=all,ou=groups,{SUFFIX}", f"cn=circle,ou=groups,{SUFFIX}"),
            group("deep", ANNA, folder="ou=more,ou=groups"),
            group("named", "anna"),
        ]
    )
    with made as running:
        yield running


@pytest.fixture
def directory(server: LdapServer) -> DirectoryConfig:
    return DirectoryConfig(
        (server.url,), SERVICE, SERVICE_PASSWORD,
        user_base=f"ou=people,{SUFFIX}", user_filter="(uid={0})",
        role_base=f"ou=groups,{SUFFIX}", role_filter="(member={0})", role_attribute="cn",
        connect_timeout_ms=1_000, read_timeout_ms=1_000,
    )  # fmt: skip


def asked(directory: DirectoryConfig, user: str = "anna", password: str | None = "secret") -> DirectoryAnswer:
    client = LdapClient(directory)
    try:
        return client.look_up(user, password)
    finally:
        client.close()


def roles(directory: DirectoryConfig, user: str = "anna", password: str | None = "secret") -> tuple[str, ...] | None:
    answer = asked(directory, user, password)
    assert (answer.problem, answer.why) == ("", "")
    return answer.roles if answer.accepted else None


def test_who_binds_comes_in_with_the_roles_of_groups(server: LdapServer, directory: DirectoryConfig) -> None:
    assert roles(directory) == ("writers",)
    assert server.binds == [SERVICE, ANNA]


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("anna", "wrong"), ("anna", ""), ("nobody", "secret"), ("", "secret"), ("bert", "secret"),
        ("*", "secret"), ("an*", "secret"), ("anna)(uid=*", "secret"), ("x)(|(uid=anna)", "secret"),
        ("anna\0", "secret"), ("\ud800", "secret"), ("anna", "\0"), ("anna", "secret\0"), (" ", "secret"),
        ("anna ", "secret"), ("anna", "x" * 1_000_000), ("a" * 1_000_000, "secret"),
    ],
)  # fmt: skip
def test_who_stays_outside(server: LdapServer, directory: DirectoryConfig, user: str, password: str) -> None:
    assert roles(directory, user, password) is None
    assert server.empty_passwords == 0


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"role_subtree": True}, ("writers", "deep")),
        ({"expand_filter": "(member={0})"}, ("writers", "all", "circle")),
        ({"role_filter": "(member={1})"}, ("named",)),
        ({"role_filter": ""}, ()),
        ({"role_attribute": ""}, (f"cn=writers,ou=groups,{SUFFIX}",)),
        ({"role_attribute": "CN"}, ("writers",)),
        ({"user_role_attribute": "seeAlso"}, ("direct", "other", "writers")),
        (
            {"user_role_attribute": "seeAlso", "role_attribute": ""},
            (f"cn=direct,cn=other,{SUFFIX}", f"cn=writers,ou=groups,{SUFFIX}"),
        ),
        ({"user_role_attribute": "seeAlso", "classic": True}, (f"cn=direct,cn=other,{SUFFIX}", "writers")),
        ({"role_attribute": "", "classic": True}, ()),
    ],
)  # fmt: skip
def test_where_roles_come_from(
    directory: DirectoryConfig, change: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert roles(replace(directory, **change)) == expected  # type: ignore[arg-type]


def test_users_of_a_subtree(directory: DirectoryConfig) -> None:
    assert roles(replace(directory, user_subtree=True), "bert") == ()


def test_the_name_may_be_that_of_the_entry(directory: DirectoryConfig) -> None:
    named = replace(directory, user_filter="")
    assert roles(named, ANNA) == ("writers",)
    assert roles(named, ANNA, "wrong") is None


def test_the_roles_of_a_user_without_a_password(server: LdapServer, directory: DirectoryConfig) -> None:
    assert roles(directory, "anna", None) == ("writers",)
    assert roles(directory, "nobody", None) is None
    assert ANNA not in server.binds


def test_two_entries_of_one_name_are_none(server: LdapServer, directory: DirectoryConfig) -> None:
    answer = asked(replace(directory, user_filter="(mail={0})", user_subtree=True), "one@example.org")
    assert not answer.accepted and not answer.problem and "more than one entry" in answer.why
    assert ANNA not in server.binds


def test_what_other_servers_have_is_left_out(server: LdapServer, directory: DirectoryConfig) -> None:
    server.refers = True
    assert roles(directory) == ("writers",)


def test_connections_stay_open_and_are_opened_again_when_they_are_lost(
    server: LdapServer, directory: DirectoryConfig
) -> None:
    client = LdapClient(directory)
    for _ in range(3):
        assert client.look_up("anna", "secret").roles == ("writers",)
    assert server.binds.count(SERVICE) == 1
    server.cut()
    assert client.look_up("anna", "secret").roles == ("writers",)
    assert server.binds.count(SERVICE) == 2
    server.stop()
    answer = client.look_up("anna", "secret")
    assert not answer.accepted and "cannot be reached" in answer.problem and answer.remedy
    server.start()
    assert client.look_up("anna", "secret").roles == ("writers",)
    client.close()


@pytest.mark.parametrize(
    ("change", "words", "remedy"),
    [
        ({"bind_password": "wrong"}, "does not accept the node itself", "connectionPassword"),
        ({"user_base": "ou=nowhere"}, "there is no userBase 'ou=nowhere'", "userBase"),
        ({"role_base": "ou=nowhere"}, "there is no roleBase 'ou=nowhere'", "roleBase"),
    ],
)
def test_what_is_wrong_with_the_configuration_is_named(
    directory: DirectoryConfig, change: dict[str, str], words: str, remedy: str
) -> None:
    answer = asked(replace(directory, **change))  # type: ignore[arg-type]
    assert not answer.accepted and words in answer.problem and remedy in answer.remedy
    assert "wrong" not in answer.problem


def test_a_directory_that_says_nothing_is_away(server: LdapServer, directory: DirectoryConfig) -> None:
    server.silent = True
    answer = asked(directory)
    assert not answer.accepted and "timed out" in answer.problem


@pytest.mark.parametrize("drips", [False, True])
def test_a_directory_whose_answer_does_not_end_is_away(
    server: LdapServer, directory: DirectoryConfig, drips: bool
) -> None:
    server.endless, server.drips = True, drips
    answer = asked(directory)
    assert not answer.accepted and ("timed out" in answer.problem or "larger than" in answer.problem)


def test_the_authority_of_a_directory_is_read_again_for_each_connection(
    server: LdapServer, directory: DirectoryConfig, tmp_path: Path
) -> None:
    store = Authority().key_pem(tmp_path)
    secure = replace(directory, urls=(server.url.replace("ldap:", "ldaps:"),), trust_store=str(store))
    client = LdapClient(secure)
    assert "cannot be reached" in client.look_up("anna", "secret").problem  # it speaks no TLS
    store.write_text("none")
    assert client.look_up("anna", "secret").remedy == "see atalanta.ldap.trustStorePath in login.config"
    client.close()


def test_a_name_that_a_directory_cannot_search_is_no_outage(server: LdapServer, directory: DirectoryConfig) -> None:
    server.search_code = 21
    answer = asked(directory)
    assert not answer.accepted and not answer.problem and "the name has no such syntax" in answer.why


def test_blanks_are_no_name_of_an_entry(server: LdapServer, directory: DirectoryConfig) -> None:
    assert roles(replace(directory, user_filter=""), "  ") is None
    assert server.binds == []


def test_the_next_server_is_asked_when_the_first_is_away(server: LdapServer, directory: DirectoryConfig) -> None:
    with LdapServer() as gone:
        port = gone.port
    assert roles(replace(directory, urls=(f"ldap://127.0.0.1:{port}", server.url))) == ("writers",)


def test_a_locked_user_is_refused_and_others_are_not(server: LdapServer, directory: DirectoryConfig) -> None:
    server.code = UNWILLING
    assert roles(directory) is None


def test_parts_of_names() -> None:
    assert _parts("CN=a\\, b\\2a,ou=c", "cn") == ["a, b*"]
    assert _parts("no name", "cn") == []
