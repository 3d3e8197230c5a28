"""Heart-beats: what both sides promise at the login.

Follows AbstractStompProtocolHandler and HeartBeater of Artemis, but for a client that promises nothing: it has a time
to live only if the operator has set one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.connection import ProtocolError
from atalanta.wire.stomp.acceptor import StompAcceptor

if TYPE_CHECKING:
    from atalanta.wire.endpoint import AcceptorConfig

OWN_PERIOD_MS_MIN: Final = 500
PERIOD_DIGITS_MAX: Final = 9


class HeartBeat:
    """The agreement with one client, in ms. `own_period_ms` 0: the node sends none; `ttl_ms` -1: silence is no end.

    `wished_ms` is what CONNECTED asks of the client.
    """

    def __init__(
        self, header: str | None, override_ttl_ms: int, acceptor: AcceptorConfig | None
    ) -> None:
        promised_ms, wanted_ms = periods(header)
        self.own_period_ms: int = max(wanted_ms, OWN_PERIOD_MS_MIN) if wanted_ms else 0
        self.ttl_ms: int = override_ttl_ms
        modifier = 2.0
        shortest_ms = 0
        longest_ms: int | None = None
        if acceptor is not None:
            modifier = acceptor.options(StompAcceptor).ttl_modifier
            shortest_ms = acceptor.connection_ttl_min_ms
            longest_ms = acceptor.connection_ttl_max_ms
            if acceptor.connection_ttl_ms >= 0:
                self.ttl_ms = acceptor.connection_ttl_ms
        self.wished_ms: int = int(self.ttl_ms / modifier) if self.ttl_ms > 0 else 0
        if promised_ms:
            self.ttl_ms = max(int(promised_ms * modifier), shortest_ms)
            if longest_ms is not None:
                self.ttl_ms = min(self.ttl_ms, longest_ms)
            limited = self.ttl_ms != int(promised_ms * modifier)
            self.wished_ms = int(self.ttl_ms / modifier) if limited else promised_ms


def periods(header: str | None) -> tuple[int, int]:
    """Returns the two numbers of a heart-beat header: the client's own period, and the one it wants. ProtocolError."""
    if header is None:
        return 0, 0
    found: list[int] = []
    for part in header.split(",", 2):
        text = part.strip()
        if not (text.isascii() and text.isdigit()) or len(text) > PERIOD_DIGITS_MAX:
            break
        found.append(int(text))
    if len(found) != 2 or header.count(",") != 1:
        raise ProtocolError(f"the header heart-beat is {header[:40]!r}, not two numbers of milliseconds")
    return found[0], found[1]
