"""Asks whether the network is there: of several addresses and URLs one that answers is enough.

As in Artemis (NetworkHealthCheck.check), but all are asked at once when the one that answered last does not, so that
a network that is gone is found out after one timeout, not after one an entry.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence

from atalanta.runtime.network_check.config import NetworkCheckConfig, listed
from atalanta.runtime.network_check.probes import (
    LOOPBACK,
    PATIENCE_S,
    AddressProbe,
    Probe,
    UrlProbe,
)
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.runtime")


class NetworkCheck:
    """Looks of probes, each on a thread of its own; a look that does not end stands for "no answer"."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, probes: Sequence[Probe], patience_s: float
    ) -> None:
        self._loop = loop
        self._probes = list(probes)
        self._patience_s = patience_s
        self._last: Probe | None = None  # that answered
        self._looks: dict[str, asyncio.Future[str]] = {}
        self._why: dict[str, str] = {}  # of those that do not answer, as far as is known
        self._heard: set[str] = set()  # who has said anything at all
        self._asking: set[asyncio.Task[bool]] = set()

    async def why_lost(self) -> str:
        """Empty as long as one answers."""
        if not self._probes:
            return ""
        if self._last is not None and await self._answers(self._last):
            return ""
        others = [probe for probe in self._probes if probe is not self._last]
        waited = {self._loop.create_task(self._answers(probe)) for probe in others}
        self._asking |= waited
        for task in waited:
            task.add_done_callback(self._asking.discard)
        while waited:
            # Those that come later are heard, too: what they say is logged.
            done, waited = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if any(task.result() for task in done):
                return ""
        return "; ".join(f"{name}: {why}" for name, why in sorted(self._why.items()))

    async def _answers(self, probe: Probe) -> bool:
        why = await self._look(probe)
        first = probe.name not in self._heard
        self._heard.add(probe.name)
        if why == LOOPBACK and first:
            # Only then: a name that leads here later, because the network is gone, must not end the check.
            log_event(log, "network_address_refused", {"address": probe.name, "why": why})
            self._probes.remove(probe)
            return not self._probes
        if why:
            if probe.name not in self._why:
                log_event(log, "network_address_lost", {"address": probe.name, "why": why})
            self._why[probe.name] = why
            return False
        if self._why.pop(probe.name, None) is not None:
            log_event(log, "network_address_found", {"address": probe.name})
        self._last = probe
        return True

    async def _look(self, probe: Probe) -> str:
        earlier = self._looks.get(probe.name)
        if earlier is not None and not earlier.done():
            return "its earlier look has not ended yet"
        answer: asyncio.Future[str] = self._loop.create_future()
        self._looks[probe.name] = answer
        arguments = (probe, answer)
        thread = threading.Thread(target=self._ask, args=arguments, name="network-check", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            answer.cancel()
            return str(error)
        done, _ = await asyncio.wait([answer], timeout=self._patience_s)
        return answer.result() if done else f"no answer within {self._patience_s:g} s"

    def _ask(self, probe: Probe, answer: asyncio.Future[str]) -> None:
        try:
            why = probe.look()
        except Exception as error:  # told as the reason, with its kind
            why = f"{type(error).__name__}: {error}"

        def tell() -> None:
            if not answer.done():
                answer.set_result(why)

        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def close(self) -> None:
        """No look goes on for long."""
        for task in self._asking:
            task.cancel()
        for probe in self._probes:
            probe.close()


def network_check(loop: asyncio.AbstractEventLoop, config: NetworkCheckConfig) -> NetworkCheck | None:
    """As broker.xml wants it; None if there is nothing to ask."""
    probes: list[Probe] = [AddressProbe(name, config) for name in listed(config.addresses)]
    probes += [UrlProbe(url, config.timeout_ms) for url in listed(config.urls)]
    if not probes:
        return None
    # A little more than a connection and a command have, so that their own word comes first.
    return NetworkCheck(loop, probes, 2 * config.timeout_ms / 1_000 + PATIENCE_S + 1)
