"""The alerting service: one consumer of the queue `alerts`, which only one node has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from atalanta.client import ReceivedMessage, connect
from examples.flights.airports import ALERTING_LOGIN, ALERTS_AIRPORT, ALERTS_QUEUE, FLIGHTS_ADDRESS
from examples.flights.data import KEY
from examples.flights.progress import Progress
from examples.flights.results import ALERTS, write_json

COLUMNS = (KEY, "carrier", "origin", "dest", "dep_delay")
# Acknowledged together, so that a killed node has something to deliver again.
ACKNOWLEDGE_AT = 25


class AlertingService:
    """Notes each late flight once, however often the cluster delivers it."""

    def __init__(self, progress: Progress) -> None:
        self.alerts: dict[str, dict[str, Any]] = {}
        self.deliveries = 0
        self.redelivered = 0
        self.repeats = 0
        self._progress = progress

    async def run(self) -> None:
        """Reads until it is cancelled; the client reconnects to the same node by itself."""
        url = f"{ALERTS_AIRPORT.server}?stay=true&reconnectAttempts=-1&retryInterval=200"
        async with connect(url, user=ALERTING_LOGIN.user, password=ALERTING_LOGIN.password) as connection:
            queue = f"{FLIGHTS_ADDRESS}::{ALERTS_QUEUE}"
            consumer = await connection.consumer(queue, ack="cumulative")
            async for message in consumer:
                self.note(message)
                if self.deliveries % ACKNOWLEDGE_AT == 0 or not consumer.buffered:
                    await message.acknowledge()

    def note(self, message: ReceivedMessage) -> None:
        """Counts the delivery; drops it if the flight is known."""
        self.deliveries += 1
        self.redelivered += message.redelivered
        flight = json.loads(message.text or "{}")
        key = flight[KEY]
        if key in self.alerts:
            self.repeats += 1
            return
        self.alerts[key] = {name: flight[name] for name in COLUMNS}
        self._progress.alerts += 1
        self._progress.changed()

    def by_origin(self) -> dict[str, int]:
        """Alerts by the airport at whose node they were published."""
        counts: dict[str, int] = {}
        for alert in self.alerts.values():
            counts[alert["origin"]] = counts.get(alert["origin"], 0) + 1
        return dict(sorted(counts.items()))

    def write(self, out: Path) -> None:
        """alerts.json."""
        figures = {"deliveries": self.deliveries, "redelivered": self.redelivered, "repeats_dropped": self.repeats}
        write_json(out / ALERTS, {**figures, "alerts": list(self.alerts.values())})
