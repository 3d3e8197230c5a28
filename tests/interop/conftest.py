"""Options and brokers of the interop suite."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.interop.harness.jms import Jms
from tests.interop.harness.lineup import KINDS, Lineup
from tests.interop.harness.node import BrokerProcess

MIXED = "artemis+atalanta"  # every test goes both ways, so the other order would say nothing new
LINEUPS = ("artemis+artemis", "atalanta+atalanta", MIXED)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which brokers the scenarios run against; a module's own USUAL_TARGET unless said."""
    group = parser.getgroup("interop")
    group.addoption("--target", choices=(*KINDS, "both"))
    group.addoption("--lineup", choices=(*LINEUPS, "all"), default=MIXED)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`target` is a kind of broker, `lineup` a pair of kinds."""
    config = metafunc.config
    if "target" in metafunc.fixturenames:
        chosen = config.getoption("--target", default=None)
        chosen = chosen or getattr(metafunc.module, "USUAL_TARGET", "atalanta")
        targets = KINDS if chosen == "both" else (chosen,)
        metafunc.parametrize("target", targets, scope="session")
    if "lineup" in metafunc.fixturenames:
        chosen = config.getoption("--lineup", default=MIXED)
        pairs = LINEUPS if chosen == "all" else (chosen,)
        metafunc.parametrize("lineup", pairs, scope="module")


@pytest.fixture(scope="session")
def jms() -> Iterator[Jms]:
    """The one JVM with the JMS client."""
    with Jms() as client:
        yield client


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lineup]:
    """Makes brokers and ends every one of them."""
    folder = tmp_path_factory.mktemp("brokers")
    lineup = Lineup(folder)
    yield lineup
    lineup.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def node(target: str, brokers: Lineup) -> Iterator[BrokerProcess]:
    """One broker of the kind asked for, without a cluster."""
    broker = brokers.single(target)
    broker.start()
    yield broker
    broker.close()
