"""Free ports for the tests of `atalanta check`: what else runs on this machine is no finding."""

from __future__ import annotations

import pytest

from atalanta.cli.instance import check


@pytest.fixture(autouse=True)
def free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "port_taken", lambda host, port: False)
