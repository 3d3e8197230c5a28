"""Java, Maven and what is built or fetched with them, kept in the checkout's .cache/ folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path

ARTEMIS_VERSION = "2.44.0"
CHECKOUT = Path(__file__).resolve().parents[3]
CACHE = CHECKOUT / ".cache"
JAVA_PROJECT = Path(__file__).resolve().parents[1] / "java"
# The Netty of clients before 2.0 reaches into classes that Java 17 no longer opens.
OPENED = ("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPENED)


class ToolMissing(RuntimeError):
    """A program the interop suite cannot do without is not there."""


@cache
def java() -> str:
    """The `java` command (JAVA_HOME first, then PATH)."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    return _found("java", "a JDK, version 17 or newer")


def _found(command: str, what: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise ToolMissing(f"the interop suite needs {what}: no `{command}` on PATH")
    return path


def maven(*arguments: str) -> str:
    command = [_found("mvn", "Apache Maven 3.6 or newer"), "-B", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        text = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"{' '.join(command)} failed with status {done.returncode}:\n{text}")
    return done.stdout


@cache
def artemis_home(version: str = ARTEMIS_VERSION, group: str = "org.apache.activemq") -> Path:
    """The unpacked distribution of the real Artemis; fetched by Maven on first use."""
    home = CACHE / f"apache-artemis-{version}"
    if not (home / "bin" / "artemis").exists():
        archive = maven_file(group, "apache-artemis", version, "tar.gz", "bin")
        with tarfile.open(archive) as packed:
            packed.extractall(CACHE, filter="data")
        archive.unlink()
    return home


@cache
def maven_jar(group: str, artifact: str, version: str) -> Path:
    """Returns a jar of Maven Central; fetched on first use."""
    jar = CACHE / f"{artifact}-{version}.jar"
    return jar if jar.exists() else maven_file(group, artifact, version, "jar")


def maven_file(group: str, artifact: str, version: str, kind: str, classifier: str = "") -> Path:
    """Fetches a file of Maven Central. Returns its path in the cache."""
    CACHE.mkdir(exist_ok=True)
    name = f"{group}:{artifact}:{version}:{kind}" + (f":{classifier}" if classifier else "")
    maven("dependency:get", "-Dtransitive=false", f"-Dartifact={name}")
    maven("dependency:copy", f"-Dartifact={name}", f"-DoutputDirectory={CACHE}")
    return CACHE / f"{artifact}-{version}{f'-{classifier}' if classifier else ''}.{kind}"


@cache
def class_path() -> str:
    """The class path of scenarios and driver; compiled when their sources have changed."""
    built = CACHE / "interop-java"
    sources = [JAVA_PROJECT / "pom.xml", *sorted(JAVA_PROJECT.rglob("*.java"))]
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = built / "digest"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(built / "classes", ignore_errors=True)
        maven("-f", str(JAVA_PROJECT / "pom.xml"), "compile")
        stamp.write_text(digest)
    return f"{built / 'classes'}{os.pathsep}{built / 'lib'}{os.sep}*"
