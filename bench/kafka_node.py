"""A real Apache Kafka for measuring: one KRaft node, broker and controller in one process."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from bench.maven_libraries import libraries
from bench.settings import CACHE
from tests.interop.harness.node import START_SECONDS, BrokerFailed, BrokerProcess
from tests.interop.harness.tools import java
from tests.ports import free_port

KAFKA_VERSION = "4.1.1"
POM = Path(__file__).resolve().parent / "kafka" / "broker" / "pom.xml"
CLUSTER_ID = "YXRhbGFudGEtYmVuY2gtMQ"
# As kafka-server-start.sh has them.
HEAP = (
    "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent",
)  # fmt: skip
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


class KafkaNode(BrokerProcess):
    """Topics make themselves, with `partitions` each; everything else but ports and folder is Kafka's default."""

    kind = "kafka"

    def __init__(self, partitions: int) -> None:
        super().__init__(CACHE / "run" / "kafka", "kafka", free_port())
        self.partitions = partitions

    def begin(self) -> None:
        """In a folder that is new; returns when it takes connections."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._create()
        self.launch()
        begin = time.monotonic()
        while not self.accepts():
            if not self.running or time.monotonic() - begin > START_SECONDS:
                tail = self.tail()
                self.close()
                raise BrokerFailed(f"Kafka did not start; the end of its log:\n{tail}")
            time.sleep(0.05)

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _create(self) -> None:
        self.folder.mkdir(parents=True)
        self._properties().write_text(self._settings())
        command = [*self._java(), "kafka.tools.StorageTool", "format"]
        command += ["--cluster-id", CLUSTER_ID, "--config", str(self._properties())]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BrokerFailed(f"Kafka's storage was not formatted:\n{done.stdout}{done.stderr}")

    def _settings(self) -> str:
        controller = free_port()
        values: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": self.folder / "data",
            "num.partitions": self.partitions,
            # There is one node.
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
        }
        return "".join(f"{name}={value}\n" for name, value in values.items())

    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _java(self) -> list[str]:
        return [java(), *HEAP, QUIET, "-cp", f"{libraries(POM)}/*"]

    def _command(self) -> list[str]:
        return [*self._java(), "kafka.Kafka", str(self._properties())]

    def _environment(self) -> dict[str, str]:
        return {}
