"""The airports' producers: each publishes its flights at the node of its own airport, and only there."""

from __future__ import annotations

import asyncio

import pandas as pd

from atalanta.client import Producer as SendingProducer
from atalanta.client import connect
from examples.flights.airports import AIRPORT_LOGIN, FLIGHTS_ADDRESS, Airport
from examples.flights.data import departures_ms, messages
from examples.flights.pace import Pace

# Messages on their way to the node, unconfirmed.
WINDOW = 500
# How often the pace is asked, in messages.
STEP = 50
LOOK_S = 0.02


class Producer:
    """Publishes the flights of one airport in order. A flight is done when its node has confirmed it.

    `stay`: after a loss the client connects to the same node again, however long that takes, and sends what is
    unconfirmed once more, under the same duplicate ids; the node drops what it has already.
    """

    def __init__(self, airport: Airport, flights: pd.DataFrame, pace: Pace) -> None:
        self.airport = airport
        self.flights = flights
        self.confirmed = 0
        self.sent_again = 0
        self._departures = departures_ms(flights)
        self._pace = pace

    async def run(self) -> None:
        """Returns when all flights are confirmed."""
        options = f"stay=true&reconnectAttempts=-1&retryInterval=100&sendWindow={WINDOW}"
        url = f"{self.airport.server}?{options}"
        login = AIRPORT_LOGIN
        async with connect(url, user=login.user, password=login.password) as connection:
            producer = await connection.producer(FLIGHTS_ADDRESS, routing="multicast")
            observer = asyncio.create_task(self._observe(producer))
            try:
                for row, message in enumerate(messages(self.flights)):
                    if row % STEP == 0:
                        await self._pace.turn(self.airport.code, self._departures[row])
                    await producer.send_soon(message)
                await producer.drain()
            finally:
                observer.cancel()
            self._note(producer.confirmed, producer.resent)
        self._pace.finished(self.airport.code)

    async def _observe(self, producer: SendingProducer) -> None:
        while True:
            self._note(producer.confirmed, producer.resent)
            await asyncio.sleep(LOOK_S)

    def _note(self, confirmed: int, sent_again: int) -> None:
        self.sent_again = sent_again
        if confirmed > self.confirmed:
            self.confirmed = confirmed
            self._pace.confirmed(self.airport.code, confirmed, self._departures[confirmed - 1])
