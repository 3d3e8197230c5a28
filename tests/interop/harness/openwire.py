"""activemq-client of two generations: its flows (tests/interop/java-openwire), compiled and run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from .tools import CACHE, SMALL_JVM, java, maven

PROJECT = Path(__file__).resolve().parents[1] / "java-openwire"
# The version with javax.jms, and the one with jakarta.jms.
CLIENTS = ("5.18.6", "6.1.4")
RUN_SECONDS = 600.0


@cache
def openwire_class_path(client: str) -> str:
    """The class path of the flows."""
    core = "artemis-jms-client" if client == CLIENTS[0] else "artemis-jakarta-client"
    return compiled(PROJECT, client, f"-Dcore={core}")


def compiled(project: Path, client: str, *properties: str) -> str:
    """The class path of a project for one version of activemq-client; compiled when its sources have changed."""
    built = CACHE / f"{project.name.removeprefix('java-')}-java-{client}"
    sources = [project / "pom.xml", *sorted(project.rglob("*.java"))]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = built / "digest"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(built, ignore_errors=True)
        for path in sources[1:]:
            target = built / path.relative_to(project)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text()
            target.write_text(text if client == CLIENTS[0] else text.replace("javax.jms", "jakarta.jms"))
        maven("-f", str(project / "pom.xml"), f"-Dclient={client}", f"-Dcache={built}", *properties, "compile")
        stamp.write_text(digest)
    return f"{built / 'classes'}{os.pathsep}{built / 'lib'}{os.sep}*"


def flow_names() -> list[str]:
    """The names of the flows, read from their sources (so that collecting needs no Java)."""
    found = []
    for name in ("Queues", "Topics", "Transactions", "Conversions"):
        for line in (PROJECT / "src" / "atalanta" / "openwire" / f"{name}.java").read_text().splitlines():
            if line.startswith("  static void ") and "(World world)" in line:
                found.append(line.split("static void ", 1)[1].split("(", 1)[0])
    return found


def flow_command(client: str, url: str, flows: list[str]) -> list[str]:
    """The command that runs flows one after the other."""
    return [
        java(), "-Xmx512M", *SMALL_JVM, "-Dorg.apache.activemq.SERIALIZABLE_PACKAGES=*", "-cp",
        openwire_class_path(client), "atalanta.openwire.Main", url, *flows,
    ]  # fmt: skip


def run_flows(client: str, url: str, flows: list[str]) -> tuple[dict[str, str], str]:
    """Runs flows; returns what failed why ("" for passed) by name, and the whole output."""
    done = subprocess.run(
        flow_command(client, url, flows), capture_output=True, text=True, timeout=RUN_SECONDS
    )
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"flow"'):
            outcome = json.loads(line)
            found[outcome["flow"]] = outcome["failure"]
    return found, done.stdout + done.stderr
