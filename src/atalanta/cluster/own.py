"""What only Atalanta has, and a broker.xml cannot say: `atalanta.toml` beside it, one key an option.

The same broker.xml goes on starting a real Artemis, which never looks at this file.
"""

from __future__ import annotations

from dataclasses import dataclass

from atalanta.kernel.option import option


@dataclass
class OwnSettings:
    """Defaults are what a node without `atalanta.toml` does."""

    zone: str | None = option(
        None, "zone", "where this node is: members of one zone are nearer to each other", supported=False
    )
    parked_message_timeout_ms: int = option(
        10_000,
        "parked-message-timeout",
        "absence of a member after which messages parked for it go to consumers elsewhere; -1 never",
        unit="ms",
        minimum=-1,
    )
