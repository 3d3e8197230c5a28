"""Our node, a real Artemis with the same broker.xml, and a real Classic for measuring; a data folder each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from bench.broker_xml import Plan, edited
from bench.generators import openwire_class_path
from bench.settings import CACHE
from tests.interop.harness.artemis import ArtemisNode
from tests.interop.harness.atalanta import AtalantaNode
from tests.interop.harness.broker_xml import roles_properties, users_properties
from tests.interop.harness.node import START_SECONDS, BrokerFailed, BrokerProcess
from tests.interop.harness.tools import artemis_home, java
from tests.ports import free_port

KINDS = ("artemis", "atalanta")
CLASSIC = "classic"
CLASSIC_VERSION = "5.18.6"
POLL_SECONDS = 0.005
OPTIONS = "--user admin --password admin --require-login --host 127.0.0.1 --no-web --silent"


class Artemis(ArtemisNode):
    """With the heap and the collector that Artemis' own profile chooses."""

    def _environment(self) -> dict[str, str]:
        return {"JAVACMD": java()}


class Classic(BrokerProcess):
    """A broker of ActiveMQ Classic (bench/java-openwire), with the heap that its distribution gives it.

    `peer_ports`: of the other brokers of its network.
    """

    kind = CLASSIC

    def __init__(self, folder: Path, name: str, port: int, peer_ports: tuple[int, ...]) -> None:
        super().__init__(folder, name, port)
        self._peer_ports = peer_ports

    def _create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def _command(self) -> list[str]:
        main = ["-cp", openwire_class_path(), "atalanta.bench.ClassicBroker"]
        words = [str(self.port), str(self.folder / "data"), *map(str, self._peer_ports)]
        return [java(), "-Xms64M", "-Xmx1G", *main, *words]

    def _environment(self) -> dict[str, str]:
        return {}

    def _ready(self) -> bool:
        return "ready" in self.log.read_text(errors="replace")


class OtherBuild(AtalantaNode):
    """An Atalanta node of another build, for a comparison of two builds."""

    def __init__(self, folder: Path, name: str, port: int, build: Path) -> None:
        super().__init__(folder, name, port)
        self._build = build

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "PYTHONPATH": str(self._build)}


def is_voter(pid: int) -> bool:
    """Whether a process is the voter of one of our guards."""
    return b"run_voter" in Path(f"/proc/{pid}/cmdline").read_bytes()


class Broker:
    """One broker of any kind, in a folder that is new. `runs_java`: it is slow until it is warm."""

    def __init__(
        self,
        kind: str,
        folder: Path,
        port: int,
        plan: Plan,
        created_xml: str,
        peer_build: Path | None = None,
    ) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.kind = kind
        self.runs_java = kind != "atalanta" and (kind == CLASSIC or peer_build is None)
        self.process: BrokerProcess
        if kind == "atalanta":
            self.process = AtalantaNode(folder, folder.name, port)
        elif kind == CLASSIC:
            self.process = Classic(folder, folder.name, port, plan.peer_ports)
        elif peer_build is not None:
            self.process = OtherBuild(folder, folder.name, port, peer_build)
        else:
            self.process = Artemis(folder, folder.name, port)
        self.process.configure()
        etc = folder / "etc"
        (etc / "broker.xml").write_text(edited(created_xml, folder.name, port, plan))
        (etc / "artemis-users.properties").write_text(users_properties())
        (etc / "artemis-roles.properties").write_text(roles_properties())

    @property
    def port(self) -> int:
        return self.process.port

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def pids(self) -> list[int]:
        """The process that was started, and those below it, the broker last: a member of our groups has a guard, and
        that may have a voter."""
        found = [self.pid]
        for pid in found:
            children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            found += sorted(children, key=is_voter, reverse=True)
        return found

    def kill(self) -> None:
        """SIGKILL to the broker itself, as the system does when memory runs out."""
        broker = self.pids[-1]
        if broker == self.pid:
            self.process.kill()
        else:
            os.kill(broker, signal.SIGKILL)
            self.process.await_end()

    def start(self) -> float:
        """Seconds until it says that it is ready and a connection is accepted."""
        begin = time.monotonic()
        process = self.process.launch()
        while not self.process.accepts():
            if process.poll() is not None or time.monotonic() - begin > START_SECONDS:
                tail = self.process.tail()
                self.close()
                raise BrokerFailed(f"{self.kind} did not start; the end of its log:\n{tail}")
            time.sleep(POLL_SECONDS)
        return time.monotonic() - begin

    def stop(self) -> None:
        self.process.stop()

    def close(self) -> None:
        """Ends it if it still runs; the data folder goes too."""
        self.process.close()
        shutil.rmtree(self.process.folder, ignore_errors=True)


class Brokers:
    """Makes brokers and ends every one of them."""

    def __init__(self, peer_build: Path | None = None) -> None:
        self._peer_build = peer_build
        self._made: list[Broker] = []
        self._kept: dict[str, dict[str, list[Broker]]] = {}
        self._created_xml = ""

    def new(self, kind: str, plan: Plan, port: int | None = None) -> Broker:
        """Configured, not started."""
        folder = CACHE / "run" / f"{kind}-{len(self._made)}"
        broker = Broker(
            kind, folder, port or free_port(), plan, self._created(), self._peer_build
        )
        self._made.append(broker)
        return broker

    def singles(self, kind: str) -> Broker:
        """The node of this kind that several scenarios share; started."""
        return self._shared("single", kind)[0]

    def stomp(self, kind: str) -> Broker:
        """The node of this kind that several scenarios of STOMP share; started."""
        return self._shared("stomp", kind)[0]

    def openwire(self, kind: str) -> Broker:
        """The node of this kind that several scenarios of OpenWire share; started. Other shared ones end before."""
        if "openwire" not in self._kept:
            self.close_shared()
        return self._shared("openwire", kind)[0]

    def cluster(self, kind: str) -> list[Broker]:
        """The cluster of two nodes of this kind that several scenarios share; started."""
        return self._shared("cluster", kind)

    def close_shared(self) -> None:
        """Nothing of an earlier scenario runs beside the next."""
        for kinds in self._kept.values():
            for brokers in kinds.values():
                for broker in brokers:
                    broker.close()
        self._kept.clear()

    def close(self) -> None:
        for broker in self._made:
            broker.close()

    def _shared(self, what: str, kind: str) -> list[Broker]:
        kinds = self._kept.setdefault(what, {})
        if kind not in kinds:
            if what == "single":
                brokers = [self.new(kind, Plan())]
            elif what in ("stomp", "openwire"):
                brokers = [self.new(kind, Plan(protocols=what.upper()))]
            else:
                ports = [free_port(), free_port()]
                brokers = [
                    self.new(kind, Plan(peer_ports=(peer,)), port)
                    for port, peer in zip(ports, reversed(ports), strict=True)
                ]
            for broker in brokers:
                broker.start()
            kinds[kind] = brokers
        return kinds[kind]

    def _created(self) -> str:
        if not self._created_xml:
            self._created_xml = created_broker_xml(CACHE / "created")
        return self._created_xml


def created_broker_xml(folder: Path) -> str:
    """What `artemis create` writes here, tuned to this disk by itself (that takes some seconds)."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [str(artemis_home() / "bin" / "artemis"), "create", str(folder), *OPTIONS.split()]
    environment = {**os.environ, "JAVACMD": java()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise BrokerFailed(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    text = (folder / "etc" / "broker.xml").read_text()
    shutil.rmtree(folder)
    return text
