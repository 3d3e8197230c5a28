"""Changes of one parameter, and looks at what goes over the wire because of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.sim.host import Host
from atalanta.wire.core.packets.base import Packet
from tests.cluster.cluster_rig import Rig

Change = Callable[[ClusterConnectionConfig], None]


def having(**values: Any) -> Change:
    def change(config: ClusterConnectionConfig) -> None:
        for name, value in values.items():
            assert hasattr(config, name)
            setattr(config, name, value)

    return change


def dials(rig: Rig, source: Host, part: str) -> list[tuple[int, str]]:
    """From now on: (ms since now, target) of what `source` dials under keys with `part`."""
    found: list[tuple[int, str]] = []
    start = rig.world.now
    dial = rig.network.dial

    def watched(machine: Any, key: str, host: str, port: int) -> None:
        if machine is source and part in key:
            found.append(((rig.world.now - start) // 1_000_000, host))
        dial(machine, key, host, port)

    rig.network.dial = watched  # type: ignore[method-assign, assignment]
    return found


def pauses(found: list[tuple[int, str]]) -> list[int]:
    """Between dials, in ms, without the way there and back."""
    times = [at for at, _ in found]
    return [round((b - a) / 10) * 10 for a, b in zip(times, times[1:], strict=False)]


def sent(rig: Rig, source: Host, target: Host, kind: type[Packet]) -> list[Packet]:
    return [packet for _, packet in rig.packets(source, target) if isinstance(packet, kind)]
