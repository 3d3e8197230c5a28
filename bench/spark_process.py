"""The Spark that reads, and what it costs: bench/spark_driver.py, its JVM and its Python workers."""

from __future__ import annotations

import json
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyspark

from bench.generators import Generator
from bench.maven_libraries import libraries
from bench.measure import TICKS, BadRun
from bench.settings import CACHE

POM = Path(__file__).resolve().parent / "kafka" / "connector" / "pom.xml"
BODY_BYTES = 1024
NUMBER_BYTES = 8  # at the end of a body, most significant first
START_SECONDS = 120.0
QUERY_SECONDS = 240.0
# The JVM's other children are the planner of a stream and `chmod` for each file of a checkpoint.
PARTS = ("JVM", "its other children", "workers", "driver", "broker")
CHILDREN = PARTS[1]


@dataclass(frozen=True)
class Reading:
    """A query, or the part of it that counts. `rows` are those of that part; a batch read is one batch."""

    rows: int
    batches: int
    seconds: float
    cpu: dict[str, float]  # by PARTS

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds

    @property
    def cost_us(self) -> float:
        """CPU of broker and Spark for one row."""
        return self.whole_cpu / self.rows * 1e6

    @property
    def whole_cpu(self) -> float:
        """CPU of broker and Spark."""
        return sum(self.cpu.values())

    @property
    def batch_ms(self) -> float:
        """Time for one batch."""
        return self.seconds / self.batches * 1e3

    @property
    def batch_cpu_ms(self) -> float:
        """CPU of broker and Spark for one batch."""
        return self.whole_cpu / self.batches * 1e3


class SparkProcess(Generator):
    """One for all queries, so that it is warm."""

    def start(self, port: int, options: dict[str, object], consumer_port: int = 0) -> None:
        raise NotImplementedError("Spark is no load")

    def stop(self) -> None:
        self.close()

    def begin(self) -> None:
        """Returns when it takes requests."""
        log = CACHE / "run" / "spark.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._launch([sys.executable, "-m", "bench.spark_driver", connector_jars(), str(log)])
        self.line(START_SECONDS)

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        """GeneratorFailed with what Spark said."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        return self.line(QUERY_SECONDS)

    def read(self, request: dict[str, object], rows: int, bodies: bool) -> Reading:
        """BadRun unless every row came once, with the bytes that were sent if `bodies`."""
        answer = self.ask(request)
        total = checksum(rows) if bodies else answer["total"]
        if answer["rows"] != rows or answer["total"] != total:
            raise BadRun(f"{rows} rows wanted, {answer} came of {request}")
        return Reading(**answer["counted"])  # type: ignore[arg-type]


def checksum(rows: int) -> int:
    """The sum of the CRC-32 of all bodies."""
    zeros = zlib.crc32(bytes(BODY_BYTES - NUMBER_BYTES))
    return sum(zlib.crc32(number.to_bytes(NUMBER_BYTES, "big"), zeros) for number in range(rows))


def connector_jars() -> str:
    """Spark's Kafka source and what it needs, without what Spark has already (in its own version)."""
    present = {artifact(path) for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    jars = sorted(libraries(POM).glob("*.jar"))
    return ",".join(str(path) for path in jars if artifact(path) not in present)


def artifact(jar: Path) -> str:
    """The name of a jar without its version."""
    return jar.stem.rpartition("-")[0]


def tree_cpu_seconds(pid: int) -> dict[str, float]:
    """User and system time of the bench's Spark by its parts (PARTS), ended processes included once their parent knows.

    What has ended is in the JVM's time of its children. The driver's Python asks and waits.
    """
    children: dict[int, list[int]] = {}
    ticks: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue  # it has ended
        fields = stat[stat.rindex(")") + 2 :].split()  # from the third on; utime is the fourteenth
        children.setdefault(int(fields[1]), []).append(int(entry.name))
        ticks[int(entry.name)] = [int(field) for field in fields[11:15]]
    found = dict.fromkeys(PARTS, 0.0)
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        user, system, children_user, children_system = ticks.get(one, [0, 0, 0, 0])
        part = "driver" if one == pid else part_of(one)
        found[part] += (user + system) / TICKS
        found[CHILDREN if part == "JVM" else part] += (children_user + children_system) / TICKS
        waiting += children.get(one, [])
    return found


def part_of(pid: int) -> str:
    """One of PARTS, by the command of the process."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return "JVM"  # it has just ended
    if b"pyspark.daemon" in command or b"quiet_daemon.py" in command:  # PySpark's own, or ours in its place
        return "workers"
    return CHILDREN if b"python_streaming_source_runner" in command else "JVM"
