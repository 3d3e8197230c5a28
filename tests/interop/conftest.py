"""Options and brokers of the interop suite, and the table of scenarios and line-ups."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.harness.classic import Classic
from tests.interop.harness.jms import Jms
from tests.interop.harness.lineup import KINDS, Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.table import DIFFERS, FAILED, LEFT_OUT, PASSED, Table
from tests.interop.jms_client import Client

# Ours only, the real one only, both. Every test of a pair goes both ways, so the other order would say nothing new.
OURS, ARTEMIS, MIXED = "ours", "artemis", "mixed"
PAIRS = {OURS: "atalanta+atalanta", ARTEMIS: "artemis+artemis", MIXED: "artemis+atalanta"}
TRIOS = {
    OURS: "atalanta+atalanta+atalanta",
    ARTEMIS: "artemis+artemis+artemis",
    MIXED: "atalanta+artemis+atalanta",
}
OUTCOMES: pytest.StashKey[Table] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which brokers the scenarios run against; a module's own USUAL_TARGET unless said."""
    group = parser.getgroup("interop")
    group.addoption("--target", choices=(*KINDS, "classic", "both"))
    group.addoption("--lineup", choices=(OURS, ARTEMIS, MIXED, "all"), default=MIXED)
    group.addoption("--table", type=Path, help="write the outcomes of clusters into this file")


def pytest_configure(config: pytest.Config) -> None:
    """The marks that scenarios use."""
    config.stash[OUTCOMES] = Table()
    config.addinivalue_line(
        "markers", "differs(lineup, reason): this line-up does not do it, with the reason for the table"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`target` is a kind of broker; `lineup` the kinds of a pair, `trio` those of three."""
    config = metafunc.config
    if "target" in metafunc.fixturenames:
        chosen = config.getoption("--target", default=None)
        chosen = chosen or getattr(metafunc.module, "USUAL_TARGET", "atalanta")
        targets = KINDS if chosen == "both" else (chosen,)
        metafunc.parametrize("target", targets, scope="session")
    chosen = config.getoption("--lineup", default=MIXED)
    for name, kinds in (("lineup", PAIRS), ("trio", TRIOS)):
        if name in metafunc.fixturenames:
            names = list(kinds) if chosen == "all" else [chosen]
            metafunc.parametrize(
                name, [kinds[each] for each in names], ids=names, scope="module"
            )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a line-up is known not to do is expected to fail there; the run says so if it does after all."""
    for item in items:
        for mark in item.iter_markers("differs"):
            lineup, reason = mark.args
            if lineup == _lineup_name(item):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Outcomes of tests with a line-up go into the table."""
    result: Any = yield
    report: pytest.TestReport = result.get_result()
    lineup = _lineup(item)
    if lineup is None or (report.when != "call" and report.outcome == "passed"):
        return
    if report.when == "teardown":
        return
    reason = getattr(report, "wasxfail", "")
    if report.outcome == "skipped":
        outcome = DIFFERS if reason else LEFT_OUT
        if not reason and isinstance(report.longrepr, tuple):
            reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    else:
        outcome = PASSED if report.outcome == "passed" else FAILED
    documentation = (getattr(item, "module", item).__doc__ or item.name).strip().splitlines()[0]
    item.config.stash[OUTCOMES].add(documentation, item.name, lineup, outcome, reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The table, if it was asked for and anything ran."""
    path = session.config.getoption("--table", default=None)
    table = session.config.stash[OUTCOMES]
    if path is not None and table.sections:
        table.write(path)


def _lineup(item: pytest.Item) -> str | None:
    """The kinds of the test's line-up, None if it has none."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found = parameters.get("lineup") or parameters.get("trio")
    return found if isinstance(found, str) else None


def _lineup_name(item: pytest.Item) -> str | None:
    kinds = _lineup(item)
    for known in (PAIRS, TRIOS):
        for name, each in known.items():
            if each == kinds:
                return name
    return None


@pytest.fixture(scope="module")
def classic() -> Iterator[Classic]:
    """The JVM with Classic's brokers and clients."""
    with Classic() as jvm:
        yield jvm


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


@pytest.fixture
def client(jms: Jms, request: pytest.FixtureRequest) -> Iterator[Client]:
    """The JMS client of one test."""
    made = Client(jms, request.node.name.replace("[", ".").replace("]", ""))
    yield made
    made.close()
