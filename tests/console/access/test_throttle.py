"""Pauses after failed log-ins."""

from __future__ import annotations

from atalanta.console.access.throttle import (
    ENTRIES_MAX,
    FORGET_S,
    FREE_FAILURES,
    FREE_FAILURES_OF_A_PEER,
    LONGEST_PAUSE_S,
    LoginThrottle,
)


def failing(throttle: LoginThrottle, count: int, user: str = "ben", peer: str = "one", now_s: float = 0.0) -> None:
    for _ in range(count):
        throttle.failed(user, peer, now_s)


def test_pauses_begin_after_some_failures_and_grow() -> None:
    throttle = LoginThrottle()
    failing(throttle, FREE_FAILURES)
    assert throttle.pause_s("ben", "one", 0.0) == 0
    pauses = []
    for _ in range(20):
        failing(throttle, 1)
        pauses.append(throttle.pause_s("ben", "one", 0.0))
    assert pauses == sorted(pauses) and 0 < pauses[0] < 5 and pauses[-1] == LONGEST_PAUSE_S
    assert throttle.pause_s("ben", "one", LONGEST_PAUSE_S) == 0


def test_nobody_else_has_to_wait() -> None:
    throttle = LoginThrottle()
    failing(throttle, FREE_FAILURES + 3)
    assert throttle.pause_s("ben", "one", 0.0) > 0
    assert throttle.pause_s("ben", "two", 0.0) == throttle.pause_s("eve", "one", 0.0) == 0


def test_a_peer_that_tries_many_names_has_to_wait() -> None:
    throttle = LoginThrottle()
    for number in range(FREE_FAILURES_OF_A_PEER + 1):
        throttle.failed(f"user{number}", "one", 0.0)
    assert throttle.pause_s("anybody", "one", 0.0) > 0
    assert throttle.pause_s("anybody", "two", 0.0) == 0


def test_failures_are_forgotten_after_a_success_and_in_time() -> None:
    throttle = LoginThrottle()
    failing(throttle, FREE_FAILURES)
    throttle.succeeded("ben", "one")
    failing(throttle, FREE_FAILURES)
    assert throttle.pause_s("ben", "one", 0.0) == 0
    failing(throttle, FREE_FAILURES, now_s=FORGET_S + 1)
    assert throttle.pause_s("ben", "one", FORGET_S + 1) == 0


def test_its_memory_is_limited() -> None:
    throttle = LoginThrottle()
    for number in range(ENTRIES_MAX + 100):
        throttle.failed("ben", f"peer{number}", 0.0)
    assert len(throttle._failures) == ENTRIES_MAX
