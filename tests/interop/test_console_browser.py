"""The console in headless Chromium at a cluster of three: every page for everybody, and a node that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from atalanta.console.server import ConsoleServer
from tests.console.browser_rig import (
    NARROW,
    USUAL,
    RealBrowser,
    chromium,
    every_page,
    look_around,
    missing_browser,
    served_beside,
)
from tests.interop.console_nodes import (
    PASSWORD,
    USER,
    Nodes,
    at,
    console_nodes,
    count,
    fill,
    linked,
    texts,
)
from tests.interop.harness.javascript import axe_source
from tests.interop.harness.jms import until
from tests.interop.harness.lineup import Lineup

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(missing_browser()), reason=missing_browser()),
]

RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then(
  found => done(found.violations.map(each => [each.impact, each.id, each.nodes.map(node => node.html).slice(0, 3)])),
  error => done([["critical", String(error), []]]));
"""


@pytest.fixture(scope="module")
def nodes(trio: str, brokers: Lineup) -> Iterator[Nodes]:
    with console_nodes(brokers, trio) as found:
        for node in found:
            asyncio.run(fill(node, "pages", texts(3)))
        asyncio.run(fill(found[1], "pages.to", []))
        yield found


@pytest.fixture(scope="module")
def console(nodes: Nodes) -> Iterator[ConsoleServer]:
    with served_beside(*map(at, nodes)) as server:
        yield server


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory, console: ConsoleServer) -> Iterator[RealBrowser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield RealBrowser(driver, console.address)


@pytest.fixture
def user(window: RealBrowser) -> RealBrowser:
    window.driver.delete_all_cookies()
    window.resize(USUAL)
    window.links.clear()
    window.log_in(USER, PASSWORD)
    window.complaints()
    return window


def test_every_page_is_for_everybody_and_keeps_to_the_policy(user: RealBrowser, console: ConsoleServer) -> None:
    look_around(user, "pages")
    source = axe_source()
    wrong: dict[str, None] = {}
    for path in every_page(user, console):
        for scheme, size in (("light", USUAL), ("dark", USUAL), ("light", NARROW)):
            user.colours(scheme)
            user.resize(size)
            user.driver.execute_script(source)
            for impact, rule, places in user.driver.execute_async_script(RUN_AXE):
                wrong[f"{path} {scheme} {size[0]}: {impact} {rule} {places}"] = None
        wrong.update(dict.fromkeys(f"{path}: {each}" for each in user.complaints()))
        if user.overflow() > 0:
            wrong[f"{path}: {user.overflow()} px too wide at {NARROW[0]} px"] = None
    assert not wrong, "\n".join(wrong)


def test_a_message_is_moved_at_the_node_in_the_middle(user: RealBrowser, nodes: Nodes) -> None:
    user.open("/queue?name=pages")
    user.press(nodes[1].name)
    user.choose("tbody input[type=checkbox]")
    user.press("Move")
    user.one("input[name=target]").send_keys("pages.to")
    user.press("See what it would do")
    user.press("Move to pages.to")
    assert "1 moved" in user.text()
    assert asyncio.run(count(nodes[1], "pages.to")) == 1


def test_the_picture_turns_when_a_node_is_killed(user: RealBrowser, nodes: Nodes) -> None:
    user.open("/")
    until("all links are shown", lambda: user.text().count("linked") == 6)
    nodes[1].kill()
    until("it is named", lambda: "No answer" in user.text() and "away" in user.text())
    nodes[1].start()
    until("it is back", lambda: "No answer" not in user.text() and user.text().count("linked") == 6)
    until("all forward to all", lambda: linked(nodes))
