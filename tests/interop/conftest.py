"""Options and brokers of the interop suite, and the tables of its scenarios by line-up and by version of Artemis."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.harness.classic import Classic
from tests.interop.harness.jms import Jms
from tests.interop.harness.lineup import KINDS, Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.openwire import CLIENTS
from tests.interop.harness.table import DIFFERS, FAILED, LEFT_OUT, LINEUPS, PASSED, Table, column
from tests.interop.harness.tools import ARTEMIS_VERSION
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
BY_VERSION: pytest.StashKey[Table] = pytest.StashKey()
VERSION = re.compile(r"\d+\.\d+\.\d+(-jakarta)?")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which brokers the scenarios run against; a module's own USUAL_TARGET unless said."""
    group = parser.getgroup("interop")
    group.addoption("--target", choices=(*KINDS, "classic", "both"))
    group.addoption("--lineup", choices=(OURS, ARTEMIS, MIXED, "all"), default=MIXED)
    group.addoption("--table", type=Path, help="write the outcomes of clusters into this file")
    group.addoption("--versions", type=Path, help="write the outcomes by version of Artemis into this file")


def pytest_configure(config: pytest.Config) -> None:
    """The marks that scenarios use."""
    config.stash[OUTCOMES] = Table(LINEUPS)
    config.stash[BY_VERSION] = Table()
    config.addinivalue_line("markers", "versions: the tests of a module have a column for each version of Artemis")
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
    """Outcomes of tests with a line-up or a version go into the tables."""
    result: Any = yield
    report: pytest.TestReport = result.get_result()
    if report.when == "teardown" or (report.when != "call" and report.outcome == "passed"):
        return
    reason = getattr(report, "wasxfail", "")
    if report.outcome == "skipped":
        outcome = DIFFERS if reason else LEFT_OUT
        if not reason and isinstance(report.longrepr, tuple):
            reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    else:
        outcome = PASSED if report.outcome == "passed" else FAILED
    section = (getattr(item, "module", item).__doc__ or item.name).strip().splitlines()[0]
    if (lineup := _lineup(item)) is not None:
        item.config.stash[OUTCOMES].add(section, item.name, column(lineup), outcome, reason)
    if item.get_closest_marker("versions") is not None:
        item.config.stash[BY_VERSION].add(section, item.name, _version(item), outcome, reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The tables, if they were asked for and anything ran."""
    for option, key in (("--table", OUTCOMES), ("--versions", BY_VERSION)):
        path = session.config.getoption(option, default=None)
        table = session.config.stash[key]
        if path is not None and table.sections:
            table.write(path)


def _version(item: pytest.Item) -> str:
    """The version of Artemis that one of the test's parameters names, else that of the usual one."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found = (VERSION.search(value) for value in parameters.values() if isinstance(value, str))
    return next((match[0] for match in found if match), ARTEMIS_VERSION)


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


@pytest.fixture(scope="session")
def jms() -> Iterator[Jms]:
    """The one JVM with the JMS client."""
    with Jms() as client:
        yield client


@pytest.fixture(scope="module", params=CLIENTS)
def classic(request: pytest.FixtureRequest) -> Iterator[Classic]:
    """The JVM with Classic's brokers and clients, of each version in turn."""
    with Classic(request.param) as jvm:
        yield jvm


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
