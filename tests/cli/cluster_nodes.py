"""A cluster of real processes of ours for the commands that look at one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.broker_xml import LOGIN, ORDERS, RETRIES, permissions, write_broker_xml, write_users
from tests.broker_xml import cluster as elements
from tests.cli.calls import Cli
from tests.ports import free_port


class Node:
    """`broker` runs; `cli` talks to it."""

    def __init__(self, name: str, port: int, broker: BrokerProcess) -> None:
        self.name = name
        self.port = port
        self.broker = broker
        self.at = f"127.0.0.1:{port}"
        self.cli = Cli(f"tcp://{self.at}")


@contextmanager
def cluster(
    folder: Path,
    count: int,
    *,
    login: str = LOGIN,
    security: bool = False,
    more: str = "",
    more_of: dict[int, str] | None = None,
    advertised: dict[int, str] | None = None,
) -> Iterator[list[Node]]:
    """`count` nodes a, b, c that know each other; `advertised` replaces the host:port that one announces, `more_of`
    is for single ones."""
    ports = [free_port() for _ in range(count)]
    with ExitStack() as stack:
        nodes: list[Node] = []
        for index, (name, port) in enumerate(zip("abc", ports, strict=False)):
            announced = (advertised or {}).get(index, "")
            others = [each for each in ports if each != port]
            form = (
                elements(port, others, RETRIES, login=login, announced=announced)
                + permissions("amq")
                + ORDERS
            )
            form += more + (more_of or {}).get(index, "")
            path = write_broker_xml(folder / name, port, name, form, security=security)
            write_users(path, {"admin": "admin"}, {"amq": "admin"})
            nodes.append(Node(name, port, stack.enter_context(BrokerProcess(path))))
        yield nodes
