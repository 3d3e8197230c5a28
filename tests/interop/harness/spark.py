"""Versions of Spark and packages of Maven for it, kept in the checkout's .cache/ folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark

from tests.interop.harness.tools import CACHE, maven

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>atalanta</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


def pyspark_folders(version: str) -> list[str]:
    """Returns the folder of that PySpark, which comes first on the path; none for the installed one."""
    if version == pyspark.__version__:
        return []
    folder = CACHE / "spark" / version
    if not (folder / f"pyspark-{version}.dist-info").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        command += [str(folder), f"pyspark=={version}", "py4j==0.10.9.9"]
        subprocess.run(command, check=True)
    return [str(folder)]


def jars(package: str) -> list[Path]:
    """Returns the jars of `group:artifact:version` and what it needs beside Spark; fetched by Maven on first use."""
    group, artifact, version = package.split(":")
    folder = CACHE / "spark" / "jars" / f"{artifact}-{version}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        pom = folder / "pom.xml"
        pom.write_text(POM.format(group=group, artifact=artifact, version=version))
        maven(
            "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DoutputDirectory={folder}",
        )  # fmt: skip
        (folder / "complete").touch()
    return sorted(folder.glob("*.jar"))
