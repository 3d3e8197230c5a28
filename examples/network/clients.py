"""The JVM with the clients (java/), built with Maven on first use."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from examples.flights.processes import Child, start_child, tail
from examples.network.places import HERE, Place, Zone, place_at

JAVA: Final = HERE / "java"
BUILT: Final = HERE.parents[1] / ".cache" / "network-demo"
ANSWER_S: Final = 90.0
STOP_S: Final = 5.0
SMALL_JVM: Final = ("-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class ToolMissing(Exception):
    """Java or Maven is not there, or Maven could not build the clients; the text has the remedy."""


class ClientsFailed(Exception):
    """The JVM did not answer, or a client was told a failure."""


def java_command() -> list[str]:
    """Returns the command that runs the clients; builds them if their sources have changed. Errors: ToolMissing."""
    home = os.environ.get("JAVA_HOME", "")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    java = java or shutil.which("java")
    maven = shutil.which("mvn")
    missing = [name for name, path in (("java (a JDK, 17 or newer)", java), ("mvn (Apache Maven)", maven)) if not path]
    if java is None or maven is None:
        raise ToolMissing(f"make demo-network needs {' and '.join(missing)} on PATH, for the real activemq-client")
    sources = [JAVA / "pom.xml", *sorted(JAVA.rglob("*.java"))]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = BUILT / "digest"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(BUILT, ignore_errors=True)
        command = [maven, "-B", "-q", "-f", str(JAVA / "pom.xml"), f"-Dbuilt={BUILT}", "compile"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            text = (done.stdout + done.stderr)[-2000:]
            needs = "activemq-client comes from Maven Central, and java must be a JDK, 17 or newer"
            raise ToolMissing(f"Maven could not build the clients ({needs}):\n{text}")
        stamp.write_text(digest)
    path = f"{BUILT / 'classes'}{os.pathsep}{BUILT / 'lib'}{os.sep}*"
    return [java, *SMALL_JVM, "-cp", path, "network.Clients"]


class Clients:
    """The clients of all zones. `zones` has the zone of each client, by its name."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.zones: dict[str, str] = {}
        self._child: Child | None = None
        self._turn = asyncio.Lock()

    async def start(self, command: list[str]) -> None:
        """Starts the JVM, without clients."""
        self._child = await start_child("clients", command, self.log, self.log.parent)

    async def open(self, zone: Zone, name: str, period_ms: int) -> None:
        """Opens a client, which sends and consumes from now on."""
        await self._ask("open", name, zone.url, zone.name, zone.password, zone.sends_to, zone.consumes, str(period_ms))
        self.zones[name] = zone.name

    async def meet(self, place: Place, zone: Zone) -> None:
        """Learns the id of a broker, by a connection of its own."""
        await self._ask("broker", place.address, zone.name, zone.password)

    async def phase(self, name: str) -> None:
        """Messages that are sent from now on belong to this phase."""
        await self._ask("phase", name)

    async def where(self) -> dict[str, str]:
        """Returns the name of the broker of each client, "" while it has none."""
        return {name: place_at(address) for name, address in (await self._ask("where")).items()}

    async def counts(self) -> dict[str, dict[str, int]]:
        """Returns the counts of messages by phase (Ledger.java). ClientsFailed: a client was told a failure."""
        answer = await self._ask("counts")
        if answer["failures"]:
            raise ClientsFailed("; ".join(answer["failures"][:5]))
        phases: dict[str, dict[str, int]] = answer["phases"]
        return phases

    async def quiet(self) -> None:
        """Nobody sends any more."""
        await self._ask("quiet")

    async def stop(self) -> None:
        """Ends the JVM."""
        child, self._child = self._child, None
        if child is not None:
            await child.terminate(STOP_S)

    async def _ask(self, *words: str) -> dict[str, Any]:
        child = self._child
        if child is None or child.process.stdin is None or child.process.stdout is None:
            raise ClientsFailed("the clients do not run")
        async with self._turn:
            child.process.stdin.write(("\t".join(words) + "\n").encode())
            try:
                line = await asyncio.wait_for(child.process.stdout.readline(), ANSWER_S)
            except TimeoutError:
                line = b""
        if not line:
            raise ClientsFailed(f"the clients did not answer to {words[0]}\n{tail(self.log)}")
        answer: dict[str, Any] = json.loads(line)
        if "failure" in answer:
            raise ClientsFailed(f"{words[0]}: {answer['failure']}")
        return answer
