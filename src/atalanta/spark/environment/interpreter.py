"""The Python for Spark's processes, which imports PySpark from compiled files.

Spark puts its own python/lib/pyspark.zip first on the path of each Python process. Python compiles modules in a zip
again in each process: for the process that plans a stream, started by every query, this takes 0.4 s of CPU. If the
same PySpark is installed as a package, a small script removes the zip from the path. It also starts PySpark's daemon of
workers as quiet_daemon.py does, where that file is: without the tracebacks of workers that have no more to do.
"""

from __future__ import annotations

import importlib.util
import os
import stat
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PACKAGES: Final = ("pyspark", "py4j")  # packages that Spark has in zips
RUN_FILE: Final = 'import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name="__main__")'
DAEMON: Final = Path(__file__).with_name("quiet_daemon.py")


def quick_python(environment: Mapping[str, str], folder: Path) -> str:
    """Returns the value of PYSPARK_PYTHON for this machine. The script is created in `folder`.

    Returns the interpreter itself if the script would be wrong: SPARK_HOME is another Spark, or PySpark is not a
    package of this environment.
    """
    home = package_home(environment)
    if home is None or os.name != "posix" or not sys.executable:
        return sys.executable
    script = folder / "bin" / "python"
    write_script(script, script_text(Path(sys.executable), home))
    return str(script)


def package_home(environment: Mapping[str, str]) -> Path | None:
    """Returns the Spark inside the installed package pyspark, if that Spark will run."""
    packages = Path(sysconfig.get_path("purelib"))
    if any(installed(name) != packages / name for name in PACKAGES):
        return None
    home = packages / "pyspark"
    named = environment.get("SPARK_HOME")
    if named and Path(named).resolve() != home.resolve():
        return None
    return home if (home / "python" / "lib" / "pyspark.zip").exists() else None


def installed(name: str) -> Path | None:
    """Returns the folder of a package."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent


def write_script(script: Path, text: str) -> None:
    """Writes an executable script. An identical one is left unchanged, since it may be running."""
    script.parent.mkdir(parents=True, exist_ok=True)
    if script.exists() and script.read_text(encoding="utf-8") == text:
        return
    draft = script.with_name(f"{script.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(draft.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    draft.replace(script)


def script_text(python: Path, home: Path) -> str:
    """Returns a POSIX shell script; the other entries of the path keep their order."""
    return f"""#!/bin/sh
# Made by atalanta.spark: PySpark from its package, which Python keeps compiled, not from the zip in it.
set -f
IFS=:
kept=
for entry in ${{PYTHONPATH-}}; do
    case $entry in
    {quoted(home)}/python/lib/*.zip | {quoted(home)}/jars/*.jar) ;;
    *) kept=$kept${{kept:+:}}$entry ;;
    esac
done
if [ "$kept" ]; then export PYTHONPATH="$kept"; else unset PYTHONPATH; fi
if [ "${{1-}} ${{2-}}" = "-m pyspark.daemon" ] && [ -f {quoted(DAEMON)} ]; then
    shift 2
    # With -c the working directory is on the path, as with -m.
    exec {quoted(python)} -c '{RUN_FILE}' {quoted(DAEMON)} "$@"
fi
exec {quoted(python)} "$@"
"""


def quoted(path: Path) -> str:
    """Returns the path as one word of a shell script."""
    text = str(path).replace("'", "'\\''")
    return f"'{text}'"
