"""A job that was given the package as a wheel finds it on its workers, too."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from atalanta.spark.shipping import wheel_of
from tests.spark.nodes import ROOT

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from atalanta.spark import shipping
print(shipping.wheel_of(shipping.__file__))
class Context:
    def addPyFile(self, name):
        import zipfile
        assert "atalanta/spark/source.py" in zipfile.ZipFile(name).namelist()
        print(name.rpartition("/")[2])
class Spark:
    sparkContext = Context()
shipping.ship(Spark())
"""


def test_an_ordinary_folder_is_no_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "x.whl" / "atalanta"
    folder.mkdir(parents=True)
    assert wheel_of(str(folder / "module.py")) is None


def test_a_wheel_is_sent_on_under_a_name_that_workers_import(tmp_path: Path) -> None:
    made = shutil.make_archive(str(tmp_path / "a"), "zip", ROOT / "src", "atalanta")
    wheel = tmp_path / "atalanta-1-py3-none-any.whl"
    Path(made).rename(wheel)
    done = subprocess.run(
        [sys.executable, "-I", "-c", PROGRAM, str(wheel)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == [str(wheel), "atalanta-1-py3-none-any.zip"], done.stderr
