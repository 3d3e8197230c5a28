"""The time a node waits for a connection to a peer: what the dialed connector says, within reason."""

from __future__ import annotations

import pytest

from atalanta.cluster.connection.dialer import (
    CONNECT_TIMEOUT_MAX_MS,
    connect_timeout_ms,
)
from atalanta.wire.core.transport import TransportConfiguration


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, -1),
        ("2500", 2500),
        ("-1", -1),
        ("0", -1),
        ("soon", -1),
        ("9" * 30, -1),
        ("999999999", CONNECT_TIMEOUT_MAX_MS),
    ],
)
def test_connect_timeout_millis(text: str | None, expected: int) -> None:
    target = TransportConfiguration.tcp("peer", "a.host", 61616)
    if text is not None:
        target.put("connect-timeout-millis", text)
    assert connect_timeout_ms(target) == expected
