"""One answer to "does only this machine reach it?", for a console, a witness, the doctor and `check`."""

from __future__ import annotations

import pytest

from atalanta.wire.loopback import is_loopback

HERE = (
    "localhost", "LOCALHOST", "127.0.0.1", "127.8.9.10", "::1", "[::1]", "0:0:0:0:0:0:0:1", "[0:0:0:0:0:0:0:1]",
    "::ffff:127.0.0.1",
)  # fmt: skip
ELSEWHERE = (
    "", "127.example.org", "127.0.0.1.example.org", "127.0.0.1:61616", "127.1", "127.0.0.256", "128.0.0.1", "10.0.0.1",
    "0.0.0.0", "::", "[::]", "::2", "fe80::1", "::ffff:10.0.0.1", "localhost.example.org", "[localhost]", "[::1",
    "broker1", "::1:61616:x",
)  # fmt: skip


@pytest.mark.parametrize("host", HERE)
def test_only_this_machine_reaches_it(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_others_may_reach_it(host: str) -> None:
    assert not is_loopback(host)
