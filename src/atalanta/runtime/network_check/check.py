"""The network check: asks several addresses and URLs; one answer is enough.

As in Artemis (NetworkHealthCheck.check), but if the last one that answered is silent, all are asked at the same
time. So a lost network is found after one timeout, not after one timeout per entry.
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
    """Runs probes, each on a thread of its own; a probe that does not end counts as "no answer"."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, probes: Sequence[Probe], timeout_s: float
    ) -> None:
        self._loop = loop
        self._probes = list(probes)
        self._timeout_s = timeout_s
        self._last: Probe | None = None  # the last probe that answered
        self._running: dict[str, asyncio.Future[str]] = {}
        self._why: dict[str, str] = {}  # reasons of the probes that do not answer
        self._finished: set[str] = set()  # names of the probes that have finished at least once
        self._asking: set[asyncio.Task[bool]] = set()

    async def why_lost(self) -> str:
        """Returns the reason for a lost network; "" if one probe answers."""
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
            # Later results are also logged.
            done, waited = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if any(task.result() for task in done):
                return ""
        return "; ".join(f"{name}: {why}" for name, why in sorted(self._why.items()))

    async def _answers(self, probe: Probe) -> bool:
        why = await self._check(probe)
        first = probe.name not in self._finished
        self._finished.add(probe.name)
        if why == LOOPBACK and first:
            # Checked only after an answer: a name that resolves to loopback because the network is lost must not
            # end the check.
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

    async def _check(self, probe: Probe) -> str:
        earlier = self._running.get(probe.name)
        if earlier is not None and not earlier.done():
            return "its earlier check has not ended yet"
        answer: asyncio.Future[str] = self._loop.create_future()
        self._running[probe.name] = answer
        arguments = (probe, answer)
        thread = threading.Thread(target=self._ask, args=arguments, name="network-check", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            answer.cancel()
            return str(error)
        done, _ = await asyncio.wait([answer], timeout=self._timeout_s)
        return answer.result() if done else f"no answer within {self._timeout_s:g} s"

    def _ask(self, probe: Probe, answer: asyncio.Future[str]) -> None:
        try:
            why = probe.check()
        except Exception as error:  # reported as the reason, with its type
            why = f"{type(error).__name__}: {error}"

        def report() -> None:
            if not answer.done():
                answer.set_result(why)

        try:
            self._loop.call_soon_threadsafe(report)
        except RuntimeError:
            return  # the loop is closed: the result is not needed

    def close(self) -> None:
        """Ends the probes in progress soon."""
        for task in self._asking:
            task.cancel()
        for probe in self._probes:
            probe.close()


class NoCheck:
    """The check of a node whose network is not checked."""

    async def why_lost(self) -> str:
        """Returns the reason for a lost network: there is none."""
        return ""

    def close(self) -> None:
        """Ends nothing."""


def network_check(
    loop: asyncio.AbstractEventLoop, config: NetworkCheckConfig
) -> NetworkCheck | None:
    """Creates the check that broker.xml configures; None without entries."""
    probes: list[Probe] = [AddressProbe(name, config) for name in listed(config.addresses)]
    probes += [UrlProbe(url, config.timeout_ms) for url in listed(config.urls)]
    if not probes:
        return None
    # A little longer than the timeouts of a connection and a command, so that their own error texts come first.
    return NetworkCheck(loop, probes, 2 * config.timeout_ms / 1_000 + PATIENCE_S + 1)
