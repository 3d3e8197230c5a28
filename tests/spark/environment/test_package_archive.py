"""A job that was given the package as a wheel finds it in every process Spark starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from atalanta.spark.environment.package_archive import archive_of
from atalanta.spark.environment.session import prepare_environment
from tests.source_tree import ROOT
from tests.spark.nodes import BrokerCluster

MASTER = "local-cluster[1,2,1024]"
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from atalanta.spark.environment import package_archive
class Context:
    environment = {"PYTHONPATH": "/theirs"}
    def addPyFile(self, name):
        import zipfile
        assert "atalanta/spark/source.py" in zipfile.ZipFile(name).namelist()
        print("sent", name.rpartition("/")[2])
class Spark:
    sparkContext = Context()
package_archive.ship(Spark())
package_archive.ship(Spark())
print("path", Context.environment["PYTHONPATH"])
"""
CONNECT = """
import sys, zipfile
sys.path.insert(0, sys.argv[1])
from atalanta.spark.environment import package_archive
class Spark:
    def addArtifacts(self, name, pyfile):
        assert pyfile and "atalanta/spark/source.py" in zipfile.ZipFile(name).namelist()
        print("artifact", name.rpartition("/")[2])
Spark.__module__ = "pyspark.sql.connect.session"
package_archive.ship(Spark())
"""

# Only the archive has a source of this name; every process that unpickles it has the archive.
FOUND = """
from atalanta.spark.source import AtalantaDataSource
import atalanta
class Zipped(AtalantaDataSource):
    @classmethod
    def name(cls):
        return "zipped"
assert ".zip/" in atalanta.spark.__file__, atalanta.spark.__file__
DefaultSource = Zipped
"""


def package(folder: Path, name: str, compiled: bool = False) -> Path:
    """The sources as a wheel or zip of that name."""
    made = Path(shutil.make_archive(str(folder / "a"), "zip", ROOT / "src", "atalanta"))
    if compiled:
        with zipfile.ZipFile(made, "a") as archive:
            archive.writestr("atalanta/kernel/address.cpython-311-x86_64-linux-gnu.so", b"\x7fELF")
    return made.rename(folder / name)


def ship(archive: Path, program: str = PROGRAM) -> tuple[list[str], str]:
    """Returns what a context is told twice, and what the user reads."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, str(archive)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout.splitlines(), done.stderr


def test_an_ordinary_folder_is_no_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "x.whl" / "atalanta"
    folder.mkdir(parents=True)
    assert archive_of(str(folder / "module.py")) is None


def test_a_wheel_is_sent_on_once_under_a_name_that_workers_import(tmp_path: Path) -> None:
    wheel = package(tmp_path, "atalanta-1-py3-none-any.whl")
    said, errors = ship(wheel)
    assert said == ["sent atalanta-1-py3-none-any.zip", f"path {wheel}:/theirs"], errors
    assert errors == ""


def test_a_zip_is_sent_by_spark_and_named_to_the_planner(tmp_path: Path) -> None:
    archive = package(tmp_path, "atalanta.zip")
    said, errors = ship(archive)
    assert said == [f"path {archive}:/theirs"], errors


def test_spark_connect_has_the_wheel_as_an_artifact(tmp_path: Path) -> None:
    said, errors = ship(package(tmp_path, "atalanta-1-py3-none-any.whl"), CONNECT)
    assert said == ["artifact atalanta-1-py3-none-any.zip"], errors


def test_compiled_modules_in_a_wheel_are_said_to_be_of_no_use(tmp_path: Path) -> None:
    _, errors = ship(package(tmp_path, "atalanta-1-cp311-cp311-linux_x86_64.whl", compiled=True))
    assert "compiled modules" in errors and "--archives" in errors


def submitted(
    folder: Path, archive: Path, variables: dict[str, str], settings: list[str], *arguments: str
) -> None:
    """Runs tests/spark/submitted.py on a cluster with one executor, and looks whether every message arrived once."""
    prepare_environment(MASTER)
    home = Path(pyspark.__file__).parent
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    settings = ["spark.ui.enabled=false", *settings]
    settings += [f"spark.{role}.extraJavaOptions={QUICK}" for role in ("driver", "executor")]
    job = str(Path(__file__).parents[1] / "submitted.py")
    with BrokerCluster(folder / "brokers", 1) as brokers:
        brokers.nodes[0].publish([str(number) for number in range(300)])
        done = subprocess.run(
            [str(home / "bin" / "spark-submit"), "--master", MASTER, "--py-files", str(archive)]
            + [word for setting in settings for word in ("--conf", setting)]
            + [job, brokers.servers, str(folder), *arguments],
            capture_output=True, text=True, cwd=folder, env=environment | variables, check=False,
        )  # fmt: skip
        for application in done.stdout.split()[:1]:
            # Executors of a local cluster keep their copy of the archive in Spark's own folder.
            shutil.rmtree(home / "work" / application, ignore_errors=True)
        assert done.returncode == 0, done.stderr[-5000:]
        assert brokers.waiting() == 0
        assert brokers.waiting("out") == 300


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.process
@pytest.mark.timeout(300)
def test_a_submitted_job_has_the_wheel_in_every_process(tmp_path: Path) -> None:
    submitted(tmp_path, package(tmp_path, "atalanta-1-py3-none-any.whl"), {}, [])


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.process
@pytest.mark.timeout(300)
def test_a_submitted_job_finds_the_source_without_register(tmp_path: Path) -> None:
    archive = package(tmp_path, "atalanta.zip")
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr("pyspark_atalanta/__init__.py", FOUND)
    # The executor has what Spark sends it, and not the driver's path.
    settings = ["spark.executorEnv.PYTHONPATH=/nowhere"]
    submitted(tmp_path, archive, {"PYTHONPATH": str(archive)}, settings, "zipped")
