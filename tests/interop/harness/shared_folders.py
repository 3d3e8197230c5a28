"""File systems that several machines share: HDFS of Hadoop's own tests, and a server with the interface of S3."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from tests.ports import free_port

from .service import START_SECONDS, Service
from .tools import CACHE, SMALL_JVM, java, maven_jar

MOTO = "moto[server]==5.2.5"
BUCKET = "wal"
KEY = "testing"


def hadoop_version() -> str:
    """Returns the version of the Hadoop client that is part of PySpark: the others must be of the same."""
    (jar,) = jar_folder().glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def hdfs(folder: Path) -> tuple[Service, str]:
    """Starts a name node and a data node. Returns them and the URI of a folder."""
    jar = maven_jar("org.apache.hadoop", "hadoop-client-minicluster", hadoop_version())
    port = free_port()
    command = [java(), "-Xmx512m", *SMALL_JVM, "-cp", f"{jar}{os.pathsep}{jar_folder()}/*"]
    command += ["org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-httpport", str(port)]
    command += ["-D", f"hdfs.minidfs.basedir={folder / 'data'}", "-writeDetails", str(folder / "ready")]
    service = Service(command, port, folder / "log", dict(os.environ))
    deadline = time.monotonic() + START_SECONDS
    while not (folder / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return service, f"webhdfs://{os.environ.get('USER', 'root')}@127.0.0.1:{port}/data/wal"


def jar_folder() -> Path:
    return Path(pyspark.__file__).parent / "jars"


def object_store(folder: Path) -> tuple[Service, str]:
    """Starts a server like S3 with a bucket. Returns it and the URI of a folder."""
    packages = CACHE / MOTO.replace("[server]==", "-")
    if not (packages / "moto").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(packages), MOTO]
        subprocess.run(command, check=True)
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    service = Service(command, port, folder / "log", os.environ | {"PYTHONPATH": str(packages)})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", f"/{BUCKET}")
    status = connection.getresponse().status
    connection.close()
    if status != 200:
        raise RuntimeError(f"the bucket was not created: status {status}")
    where = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    return service, f"s3://{KEY}:{KEY}@{BUCKET}/queries/one?{where}"
