"""The script before Spark's Python processes: which path they get, and where there is none."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark")

from atalanta.spark.environment import interpreter  # noqa: E402
from atalanta.spark.environment.interpreter import (  # noqa: E402
    package_home,
    quick_python,
    script_text,
    write_script,
)
from tests.waiting import until  # noqa: E402

PRINTING = '#!/bin/sh\necho "path=$PYTHONPATH"\nfor each do echo "argument=$each"; done\n'


def printed(tmp_path: Path, path: str, *arguments: str) -> list[str]:
    """Returns what a Python behind the script sees."""
    home = tmp_path / "it's a home" / "pyspark"
    python = tmp_path / "some python"
    write_script(python, PRINTING)
    script = tmp_path / "made" / "python"
    write_script(script, script_text(python, home))
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": path.replace("HOME", str(home))}
    done = subprocess.run([str(script), *arguments], env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_sparks_zips_are_left_out_and_all_else_keeps_its_order(tmp_path: Path) -> None:
    lines = printed(
        tmp_path,
        "/first:HOME/python/lib/pyspark.zip:HOME/python/lib/py4j-0.10-src.zip:HOME/jars/spark-core.jar:"
        "/with a space:HOME/python:/x/*",
        "-m",
        "a module",
        "*",
    )
    home = tmp_path / "it's a home" / "pyspark"
    assert lines == [
        f"path=/first:/with a space:{home}/python:/x/*",
        "argument=-m",
        "argument=a module",
        "argument=*",
    ]


def test_a_path_of_nothing_else_is_no_path(tmp_path: Path) -> None:
    assert printed(tmp_path, "HOME/python/lib/pyspark.zip") == ["path="]


def test_this_environments_pyspark_is_imported_from_its_package(tmp_path: Path) -> None:
    python = quick_python({}, tmp_path)
    if python == sys.executable:
        pytest.skip("PySpark is no package of this environment")
    home = Path(sysconfig.get_path("purelib")) / "pyspark"
    path = f"{home}/python/lib/pyspark.zip"
    code = "import pyspark, sys; print(pyspark.__file__); print(sys.executable)"
    done = subprocess.run(
        [python, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [str(home / "__init__.py"), sys.executable]


def test_another_sparks_home_keeps_its_own_pyspark(tmp_path: Path) -> None:
    other = {"SPARK_HOME": str(tmp_path)}
    assert package_home(other) is None
    assert quick_python(other, tmp_path / "made") == sys.executable
    assert not (tmp_path / "made").exists()


@contextmanager
def spark_daemon(python: str, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yields the socket's path and the process of a daemon, started as Spark does."""
    sockets = tempfile.mkdtemp()  # the path of a Unix socket has at most 107 bytes
    settings = {
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": sockets,
        "SPARK_REUSE_WORKER": "1",
    }
    process = subprocess.Popen(
        [python, "-m", "pyspark.daemon", "pyspark.worker"],
        env={**os.environ, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
    )
    assert process.stdout is not None
    try:
        (size,) = struct.unpack("!i", process.stdout.read(4))
        yield process.stdout.read(size).decode(), process
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(sockets)


def worker_of(path: str) -> tuple[socket.socket, int]:
    """Returns the connection and the id of a worker that has started."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    connection.settimeout(60)
    (worker,) = struct.unpack("!i", connection.recv(4))
    return connection, worker


def ended(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_worker_without_more_to_do_ends_without_a_word(tmp_path: Path) -> None:
    python = quick_python({}, tmp_path)
    if python == sys.executable:
        pytest.skip("PySpark is no package of this environment")
    with spark_daemon(python, tmp_path) as (path, process):
        connection, worker = worker_of(path)
        connection.close()
        until(lambda: ended(worker), lambda: "the worker goes on")
        _, told = process.communicate(timeout=60)
    assert told == b""


def test_a_worker_that_is_asked_something_answers(tmp_path: Path) -> None:
    python = quick_python({}, tmp_path)
    if python == sys.executable:
        pytest.skip("PySpark is no package of this environment")
    with spark_daemon(python, tmp_path) as (path, process):
        connection, worker = worker_of(path)
        with connection:
            split, version = struct.pack("!i", 0), b"3.0"
            connection.sendall(split + struct.pack("!i", len(version)) + version)
            answer = b""
            while b"PYTHON_VERSION_MISMATCH" not in answer:
                more = connection.recv(65_536)
                assert more, answer
                answer += more
        until(lambda: ended(worker), lambda: "the worker goes on")
        _, told = process.communicate(timeout=60)
    assert b"failed to flush" not in told


def test_a_daemon_that_is_gone_is_replaced_by_sparks_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "DAEMON", tmp_path / "gone.py")
    assert printed(tmp_path, "/a", "-m", "pyspark.daemon", "x")[1:] == [
        "argument=-m",
        "argument=pyspark.daemon",
        "argument=x",
    ]
