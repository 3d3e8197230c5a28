"""Prints the Python files that differ from the main branch, one a line; uncommitted and new ones included.

Compared is with the commit at which this branch left origin/main (or main); where that is not
known, or nothing was committed since, with the commit before the last one.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["src", "tests", "tools", "examples", "bench"]  # what `make check` gives to mypy


def git(*arguments: str) -> list[str]:
    """The lines of output; none where git fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def base() -> str:
    """The commit to compare with; "" in a checkout with a single commit or none."""
    head = git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        forked = git("merge-base", "HEAD", main)
        if forked and forked != head:
            return forked[0]
    before = git("rev-parse", "--verify", "HEAD~")
    return before[0] if before else ""


def changed() -> list[str]:
    """Paths below the root, sorted; deleted files are left out."""
    since = base()
    names = (
        git("diff", "--name-only", since, "--", *FOLDERS) if since else git("ls-files", *FOLDERS)
    )
    names += git("ls-files", "--others", "--exclude-standard", "--", *FOLDERS)
    return sorted({name for name in names if name.endswith(".py") and (ROOT / name).is_file()})


if __name__ == "__main__":
    print("\n".join(changed()))
