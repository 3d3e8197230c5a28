"""A driver for a node of a test that only listens to its inputs."""

from __future__ import annotations

import asyncio

from atalanta.cluster.inputs import NodeInputs
from atalanta.runtime.clock import system_clock
from atalanta.runtime.driver import Driver


def driver_of(node: NodeInputs) -> Driver:
    """Returns a driver in the running loop. A mistake of the node is one of the test."""

    def never(why: str) -> None:
        raise AssertionError(why)

    driver = Driver(asyncio.get_running_loop(), system_clock(), never, never)
    driver.attach(node)
    return driver
