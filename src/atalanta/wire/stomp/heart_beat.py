"""Heart-beats: what both sides promise at the login.

Follows AbstractStompProtocolHandler and HeartBeater of Artemis, but for a client that promises nothing: it has a time
to live only if the operator has set one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.stomp.periods import periods

if TYPE_CHECKING:
    from atalanta.wire.endpoint import AcceptorConfig

OWN_PERIOD_MS_MIN: Final = 500


class HeartBeat:
    """The agreement with one client, in ms. `own_period_ms` 0: the node sends none; `ttl_ms` -1: silence is no end.

    `wished_ms` is what CONNECTED asks of the client.
    """

    def __init__(
        self, header: str | None, override_ttl_ms: int, acceptor: AcceptorConfig | None
    ) -> None:
        self.ttl_ms: int = override_ttl_ms
        modifier = 2.0
        shortest_ms = 0
        longest_ms: int | None = None
        if acceptor is not None:
            options = acceptor.options(StompAcceptor)
            if header is None:
                header = options.default_heart_beat
            modifier = options.ttl_modifier
            shortest_ms = acceptor.connection_ttl_min_ms
            longest_ms = acceptor.connection_ttl_max_ms
            if acceptor.connection_ttl_ms >= 0:
                self.ttl_ms = acceptor.connection_ttl_ms
        promised_ms, wanted_ms = periods(header)
        self.own_period_ms: int = max(wanted_ms, OWN_PERIOD_MS_MIN) if wanted_ms else 0
        self.wished_ms: int = int(self.ttl_ms / modifier) if self.ttl_ms > 0 else 0
        if promised_ms:
            self.ttl_ms = max(int(promised_ms * modifier), shortest_ms)
            if longest_ms is not None:
                self.ttl_ms = min(self.ttl_ms, longest_ms)
            limited = self.ttl_ms != int(promised_ms * modifier)
            self.wished_ms = int(self.ttl_ms / modifier) if limited else promised_ms


