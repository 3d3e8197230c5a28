"""Where the driver of a session listens."""

from __future__ import annotations

import pytest

from atalanta.spark.environment.session import on_this_machine


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[2]", True),
        ("local-cluster[1,2,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077,[::1]:7077", True),
        ("spark://localhost:7077,spark-2:7077", False),
        ("spark://10.0.0.7:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_the_loopback_interface_serves_only_executors_on_this_machine(
    master: str, here: bool
) -> None:
    assert on_this_machine(master) is here
