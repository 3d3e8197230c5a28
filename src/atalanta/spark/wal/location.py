"""Folders for write-ahead files: a local path, or a URI of a file system that all machines share.

A file is written under a draft's name and gets its own name when it is complete. The write-ahead folder
(wal_folder.py) needs of a file system:

- A closed file is durable. A local file is (fsync of file and folder); elsewhere it is as durable as a closed file.
- A new name appears with the whole file or not at all. HDFS renames; object stores copy, and a copy is one object.
- A listing shows every file whose name was given before the listing began. HDFS and today's object stores do.

Exclusive creation and names that replace others are not needed: all names are different (epoch and token).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from atalanta.spark.errors import OptionError
from atalanta.spark.wal.web_hdfs import WebHdfsFolder

# The schemes of pyarrow whose file systems have these properties.
ARROW: Final = ("hdfs", "viewfs", "s3", "gs", "gcs", "abfs", "abfss")
WEB_HDFS: Final = ("webhdfs", "swebhdfs")


class FileDraft(Protocol):
    """A file that is being written."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None:
        """Makes the content durable, still under the draft's name. A second call has no effect."""

    def publish(self, name: str) -> None:
        """Gives the closed file its name, durably."""


class Location(Protocol):
    """A folder. Names have no folder parts. Errors are OSError."""

    def names(self) -> list[str]: ...

    def draft(self, name: str) -> FileDraft: ...

    def read(self, name: str) -> Any:
        """Returns the file as a context manager with `read(size)`. Raises FileNotFoundError."""

    def remove(self, name: str) -> None:
        """Removes a file, if it is there."""


class LocalFolder:
    """A folder of the local file system (or a mounted one that supports fsync and atomic renames)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder))

    def draft(self, name: str) -> LocalDraft:
        return LocalDraft(self.folder, name)

    def read(self, name: str) -> Any:
        return (self.folder / name).open("rb")

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)


class LocalDraft:
    """A draft in a local folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self.file = self.path.open("wb")

    def write(self, data: bytes) -> None:
        self.file.write(data)

    def close(self) -> None:
        if not self.file.closed:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()

    def publish(self, name: str) -> None:
        os.replace(self.path, self.path.with_name(name))
        descriptor = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class ArrowFolder:
    """A folder of one of pyarrow's file systems (HDFS, object stores)."""

    def __init__(self, system: Any, path: str) -> None:
        self.system = system
        self.path = path.rstrip("/")
        system.create_dir(self.path, recursive=True)

    def names(self) -> list[str]:
        import pyarrow.fs

        fs: Any = pyarrow.fs

        return sorted(
            one.base_name for one in self.system.get_file_info(fs.FileSelector(self.path))
        )

    def draft(self, name: str) -> ArrowDraft:
        return ArrowDraft(self.system, self.path, name)

    def read(self, name: str) -> Any:
        return self.system.open_input_stream(f"{self.path}/{name}")

    def remove(self, name: str) -> None:
        try:
            self.system.delete_file(f"{self.path}/{name}")
        except FileNotFoundError:
            pass


class ArrowDraft:
    """A draft in a folder of pyarrow."""

    def __init__(self, system: Any, folder: str, name: str) -> None:
        self.system = system
        self.folder = folder
        self.name = name
        self.file = system.open_output_stream(f"{folder}/{name}")
        self.bytes = 0

    def write(self, data: bytes) -> None:
        self.file.write(data)
        self.bytes += len(data)

    def close(self) -> None:
        self.file.close()

    def publish(self, name: str) -> None:
        """Gives the closed file its name. An object store copies and then deletes: the copy's length is looked at."""
        self.system.move(f"{self.folder}/{self.name}", f"{self.folder}/{name}")
        found = self.system.get_file_info(f"{self.folder}/{name}")
        if found.size != self.bytes:
            raise OSError(f"{name} has {found.size} of {self.bytes} bytes after its move")


def location_of(text: str) -> Location:
    """Returns the folder of option walLocation, created if it is not there. Raises OptionError."""
    try:
        if "://" not in text and not text.startswith("file:"):
            return LocalFolder(Path(text).expanduser().absolute())
        parts = urlsplit(text)
        if parts.scheme == "file":
            return LocalFolder(Path(unquote(parts.path)))
        if parts.scheme in WEB_HDFS:
            return WebHdfsFolder(text)
        if parts.scheme not in ARROW:
            raise ValueError(f"{parts.scheme} is not the scheme of a file system that is known to be safe")
        import pyarrow.fs

        fs: Any = pyarrow.fs

        system, path = fs.FileSystem.from_uri(text)
        return ArrowFolder(system, path)
    except (OSError, ValueError) as error:
        raise OptionError(
            f"option walLocation: {text!r} cannot be used: {error}. It is a local path, or a URI of a file system: "
            "s3://, gs://, abfss://, webhdfs://namenode:9870/…, or hdfs:// where Hadoop's libhdfs is installed"
        ) from error
