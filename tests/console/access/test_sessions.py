"""Sessions of browsers: ids, expiry, and how many there may be."""

from __future__ import annotations

from atalanta.console.access import sessions
from atalanta.console.access.sessions import (
    ABSOLUTE_S,
    IDLE_S,
    SESSIONS_MAX,
    SESSIONS_OF_A_USER_MAX,
    BrowserSessions,
    UserCredentials,
)

BEN = UserCredentials("ben", "pass")


def test_a_session_is_found_by_its_id_until_it_expires() -> None:
    every = BrowserSessions()
    session, _ = every.open(BEN, "peer", 100.0)
    assert every.find(session.id, 100.0 + IDLE_S - 1) is session
    assert every.find(session.id, 100.0 + 2 * IDLE_S - 2) is session
    assert every.find(session.id, 100.0 + 3 * IDLE_S) is None
    assert every.find("", 100.0) is None
    assert every.end_expired(100.0 + 3 * IDLE_S) == [session] and len(every) == 0


def test_a_session_in_use_ends_at_its_age() -> None:
    every = BrowserSessions()
    session, _ = every.open(BEN, "peer", 0.0)
    now_s = 0.0
    while now_s < ABSOLUTE_S - IDLE_S:
        now_s += IDLE_S / 2
        assert every.find(session.id, now_s) is session
    assert every.find(session.id, ABSOLUTE_S) is None


def test_ids_and_tokens_are_long_and_new() -> None:
    every = BrowserSessions()
    found = [every.open(BEN, "peer", 0.0)[0] for _ in range(10)]
    secrets = {each.id for each in found} | {each.form_token for each in found}
    assert len(secrets) == 20 and all(len(each) >= 40 for each in secrets)
    assert found[0].owns_token(found[0].form_token)
    assert not found[0].owns_token(found[1].form_token) and not found[0].owns_token("\ud800")


def test_the_oldest_of_the_same_user_goes_first() -> None:
    every = BrowserSessions()
    other, _ = every.open(UserCredentials("eve", "x"), "peer", 0.0)
    first, _ = every.open(BEN, "peer", 1.0)
    for number in range(SESSIONS_OF_A_USER_MAX - 1):
        assert every.open(BEN, "peer", 2.0 + number)[1] == []
    assert every.open(BEN, "peer", 99.0)[1] == [first]
    assert every.find(other.id, 99.0) is other
    for number in range(2 * SESSIONS_MAX):
        every.open(UserCredentials(f"user{number}", "x"), "peer", 100.0 + number)
    assert len(every) == SESSIONS_MAX


def test_a_password_is_in_no_text() -> None:
    session, _ = BrowserSessions().open(UserCredentials("ben", "hidden"), "peer", 0.0)
    assert "hidden" not in f"{session!r} {session.credentials!r} {session.credentials}"
    assert sessions.IDLE_S < sessions.ABSOLUTE_S
