"""A real browser for the pages of a console: headless Chromium, driven by Selenium."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from selenium.common.exceptions import (
    ElementClickInterceptedException,
    StaleElementReferenceException,
)
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from atalanta.cli.cluster.svg import svg_of
from atalanta.console.options import ConsoleOptions
from atalanta.console.server import ConsoleServer
from tests.waiting import until

NARROW, USUAL = (390, 844), (1200, 900)
ATTEMPTS = 3
# Fewer processes and nothing asked of the world outside: a page that names another host fails.
OPTIONS = (
    "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--force-device-scale-factor=1",
    "--force-prefers-reduced-motion",
)  # fmt: skip
# The paths that are no page of HTML, and those that are for a moment only.
NO_PAGES = (
    "/static/{name}", "/picture.svg", "/message/body", "/configuration/file", "/login", "/live",
)  # fmt: skip
CONNECTOR = "warehouse"


@cache
def missing_browser() -> str:
    """Why there is no browser here, "" if there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"no {program} here (Debian: chromium, chromium-driver)"
    return ""


@contextmanager
def served_beside(*nodes: str, **options: object) -> Iterator[ConsoleServer]:
    """A console in a thread of its own."""
    given = ConsoleOptions(nodes=list(nodes), listen="127.0.0.1:0", **options)  # type: ignore[arg-type]
    server = ConsoleServer(given, svg_of)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="console")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(30)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def chromium(folder: Path) -> Iterator[Chrome]:
    """A browser whose profile is in the folder; whatever it logs is kept for `complaints`."""
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    given = [*OPTIONS, f"--user-data-dir={folder}", f"--window-size={USUAL[0]},{USUAL[1]}"]
    if os.geteuid() == 0:
        given.append("--no-sandbox")  # root has none
    for option in given:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service(str(shutil.which("chromedriver"))))
    try:
        driver.set_page_load_timeout(30)
        yield driver
    finally:
        driver.quit()


@dataclass
class RealBrowser:
    """A browser at a console."""

    driver: Chrome
    address: str
    # The links that were on the pages so far, the first of each path.
    links: dict[str, str] = field(default_factory=dict)

    # -- pages ----------------------------------------------------------------------------------
    def open(self, path: str) -> None:
        """Goes to a page of the console."""
        self.driver.get(f"{self.address}{path.lstrip('/')}")
        self._note_links()

    def log_in(self, user: str, password: str) -> None:
        """Logs in by keyboard: the first field has the focus."""
        self.open("/login")
        until(lambda: self.focused() == "input user", lambda: self.focused())
        self.type(user, Keys.TAB, password, Keys.ENTER)
        until(lambda: "/login" not in self.driver.current_url, lambda: self.text())
        self._note_links()

    def _note_links(self) -> None:
        found = self.driver.execute_script(
            "return [...document.querySelectorAll('a[href]')].map(each => each.getAttribute('href'))"
        )
        base = urlsplit(self.address).path
        for link in map(str, found):
            if link.startswith(base):
                self.links.setdefault(f"/{urlsplit(link).path.removeprefix(base)}", f"/{link.removeprefix(base)}")

    # -- what is on it --------------------------------------------------------------------------
    def text(self) -> str:
        """What somebody reads."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    def all(self, selector: str) -> list[WebElement]:
        """The elements of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> WebElement:
        """The first element of a CSS selector."""
        found = self.all(selector)
        assert found, f"no {selector} at {self.driver.current_url}:\n{self.text()}"
        return found[0]

    def row(self, text: str) -> list[str]:
        """The cells of the first row of a table whose first cell begins with this text."""
        rows = self.driver.execute_script(
            "return [...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(each => each.innerText))"
        )
        for cells in rows:
            if cells and str(cells[0]).strip().startswith(text):
                return [" ".join(str(cell).split()) for cell in cells]
        raise AssertionError(f"no row {text} at {self.driver.current_url}:\n{self.text()}")

    def press(self, text: str, selector: str = "button, a") -> None:
        """Clicks what has exactly this text. A part of the page that is renewed meanwhile is looked at once more."""
        for _ in range(ATTEMPTS):
            with suppress(StaleElementReferenceException, ElementClickInterceptedException):
                for found in self.all(selector):
                    if found.text.strip() == text and found.is_displayed():
                        self._click(found)
                        self._note_links()
                        return
        raise AssertionError(f"no {text} at {self.driver.current_url}:\n{self.text()}")

    def choose(self, selector: str) -> None:
        """Clicks the first box of a CSS selector; it stays chosen, because a part that is in use is not renewed."""
        for _ in range(ATTEMPTS):
            with suppress(StaleElementReferenceException, ElementClickInterceptedException):
                self._click(self.one(selector))
                return
        raise AssertionError(f"{selector} is replaced all the time at {self.driver.current_url}")

    def _click(self, element: WebElement) -> None:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def type(self, *keys: str) -> None:
        """Presses keys where the focus is."""
        for each in keys:
            self.driver.switch_to.active_element.send_keys(each)

    def focused(self) -> str:
        """What has the focus: its tag, and its text or name."""
        element = self.driver.switch_to.active_element
        return f"{element.tag_name} {element.text.strip() or element.get_attribute('name') or ''}".strip()

    # -- what is wrong with it ------------------------------------------------------------------
    def complaints(self) -> list[str]:
        """What the browser has logged since the last call: errors of scripts, files that were refused or not there."""
        logged = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [f"{each['level']} {each['message']}" for each in logged]

    def resize(self, size: tuple[int, int]) -> None:
        """Sets the size of the page, as a device has it."""
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def colours(self, scheme: str) -> None:
        """Sets `light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def overflow(self) -> int:
        """How many pixels the page is wider than its window."""
        return int(
            self.driver.execute_script(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
        )


def look_around(browser: RealBrowser, queue: str) -> None:
    """Makes a job and a change of the configuration, and looks at a queue with messages: links lead to all of them."""
    browser.open(f"/action?do=resume&name={queue}")
    browser.press("Resume")
    until(lambda: "/job?" in browser.driver.current_url, browser.text)
    browser.open("/jobs")
    browser.open("/element/form?do=add&kind=connector")
    for name, value in (("name", CONNECTOR), ("v.host", "127.0.0.1"), ("v.port", "1")):
        browser.one(f"input[name='{name}']").send_keys(value)
    browser.choose("button[value=preview]")
    until(lambda: browser.all("button[value=confirmed]"), browser.text)
    browser.choose("button[value=confirmed]")
    until(lambda: "/job?" in browser.driver.current_url, browser.text)
    browser.open("/changes")
    browser.links["/queue"] = f"/queue?name={queue}"
    browser.open(browser.links["/queue"])


def page_paths(server: ConsoleServer) -> list[str]:
    """The paths of all pages that a browser is led to by links; `{x}` stands for any name."""
    routes = server.application().router.routes()
    paths = {str(route.resource.canonical) for route in routes if route.method == "GET" and route.resource is not None}
    base = server.options.base_path()
    return sorted(path for path in (each.removeprefix(base) for each in paths) if path not in NO_PAGES)


def every_page(browser: RealBrowser, server: ConsoleServer, begin: str = "/") -> Iterator[str]:
    """Visits a page of each path of the console, found by links alone. AssertionError for one that no link leads to."""
    browser.open(begin)
    patterns = {path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in page_paths(server)}
    visited: dict[str, None] = {}
    while True:
        known = [
            path
            for path in browser.links
            if path not in (*visited, *NO_PAGES) and any(pattern.fullmatch(path) for pattern in patterns.values())
        ]
        if not known:
            break
        visited[known[0]] = None
        browser.open(browser.links[known[0]])
        yield known[0]
    left = [path for path, pattern in patterns.items() if not any(map(pattern.fullmatch, visited))]
    assert not left, f"no link leads to {', '.join(left)}"
