"""The write-ahead folder in HDFS by its REST interface, at a small server that answers as a name node does."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from atalanta.spark.errors import OptionError
from atalanta.spark.wal.location import location_of
from tests.spark.wal.fake_broker import FakeBroker, FakeServers, Killed
from tests.spark.wal.query_rig import Kill, Query, expected


class HdfsServer(ThreadingHTTPServer):
    """Name node and data node in one. `cut`: half of a file is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[dict[str, list[str]]] = []
        self.cut = False

    def handle_error(self, *_: Any) -> None:
        """A driver that was killed has sent a part of a file."""

    @property
    def uri(self) -> str:
        return f"webhdfs://spark@127.0.0.1:{self.server_port}/data/my%20wal"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HdfsServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._process()

    def do_PUT(self) -> None:
        self._process()

    def do_DELETE(self) -> None:
        self._process()

    def _process(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        path = unquote(parts.path).removeprefix("/webhdfs/v1")
        self.server.asked.append(asked)
        operation = asked["op"][0]
        files = self.server.files
        data_node = "data" in asked
        if operation in {"CREATE", "OPEN"} and not data_node:
            if operation == "OPEN" and path not in files:
                self._json({"RemoteException": {"exception": "FileNotFoundException", "message": path}}, 404)
                return
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}{self.path}&data=1")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif operation == "CREATE":
            files[path] = self._chunks()
            self._json({}, 201)
        elif operation == "OPEN":
            body = files[path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.server.cut else body)
            self.close_connection = True
        elif operation == "RENAME":
            target = asked["destination"][0]
            done = path in files and target not in files
            if done:
                files[target] = files.pop(path)
            self._json({"boolean": done})
        elif operation == "LISTSTATUS":
            names = [{"pathSuffix": name.rpartition("/")[2]} for name in files]
            self._json({"FileStatuses": {"FileStatus": names}})
        elif operation == "DELETE":
            self._json({"boolean": files.pop(path, None) is not None})
        else:
            self._json({"boolean": True})

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _json(self, answer: Any, status: int = 200) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def hdfs() -> Iterator[HdfsServer]:
    with HdfsServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("at", [0, 2, 5, 6, 7, 8, 9, 12, 14])
def test_each_message_is_in_one_batch_wherever_a_driver_ends(hdfs: HdfsServer, at: int) -> None:
    broker = FakeBroker()
    broker.add(6)
    servers = FakeServers(a=broker)
    query = Query(hdfs.uri, servers)
    servers.kill = Kill(at, Killed())
    try:
        query.run()
    except Killed:
        servers.kill = lambda step: None
        query.run()
    assert Counter(query.rows) == expected(broker)
    assert not broker.prepared
    assert {name.rpartition("/")[0] for name in hdfs.files} == {"/data/my wal"}
    assert all(asked["user.name"] == ["spark"] for asked in hdfs.asked)


def test_parameters_of_the_uri_are_those_of_every_request(hdfs: HdfsServer) -> None:
    folder = location_of(hdfs.uri + "?delegation=abc%2Fd")
    folder.remove("nothing")
    assert all(asked["delegation"] == ["abc/d"] for asked in hdfs.asked) and len(hdfs.asked) == 2


def test_a_rename_that_hdfs_refuses_and_a_connection_that_ends_are_errors(hdfs: HdfsServer) -> None:
    folder = location_of(hdfs.uri)
    for name in ("first", "second"):
        draft = folder.draft("draft")
        draft.write(bytes(1_000))
        draft.close()
        draft.publish(name)
    draft = folder.draft("draft")
    draft.close()
    with pytest.raises(OSError, match="has not renamed"):
        draft.publish("first")
    assert folder.names() == ["draft", "first", "second"]
    with pytest.raises(FileNotFoundError):
        folder.read("third")
    with folder.read("first") as file:
        assert [len(file.read(600)), len(file.read(600)), len(file.read(600))] == [600, 400, 0]
    hdfs.cut = True
    with folder.read("first") as file, pytest.raises(OSError, match="did not arrive"):
        file.read(1_000)


def test_a_place_without_hdfs_and_unsafe_file_systems_are_refused() -> None:
    with pytest.raises(OptionError, match="cannot be used"):
        location_of("webhdfs://127.0.0.1:1/wal")
    for uri in ("mock://wal", "ftp://host/wal", "memory://wal"):
        with pytest.raises(OptionError, match="not the scheme of a file system that is known to be safe"):
            location_of(uri)
