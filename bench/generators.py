"""The load generators: real JMS clients (bench/java, bench/java-openwire), raw CORE from C (bench/raw), STOMP
from Python (bench/stomp_load.py)."""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.settings import CACHE, CHECKOUT
from tests.interop.harness.tools import ToolMissing, java

SOURCES = Path(__file__).resolve().parent
ANSWER_SECONDS = 60.0
END_SECONDS = 10.0
# What both JMS generators have in common; each has a Factory of its own.
SHARED_JAVA = ("Main.java", "Load.java")
C_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")


class GeneratorFailed(RuntimeError):
    """It refused, ended, or did not answer in time."""


@dataclass(frozen=True)
class Counts:
    """Since the start of a load; latencies since the last counting (0: not measured)."""

    sent: int
    received: int
    at_ns: int
    bad: int = 0
    confirmed: int = 0
    samples: int = 0
    p50_us: float = 0.0
    p99_us: float = 0.0


class Program:
    """A process that answers a line with a line of JSON."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    @property
    def pid(self) -> int:
        return self._running().pid

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_SECONDS)
            if process.stdout is not None:
                process.stdout.close()

    def line(self, seconds: float = ANSWER_SECONDS) -> dict[str, object]:
        """The next line it says."""
        process = self._running()
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(seconds):
                    raise GeneratorFailed(f"no answer within {seconds:g} s")
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    raise GeneratorFailed("the load generator ended; its reason stands above")
                self._rest += data
        first, self._rest = self._rest.split(b"\n", 1)
        answer: dict[str, object] = json.loads(first)
        if "error" in answer:
            raise GeneratorFailed(str(answer["error"]))
        return answer

    def _launch(self, command: list[str], folder: Path | None = None) -> None:
        self._rest = b""
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)

    def _ask(self, request: str) -> dict[str, object]:
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(request.encode() + b"\n")
        process.stdin.flush()
        return self.line()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise GeneratorFailed("the load generator does not run")
        return self._process


class Generator(Program, ABC):
    """A program that loads a broker, and counts."""

    def count(self) -> Counts:
        return Counts(**self._ask("count"))  # type: ignore[arg-type]

    @abstractmethod
    def start(self, port: int, options: dict[str, object], consumer_port: int = 0) -> None:
        """Connects everything and begins; GeneratorFailed if the broker refuses."""

    @abstractmethod
    def stop(self) -> None:
        """Ends the load."""


class RawGenerator(Generator):
    """Raw CORE: a process for every load. `options`: bench/raw/options.h."""

    def start(self, port: int, options: dict[str, object], consumer_port: int = 0) -> None:
        command = [str(raw_program()), "--port", str(port), "--consumer-port", str(consumer_port)]
        for name, value in options.items():
            shown = int(value) if isinstance(value, bool) else value
            command += [f"--{name.replace('_', '-')}", str(shown)]
        self._launch(command)
        self.line()

    def stop(self) -> None:
        self.close()

    def wait_until_done(self, seconds: float) -> int:
        """The time (ns, monotonic) when the last message was confirmed or had arrived."""
        at_ns = self.line(seconds)["at_ns"]
        assert isinstance(at_ns, int)
        return at_ns


class StompGenerator(Generator):
    """STOMP from one Python process for every load. `options`: stomp_load.py."""

    def start(self, port: int, options: dict[str, object], consumer_port: int = 0) -> None:
        assert consumer_port == 0, "both ends are at one node"
        words = [f"{name}={value}" for name, value in options.items()]
        self._launch([sys.executable, "-m", "bench.stomp_load", str(port), *words], CHECKOUT)
        self.line()

    def stop(self) -> None:
        self.close()


class JmsGenerator(Generator):
    """A real JMS client: one JVM for all loads, so that it is warm. `options`: Load.java."""

    def __init__(self, class_path: Callable[[], str]) -> None:
        super().__init__()
        self._class_path = class_path

    def start(self, port: int, options: dict[str, object], consumer_port: int = 0) -> None:
        if self._process is None:
            heap = ["-Xms512M", "-Xmx1G", "-XX:+UseParallelGC"]
            self._launch([java(), *heap, "-cp", self._class_path(), "atalanta.bench.Main"])
        words = [f"url=tcp://127.0.0.1:{port}"]
        if consumer_port:
            words.append(f"consumerUrl=tcp://127.0.0.1:{consumer_port}")
        words += [f"{name}={str(value).lower()}" for name, value in options.items()]
        self._ask(" ".join(["start", *words]))

    def stop(self) -> None:
        self._ask("stop")


def raw_program() -> Path:
    """bench/raw, compiled when its sources have changed."""
    sources = sorted((SOURCES / "raw").glob("*.c"))
    headers = sorted((SOURCES / "raw").glob("*.h"))
    program = CACHE / f"core-load-{_digest([*sources, *headers])}"
    if not program.exists():
        compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if compiler is None:
            raise ToolMissing("the raw CORE load generator needs a C compiler: no cc on PATH")
        CACHE.mkdir(parents=True, exist_ok=True)
        _run([compiler, *C_FLAGS, "-o", str(program), *map(str, sources)])
    return program


def java_class_path() -> str:
    """bench/java, compiled by Maven when its sources have changed."""
    project = SOURCES / "java"
    return _compiled(project / "pom.xml", sorted(project.rglob("*.java")), CACHE / "java")


def openwire_class_path() -> str:
    """bench/java-openwire, which has a Classic broker too, and the generator of bench/java with javax.jms."""
    project, built = SOURCES / "java-openwire", CACHE / "java-openwire"
    shared = [path for path in sorted((SOURCES / "java").rglob("*.java")) if path.name in SHARED_JAVA]
    written = []
    for path in [*shared, *sorted(project.rglob("*.java"))]:
        target = built / "src" / "atalanta" / "bench" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text().replace("jakarta.jms", "javax.jms"))
        written.append(target)
    return _compiled(project / "pom.xml", written, built)


def _compiled(pom: Path, sources: list[Path], built: Path) -> str:
    """Returns the class path of a project whose build folder is `built`."""
    stamp = built / "digest"
    digest = _digest([pom, *sources])
    if not stamp.exists() or stamp.read_text() != digest:
        if shutil.which("mvn") is None:
            raise ToolMissing("the JMS load generators need Apache Maven: no mvn on PATH")
        shutil.rmtree(built / "classes", ignore_errors=True)
        _run(["mvn", "-B", "-q", "-f", str(pom), "compile"])
        stamp.write_text(digest)
    return f"{built / 'classes'}{os.pathsep}{built / 'lib'}{os.sep}*"


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise GeneratorFailed(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"[-3000:])


def _digest(paths: list[Path]) -> str:
    content = b"\0".join(path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()[:16]
