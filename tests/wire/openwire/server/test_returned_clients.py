"""Clients that came back get messages a little later, whatever happens at the start of another one."""

from __future__ import annotations

import pytest

from atalanta.kernel.ports import Timers
from atalanta.kernel.sessions.session import Session
from atalanta.wire.openwire.server.returned_clients import REPEATS_NS, ReturnedClients


class Alarm(Timers):
    def __init__(self) -> None:
        self.at = 0

    def set(self, key: str, at_ns: int) -> None:
        self.at = at_ns


def test_a_start_that_fails_leaves_the_later_ones() -> None:
    alarm = Alarm()
    returned = ReturnedClients(alarm)
    faulty, later = Session.__new__(Session), Session.__new__(Session)  # without attributes: a start of it fails
    returned.add(0, faulty)
    returned.add(1, later)
    with pytest.raises(AttributeError):
        returned.on_timer(REPEATS_NS)
    assert alarm.at == REPEATS_NS + 1
    assert returned.waiting == [(alarm.at, later)]
