"""A configuration file that is replaced by a changed one: durably, with the same mode and owner; the former is kept
beside it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from atalanta.files.replace import sync_folder

FRESH: Final = ".new"
FORMER: Final = ".former"
MOUNTS: Final = Path("/proc/self/mountinfo")
WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def why_not_written(path: Path) -> str:
    """Returns why a file is not replaced, "" if it can be. A file that does not exist can be made in its folder."""
    name = path.name
    if path == Path("-"):
        return "the configuration was read from standard input"
    try:
        if path.is_symlink() and _of_config_map(path):
            return f"{name} is of a ConfigMap of Kubernetes: change the ConfigMap"
        real = Path(os.path.realpath(path))
        folder = real.parent
        if real.exists():
            found = real.stat()
            if not stat.S_ISREG(found.st_mode):
                return f"{name} is not a regular file"
            if not found.st_mode & WRITABLE or not os.access(real, os.W_OK):
                return f"{name} is read-only"
            if found.st_nlink > 1:
                return f"{name} has a second name (a hard link), which would keep the former text"
            if os.geteuid() not in (0, found.st_uid):
                return f"{name} belongs to another user than the node runs as"
            if _is_mounted(real):
                return f"{name} is mounted by itself, so no other file can take its place: mount its folder"
        if not os.access(folder, os.W_OK | os.X_OK):
            return f"the folder of {name} is read-only"
    except OSError as error:
        return f"{name}: {error.strerror or error}"
    return ""


def _of_config_map(path: Path) -> bool:
    """Returns whether a link leads through a folder such as `..data`, which Kubernetes exchanges as a whole."""
    target = Path(os.readlink(path))
    return any(part.startswith("..") and part != ".." for part in target.parts)


def _is_mounted(path: Path) -> bool:
    try:
        lines = MOUNTS.read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(fields[4:5] == [str(path)] for fields in (line.split(" ") for line in lines))


def replace_written(path: Path, data: bytes, model: Path) -> None:
    """Replaces the file, or makes it like `model`; what was there is beside it as NAME.former. Raises OSError, and then
    nothing has changed. A symbolic link stays, and leads to the new file."""
    real = Path(os.path.realpath(path))
    there = real.exists()
    like = (real if there else Path(os.path.realpath(model))).stat()
    fresh = real.with_name(real.name + FRESH)
    try:
        if there:
            former = real.with_name(real.name + FORMER)
            _write(fresh, real.read_bytes(), like)
            os.replace(fresh, former)
        _write(fresh, data, like)
        os.replace(fresh, real)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(real.parent)


def put_back(path: Path, data: bytes | None) -> None:
    """Gives a file its former bytes again; None: it was not there. Raises OSError."""
    real = Path(os.path.realpath(path))
    if data is None:
        real.unlink(missing_ok=True)
    else:
        fresh = real.with_name(real.name + FRESH)
        _write(fresh, data, real.stat())
        os.replace(fresh, real)
    sync_folder(real.parent)


def _write(path: Path, data: bytes, like: os.stat_result) -> None:
    """Writes a new file with mode and owner of another one. What a crash has left of an earlier one is replaced."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as out:
        if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
            try:
                os.fchown(out.fileno(), like.st_uid, like.st_gid)
            except PermissionError:
                if os.fstat(out.fileno()).st_uid != like.st_uid:
                    raise  # a group that the user is not in is lost; an owner is not
        os.fchmod(out.fileno(), stat.S_IMODE(like.st_mode))
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
