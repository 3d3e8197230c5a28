"""Passwords, and who may do what where."""

from __future__ import annotations

import pytest

from atalanta.kernel.security.password import StoredPassword, hash_password
from atalanta.kernel.security.security import Identity, Security


def user(*roles: str) -> Identity:
    return Identity("u", roles, False)


def test_the_most_specific_rule_decides_alone() -> None:
    security = Security()
    security.add_rule("#", {"send": ["all"], "consume": ["all"]})
    security.add_rule("a.#", {"send": ["a"]})
    security.add_rule("a.b", {"send": ["ab"]})
    assert security.allowed(user("all"), "send", "x")
    assert not security.allowed(user("all"), "send", "a.c")
    assert security.allowed(user("a"), "send", "a.c")
    assert not security.allowed(user("a"), "send", "a.b")
    assert security.allowed(user("x", "ab"), "send", "a.b")
    assert not security.allowed(user("all"), "consume", "a.b")  # nothing is merged


def test_without_a_rule_nobody_may() -> None:
    security = Security()
    security.add_rule("a.#", {"send": ["r"]})
    assert not security.allowed(user("r"), "send", "b")


def test_fqqn() -> None:
    security = Security()
    security.add_rule("a", {"consume": ["r"]})
    security.add_rule("a::secret", {"consume": ["s"]})
    assert security.allowed(user("r"), "consume", "a::open")
    assert not security.allowed(user("r"), "consume", "a::secret")
    assert security.allowed(user("s"), "consume", "a::secret")


def test_the_cluster_user_may_everything() -> None:
    security = Security(True, "peer", "secret")
    peer = security.authenticate("peer", "secret")
    assert peer is not None and peer.cluster
    assert security.allowed(peer, "manage", "anything")
    assert security.authenticate("peer", "wrong") is None
    assert security.authenticate("peer", None) is None
    assert security.authenticate_cluster("peer", "secret")
    assert not security.authenticate_cluster("peer", "CHANGE ME!!")


def test_wrong_credentials() -> None:
    security = Security()
    security.add_user("anna", "pw", ["r"])
    assert security.authenticate("anna", "pw") is not None
    for name, password in (("anna", "PW"), ("anna", None), (None, "pw"), ("", ""), ("bert", "pw")):
        assert security.authenticate(name, password) is None


def test_without_security_everybody_may() -> None:
    security = Security(False, "peer", "secret")
    identity = security.authenticate("anybody", "whatever")
    assert identity is not None and not identity.cluster
    assert security.allowed(identity, "manage", "a")
    assert not security.authenticate_cluster("peer", "wrong")


def test_answers_follow_changed_rules() -> None:
    security = Security()
    identity = user("r")
    security.add_rule("#", {"send": []})
    assert not security.allowed(identity, "send", "a")
    security.add_rule("#", {"send": ["r"]})
    assert security.allowed(identity, "send", "a")


def test_old_names_of_permissions() -> None:
    security = Security()
    security.add_rule("#", {"createTempQueue": ["r"], "createNonDurableQueue": ["s"]})
    assert security.allowed(user("r"), "createNonDurableQueue", "a")
    assert security.allowed(user("s"), "createNonDurableQueue", "a")
    with pytest.raises(ValueError):
        security.add_rule("#", {"fly": ["r"]})


@pytest.mark.parametrize(
    "text",
    [
        "ENC()",
        "ENC(1:2)",
        "ENC(x:00:00)",
        "ENC(0:00:00)",
        "ENC(1:0:00)",
        "ENC(1:00:)",
        "ENC(99999999999:00:00)",
    ],
)
def test_malformed_hashes(text: str) -> None:
    with pytest.raises(ValueError):
        StoredPassword(text)


def test_hashes() -> None:
    stored = hash_password("secret", bytes(32))
    assert stored.startswith("ENC(1024:")
    assert StoredPassword(stored).verify("secret")
    assert not StoredPassword(stored).verify("Secret")
    assert StoredPassword("plain").verify("plain")
    assert not StoredPassword("").verify("x")


def test_replaced_users_count_for_those_who_are_logged_in() -> None:
    def made(**users: tuple[str, str]) -> Security:
        security = Security()
        for name, (password, role) in users.items():
            security.add_user(name, password, [role])
        security.add_rule("#", {"send": ["r"], "consume": ["s"]})
        return security

    security = made(anna=("pw", "r"), bert=("pw", "r"), carl=("pw", "r"))
    anna, bert, carl = (security.authenticate(name, "pw") for name in ("anna", "bert", "carl"))
    assert anna is not None and bert is not None and carl is not None
    assert security.allowed(anna, "send", "a")
    security.replace(made(anna=("pw", "s"), bert=("other", "r")))
    assert not security.allowed(anna, "send", "a") and security.allowed(anna, "consume", "a")
    assert not security.allowed(bert, "send", "a"), "the password is another one"
    assert not security.allowed(carl, "send", "a"), "no user any more"
    assert security.authenticate("anna", "pw") is anna
    assert security.authenticate("bert", "other") is not bert
    security.replace(made(anna=("pw", "r")))
    assert security.allowed(anna, "send", "a")


def test_one_users_sessions_share_an_identity() -> None:
    security = Security()
    security.add_user("anna", "pw", ["r"])
    assert security.authenticate("anna", "pw") is security.authenticate("anna", "pw")
