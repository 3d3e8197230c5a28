"""The console in a real browser: every page, by mouse and by keyboard. Skipped where there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

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
from tests.console.conftest import TwoNodes
from tests.console.pages.messages_of_nodes import count, fill, texts
from tests.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.skipif(bool(missing_browser()), reason=missing_browser())]


@pytest.fixture(scope="module")
def console(two_nodes: TwoNodes) -> Iterator[ConsoleServer]:
    with served_beside(*two_nodes.places) as server:
        yield server


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory, console: ConsoleServer) -> Iterator[RealBrowser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield RealBrowser(driver, console.address)


@pytest.fixture
def user(window: RealBrowser) -> RealBrowser:
    """The browser with a new session."""
    window.driver.delete_all_cookies()
    window.resize(USUAL)
    window.links.clear()
    window.log_in("admin", "secret")
    window.complaints()
    return window


def test_every_page_keeps_to_the_policy_and_to_the_width_of_a_phone(
    two_nodes: TwoNodes, user: RealBrowser, console: ConsoleServer
) -> None:
    asyncio.run(fill(two_nodes.first, "seen", [*texts(3), *texts(1)]))
    look_around(user, "seen")
    wrong: list[str] = []
    user.resize(NARROW)
    for path in every_page(user, console):
        assert user.one("h1").text, path
        wrong += [f"{path}: {each}" for each in user.complaints()]
        if user.overflow() > 0:
            wrong.append(f"{path}: {user.overflow()} px too wide at {NARROW[0]} px")
    assert not wrong, "\n".join(wrong)


def test_messages_are_moved_with_a_look_at_what_would_happen(two_nodes: TwoNodes, user: RealBrowser) -> None:
    asyncio.run(fill(two_nodes.first, "clicked.from", texts(3)))
    asyncio.run(fill(two_nodes.first, "clicked.to", []))
    user.open("/queues?q=clicked")
    user.press("clicked.from")
    user.press("Move messages")
    user.one("input[name=target]").send_keys("clicked.to")
    user.one("input[name=selector]").send_keys("number < 2")
    user.press("See what it would do")
    assert asyncio.run(count(two_nodes.first, "clicked.from")) == 3
    user.press("Move messages to clicked.to")
    assert "2 moved" in user.text()
    assert asyncio.run(count(two_nodes.first, "clicked.to")) == 2


def test_a_page_stays_current_by_itself(two_nodes: TwoNodes, user: RealBrowser) -> None:
    asyncio.run(fill(two_nodes.first, "growing", texts(1)))
    user.open("/queue?name=growing")
    assert user.row("one")[1] == "1"
    asyncio.run(fill(two_nodes.first, "growing", texts(6)))
    until(lambda: user.row("one")[1] == "7", lambda: user.text())
    assert not user.complaints()


def test_a_viewer_has_no_buttons(two_nodes: TwoNodes, window: RealBrowser) -> None:
    asyncio.run(fill(two_nodes.first, "watched", texts(1)))
    window.driver.delete_all_cookies()
    window.log_in("viewer", "secret")
    window.open("/queue?name=watched")
    assert "body 0" in window.text()
    assert [each.text for each in window.all("main button, main a.button")] == ["Show"]
    assert not window.all("input[type=checkbox]")
    window.open("/connections")
    assert [each.text for each in window.all("main button")] == ["Show"]


def test_everything_goes_by_keyboard(two_nodes: TwoNodes, user: RealBrowser) -> None:
    asyncio.run(fill(two_nodes.first, "typed", texts(2)))
    user.open("/queue?name=typed")
    user.type(Keys.TAB)
    assert user.focused() == "a To the content"
    user.type(Keys.ENTER, Keys.TAB)
    assert user.focused() == "a Queues", "the first link of the content, not of the head"
    order = []
    while not user.focused().startswith("button Move"):
        user.type(Keys.TAB)
        order.append(user.focused())
        assert len(order) < 60, order
    assert order.index("a Pause") < order.index("a one") < order.index("input selector")
    box = user.one("tbody input[type=checkbox]")
    assert not box.is_selected()
    user.driver.execute_script("arguments[0].focus()", box)
    user.type(Keys.SPACE)
    assert box.is_selected()
    user.driver.execute_script("arguments[0].focus()", user.one("button[value=remove-messages]"))
    user.type(Keys.ENTER)
    assert "1 messages of typed will be removed" in user.text()
    while user.focused() != "button Remove":
        user.type(Keys.TAB)
    user.type(Keys.ENTER)
    until(lambda: "1 removed" in user.text(), lambda: user.text())


def test_scripts_find_nothing_of_a_session(window: RealBrowser) -> None:
    """No password, no token and no data of a cluster stays in what scripts can read."""
    window.driver.delete_all_cookies()
    window.log_in("admin", "secret")
    stored = window.driver.execute_script("return [localStorage.length, sessionStorage.length, document.cookie]")
    assert stored == [0, 0, ""]
