"""Gateway over `atalanta.client.blocking`: one connection to one real node."""

from __future__ import annotations

from atalanta.spark.errors import SparkSourceError
from atalanta.spark.gateway import Credentials, Gateway


def connect(server: str, credentials: Credentials) -> Gateway:
    raise SparkSourceError("the connection to real nodes is not written yet")
