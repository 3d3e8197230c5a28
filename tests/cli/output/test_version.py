"""`atalanta version` says what a bug report must say."""

from __future__ import annotations

import subprocess
import sys

import pytest

import atalanta
from atalanta.cli.output.version import version_lines
from atalanta.runtime.process.build import build_name
from atalanta.runtime.process.event_loop import loop_name


def test_version_names_build_loop_and_python() -> None:
    text = "\n".join(version_lines())
    assert text.startswith(f"atalanta {atalanta.__version__}\n")
    assert f"build: {build_name()}" in text
    assert f"loop: {loop_name()}" in text
    assert f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}" in text


@pytest.mark.process
def test_the_command_prints_it() -> None:
    command = [sys.executable, "-m", "atalanta", "version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == version_lines()
    assert done.stderr == ""
