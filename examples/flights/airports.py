"""The three airports, their nodes and the users of the demo, as the broker.xml files beside have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOST = "127.0.0.1"
# The name of the cluster connection in the broker.xml files.
CLUSTER = "new-york"


@dataclass(frozen=True)
class Airport:
    """`code` as in the column `origin`; its node listens on `port` of the loopback interface."""

    code: str
    name: str
    port: int
    colour: str

    @property
    def server(self) -> str:
        """The node's address for clients, without options."""
        return f"tcp://{HOST}:{self.port}"

    @property
    def configuration(self) -> Path:
        """The folder `etc` with broker.xml and the properties files of users and roles."""
        return HERE / self.code.lower() / "etc"


@dataclass(frozen=True)
class Login:
    """A user of artemis-users.properties."""

    user: str
    password: str


EWR = Airport("EWR", "Newark Liberty", 61721, "#0072B2")
JFK = Airport("JFK", "John F. Kennedy", 61722, "#D55E00")
LGA = Airport("LGA", "LaGuardia", 61723, "#009E73")
AIRPORTS = (EWR, JFK, LGA)

# The one node whose broker.xml has the queue `alerts`.
ALERTS_AIRPORT = JFK

AIRPORT_LOGIN = Login("airport", "runway-4L")
ALERTING_LOGIN = Login("alerting", "red-lamp")
SPARK_LOGIN = Login("spark", "structured")
OPERATOR_LOGIN = Login("operator", "control-tower")

FLIGHTS_ADDRESS = "flights"
DELAYS_ADDRESS = "flights.delays"
ARCHIVE_QUEUE = "archive"
DELAYS_QUEUE = "delays"
ALERTS_QUEUE = "alerts"
WINDOWS_QUEUE = "windows"
