"""The whole run, step by step; `python -m examples.network` calls it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from examples.flights.screen import Screen
from examples.network.brokers import Broker, Brokers
from examples.network.clients import Clients, java_command
from examples.network.places import NORTH, PLACES, ZONES, place_at
from examples.network.timeline import Outage, Phase, Timeline

LOOK_S: Final = 0.1
COUNT_S: Final = 0.5
PATIENCE_S: Final = 120.0
PERIOD_MS: Final = 100  # of each client
STEPS: Final = 10  # times that the demo waits for messages


class Stalled(Exception):
    """What the demo waits for does not come."""


class Demo:
    """One run. `step`: how many messages must arrive before the next event."""

    def __init__(self, out: Path, messages: int, screen: Screen) -> None:
        self.step = max(messages // STEPS, 20)
        self.screen = screen
        self.brokers = Brokers(out)
        self.clients = Clients(out / "logs" / "clients.log")
        self.timeline = Timeline(self.clients.zones)
        self.received = 0
        self.counted = 0.0

    async def run(self) -> None:
        """Everything; the processes are gone afterwards, also after an error."""
        self.screen.status("building the clients")
        command = await asyncio.to_thread(java_command)
        self.brokers.prepare()
        try:
            self.screen.status("starting three brokers and the clients")
            await self.brokers.start()
            await self.clients.start(command)
            await self.begin("start")
            await self.open_clients()
            await self.settle()
            for place in PLACES:
                await self.restart(self.brokers.by_name[place.name])
            await self.lose(NORTH.name)
            await self.begin("all back")
            await self.settle()
            await self.conclude()
        finally:
            await self.clients.stop()
            await self.brokers.stop()

    async def begin(self, name: str) -> None:
        """Begins a phase."""
        self.timeline.phases.append(Phase(name, self.screen.seconds))
        self.screen.status(name)
        await self.clients.phase(name)

    async def open_clients(self) -> None:
        for place in PLACES:
            await self.clients.meet(place, NORTH)
        for zone in ZONES:
            for number in range(1, zone.clients + 1):
                await self.clients.open(zone, f"{zone.name}-client-{number}", PERIOD_MS)

    async def settle(self, *away: str) -> None:
        """Waits until every client is where it belongs and messages arrive; that is what the phase shows."""
        await self.until("clients in their zones", lambda: self.all_home(away))
        await self.flow()
        phase = self.timeline.phases[-1]
        phase.places = self.timeline.now()
        phase.away = away

    def all_home(self, away: tuple[str, ...] = ()) -> bool:
        """Returns whether each zone's clients are at all its brokers, and nowhere else; without any, anywhere."""
        others = {place.name for place in PLACES if place.name not in away}
        for zone in ZONES:
            here = {place.name for place in zone.places} & others
            names = [name for name, each in self.clients.zones.items() if each == zone.name]
            found = {self.timeline.now().get(name, "") for name in names}
            if found != here if here else not found <= others:
                return False
        return True

    async def flow(self) -> None:
        """Waits until a step of messages more has arrived."""
        await self.count()
        goal = self.received + self.step
        await self.until(f"{self.step} more messages", lambda: self.received >= goal)

    async def restart(self, one: Broker) -> None:
        """A planned restart: SIGTERM, a time without the broker, a new start, and everybody comes back."""
        name = one.place.name
        await self.begin(f"{name} restarts")
        outage = self.gone(name, False)
        await one.stop()
        await self.settle(name)
        await self.back([one], [outage])

    async def lose(self, zone: str) -> None:
        """A data centre is killed: SIGKILL for all its brokers, a time without them, a new start."""
        await self.begin(f"{zone} is killed")
        lost = self.brokers.of_zone(zone)
        outages = [self.gone(broker.place.name, True) for broker in lost]
        await asyncio.gather(*(broker.kill() for broker in lost))
        await self.settle(*(broker.place.name for broker in lost))
        await self.back(lost, outages)

    def gone(self, name: str, killed: bool) -> Outage:
        outage = Outage(name, self.screen.seconds, killed)
        self.timeline.outages.append(outage)
        return outage

    async def back(self, brokers: list[Broker], outages: list[Outage]) -> None:
        """Starts brokers again and waits until everybody is in its zone, and messages arrive."""
        await asyncio.gather(*(broker.start() for broker in brokers))
        for outage in outages:
            outage.ended = self.screen.seconds
        await self.until("clients in their zones again", self.all_home)
        await self.flow()

    async def conclude(self) -> None:
        """Nobody sends any more; waits until everything has arrived, then takes the counts."""
        self.screen.status("nobody sends any more; waiting until everything has arrived")
        await self.clients.quiet()
        lost = 1
        begun = time.monotonic()
        while lost and time.monotonic() - begun < PATIENCE_S:
            await self.look()
            await self.count()
            lost = self.timeline.total("lost")
        await self.flush()

    async def flush(self) -> None:
        """Waits until no count changes any more: a repeat may come behind everything else."""
        before: list[dict[str, int]] = []
        while before != (now := [phase.messages for phase in self.timeline.phases]):
            before = now
            await asyncio.sleep(1.0)
            await self.look()
            await self.count()

    # -- what goes on ---------------------------------------------------------------------------
    async def until(self, what: str, condition: Callable[[], bool]) -> None:
        """Waits for a condition on clients or counts. Errors: Stalled."""
        begun = time.monotonic()
        while True:
            await self.look()
            if condition():
                return
            if time.monotonic() - begun > PATIENCE_S:
                raise Stalled(f"no {what} within {PATIENCE_S:g} s: {self.timeline.now()}, {self.received} received")

    async def look(self) -> None:
        """Asks where the clients are, and now and then for the counts."""
        await asyncio.sleep(LOOK_S)
        self.timeline.add(self.screen.seconds, await self.clients.where())
        for broker in self.brokers.by_name.values():
            broker.check()
        if time.monotonic() - self.counted > COUNT_S:
            await self.count()

    async def count(self) -> None:
        """Takes the counts of all phases."""
        counts = await self.clients.counts()
        for phase in self.timeline.phases:
            phase.messages = {named(key): value for key, value in counts.get(phase.name, {}).items()}
        self.received = self.timeline.total("received")
        self.counted = time.monotonic()


def named(key: str) -> str:
    """Returns a count's name, with names of brokers for their addresses."""
    if ">" not in key:
        return key
    origin, target = key.split(">")
    return f"{place_at(origin) or origin}>{place_at(target) or target}"
