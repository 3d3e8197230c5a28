"""Folders of HDFS by its REST interface (WebHDFS, HttpFS), which needs no native library and no JVM.

    webhdfs://user@namenode:9870/folder?delegation=…     swebhdfs:// is the same over TLS

Source: page "WebHDFS REST API" of Hadoop's documentation. Parameters of the URI are those of every request. A request
for data is answered with the place of a data node (status 307).

fsspec has a WebHDFS client (2026.9.0), which is not safe here. Its `mv` ignores the answer `false` of a rename that was
not done: a batch would be committed at the broker without its file. Its read (`_fetch_range`) takes the error page of a
data node for the content of the file.
"""

from __future__ import annotations

import http.client
import json
from types import TracebackType
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

API: Final = "/webhdfs/v1"
TIMEOUT_S: Final = 60.0
REDIRECT: Final = 307


class WebHdfsFolder:
    """A folder of HDFS. Thread-safe: each request has a connection of its own."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        user, _, place = parts.netloc.rpartition("@")
        self.scheme = "https" if parts.scheme == "swebhdfs" else "http"
        self.base = f"{self.scheme}://{place}{API}"
        self.folder = parts.path.rstrip("/")
        self.parameters = parse_qsl(parts.query)
        if user:
            self.parameters.append(("user.name", user))
        self._json("PUT", "", "MKDIRS")

    def names(self) -> list[str]:
        found = self._json("GET", "", "LISTSTATUS")
        return sorted(one["pathSuffix"] for one in found["FileStatuses"]["FileStatus"])

    def draft(self, name: str) -> WebHdfsDraft:
        return WebHdfsDraft(self, name)

    def read(self, name: str) -> WebHdfsFile:
        with Exchange("GET", self._url(name, "OPEN")) as first:
            place = first.place()
        return WebHdfsFile(place)

    def remove(self, name: str) -> None:
        self._json("DELETE", name, "DELETE")  # "boolean": false if it is not there

    def rename(self, name: str, new: str) -> None:
        """Renames a file, atomically. Raises OSError if the new name exists, or the old one does not."""
        done = self._json("PUT", name, "RENAME", destination=f"{unquote(self.folder)}/{new}")
        if done.get("boolean") is not True:
            raise OSError(f"HDFS has not renamed {self.folder}/{name} to {new}")

    def creation(self, name: str) -> str:
        """Returns the URL to which a new file is written."""
        with Exchange("PUT", self._url(name, "CREATE", overwrite="true")) as first:
            return first.place()

    def _json(self, method: str, name: str, operation: str, **more: str) -> dict[str, Any]:
        with Exchange(method, self._url(name, operation, **more)) as exchange:
            answer: dict[str, Any] = json.loads(exchange.response().read())
            return answer

    def _url(self, name: str, operation: str, **more: str) -> str:
        path = f"{self.folder}/{name}" if name else self.folder
        query = urlencode([("op", operation), *more.items(), *self.parameters])
        return f"{self.base}{path}?{query}"


class Exchange:
    """One request and its answer. Raises OSError, FileNotFoundError."""

    def __init__(self, method: str, url: str, *headers: tuple[str, str]) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.connection = kind(parts.netloc, timeout=TIMEOUT_S)
        self.connection.putrequest(method, f"{parts.path}?{parts.query}")
        for name, value in headers or [("Content-Length", "0")]:
            self.connection.putheader(name, value)
        self.connection.endheaders()

    def response(self) -> http.client.HTTPResponse:
        """Returns the answer. Raises OSError with Hadoop's reason if it is an error."""
        try:
            response = self.connection.getresponse()
            if response.status < 400:
                return response
            reason = response.read().decode(errors="replace")
        except http.client.HTTPException as error:
            raise OSError(f"HDFS did not answer as WebHDFS does: {error!r}") from error
        try:
            remote = json.loads(reason)["RemoteException"]
            kind, reason = remote["exception"], str(remote["message"]).partition("\n")[0]
        except (ValueError, KeyError, TypeError):
            kind = f"status {response.status}"
        if kind == "FileNotFoundException":
            raise FileNotFoundError(reason)
        raise OSError(f"HDFS: {kind}: {reason[:500]}")

    def place(self) -> str:
        """Returns the URL of the data node."""
        response = self.response()
        place = response.getheader("Location")
        if response.status != REDIRECT or place is None:
            raise OSError(f"HDFS named no data node (status {response.status})")
        return place

    def __enter__(self) -> Exchange:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()


class WebHdfsFile:
    """A file that is being read, as a context manager."""

    def __init__(self, place: str) -> None:
        self.exchange = Exchange("GET", place)
        self.response = self.exchange.response()

    def read(self, size: int) -> bytes:
        """Returns fewer bytes only at the file's end. Raises OSError if the connection ends before."""
        try:
            data = self.response.read(size)
        except http.client.HTTPException as error:
            raise OSError(f"HDFS: the connection of a data node has ended: {error!r}") from error
        if len(data) < size and self.response.length:
            raise OSError(f"HDFS: {self.response.length} bytes of a file did not arrive")
        return data

    def __enter__(self) -> WebHdfsFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.exchange.connection.close()


class WebHdfsDraft:
    """A draft in HDFS. The request's body is sent in chunks: a connection that ends before `close` is no whole file."""

    def __init__(self, folder: WebHdfsFolder, name: str) -> None:
        self.folder = folder
        self.name = name
        headers = ("Transfer-Encoding", "chunked"), ("Content-Type", "application/octet-stream")
        self.exchange = Exchange("PUT", folder.creation(name), *headers)
        self.closed = False

    def write(self, data: bytes) -> None:
        if data:
            self.exchange.connection.send(b"%x\r\n%b\r\n" % (len(data), data))

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with self.exchange:
            self.exchange.connection.send(b"0\r\n\r\n")
            self.exchange.response().read()

    def publish(self, name: str) -> None:
        self.folder.rename(self.name, name)
