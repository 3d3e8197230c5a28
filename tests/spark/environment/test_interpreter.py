"""The script before Spark's Python processes: which path they get, and where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark")

from atalanta.spark.environment.interpreter import (  # noqa: E402
    package_home,
    quick_python,
    script_text,
    write_script,
)

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
