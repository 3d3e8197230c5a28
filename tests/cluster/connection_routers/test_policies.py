"""Keys, policies and the cache of connection routers, one by one."""

from __future__ import annotations

import pytest

from atalanta.cluster.connection_routers.config import (
    CLIENT_ID,
    CONSISTENT_HASH,
    CONSISTENT_HASH_MODULO,
    FIRST_ELEMENT,
    LEAST_CONNECTIONS,
    ROLE_NAME,
    ROUND_ROBIN,
    SNI_HOST,
    SOURCE_IP,
    USER_NAME,
)
from atalanta.cluster.connection_routers.keys import KeyResolver, Newcomer
from atalanta.cluster.connection_routers.policies import Policy, TargetAttributes, java_hash

CLIENT = Newcomer("FOO.1", "ann", ("guests", "eu-sales", "eu"), "10.1.2.3:4711", "a.example")


def targets(*names: str, connections: tuple[int, ...] = ()) -> list[TargetAttributes]:
    made = []
    for at, name in enumerate(names):
        choice = TargetAttributes()
        choice.node_id = name
        choice.connections = connections[at] if connections else -1
        made.append(choice)
    return made


@pytest.mark.parametrize(
    ("kind", "filter_text", "key"),
    [
        (CLIENT_ID, None, "FOO.1"),
        (CLIENT_ID, "^.{3}", "FOO"),
        (CLIENT_ID, "^BAR", "NULL"),
        (CLIENT_ID, " ", "FOO.1"),
        (SNI_HOST, None, "a.example"),
        (SOURCE_IP, None, "10.1.2.3"),
        (SOURCE_IP, r"^\d+\.\d+", "10.1"),
        (USER_NAME, None, "ann"),
        (ROLE_NAME, None, "guests"),
        (ROLE_NAME, "^eu.*", "eu-sales"),
        (ROLE_NAME, "^us", "NULL"),
    ],
)
def test_keys(kind: str, filter_text: str | None, key: str) -> None:
    assert KeyResolver(kind, filter_text).resolve(CLIENT) == key


def test_a_client_without_the_key_is_null() -> None:
    nobody = Newcomer(None, "", (), "", None)
    for kind in (CLIENT_ID, SNI_HOST, ROLE_NAME):
        assert KeyResolver(kind, None).resolve(nobody) == "NULL"


def test_the_hash_is_that_of_java() -> None:
    """FNV-1a, signed; the values are those of the reference implementation for one-byte characters."""
    assert java_hash("") == 0x811C9DC5 - (1 << 32)
    assert java_hash("a") == 0xE40C292C - (1 << 32)
    assert java_hash("foobar") == 0xBF9CF968 - (1 << 32)


def test_consistent_hash_moves_only_what_it_must() -> None:
    policy = Policy(CONSISTENT_HASH, 0, 0)
    all_three = targets("one", "two", "three")
    keys = [f"client-{number}" for number in range(200)]
    before = {key: all_three[policy.select(all_three, key)].node_id for key in keys}
    assert len(set(before.values())) == 3
    left = targets("three", "one")
    for key in keys:
        now = left[policy.select(left, key)].node_id
        assert now == before[key] or before[key] == "two"
    assert policy.select([], "x") == -1
    assert policy.select(targets("only"), "x") == 0


def test_modulo_gives_numbers_to_the_local_filter_and_no_target() -> None:
    policy = Policy(CONSISTENT_HASH_MODULO, 3, 0)
    found = {policy.transform(f"client-{number}") for number in range(50)}
    assert found == {"0", "1", "2"}
    assert policy.select(targets("one", "two"), "0") == -1


def test_round_robin_and_first_element() -> None:
    three = targets("one", "two", "three")
    policy = Policy(ROUND_ROBIN, 0, 7)
    seen = [policy.select(three, "x") for _ in range(6)]
    assert sorted(seen) == [0, 0, 1, 1, 2, 2]
    assert seen[:3] == seen[3:]
    assert [Policy(FIRST_ELEMENT, 0, 5).select(three, "x") for _ in range(3)] == [0, 0, 0]


def test_least_connections() -> None:
    policy = Policy(LEAST_CONNECTIONS, 0, 0)
    assert policy.select(targets("a", "b", "c", connections=(3, 1, 2)), "x") == 1
    assert policy.select(targets("a", "b", "c", connections=(-1, 9, 10)), "x") == 1
    alike = Policy(LEAST_CONNECTIONS, 5, 0)
    some = targets("a", "b", "c", connections=(4, 9, 1))
    assert sorted({alike.select(some, "x") for _ in range(4)}) == [0, 2]
