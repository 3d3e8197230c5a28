"""Writes docs/images/console-*.png: the pages of the console, with a cluster of three nodes made for it.

`PYTHONPATH=src python -m tools.console_images [FOLDER]`; it needs Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image

from atalanta.client import Connection, Consumer, Message, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import RETRIES, cluster, permissions, write_broker_xml, write_users
from tests.console.browser_rig import (
    NARROW,
    RealBrowser,
    chromium,
    every_page,
    look_around,
    missing_browser,
    served_beside,
)
from tests.ports import free_port

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
USER, PASSWORD = "operator", "not a secret: these nodes live for a minute"
NAMES: Final = ("berlin", "hamburg", "munich")
WIDTH: Final = 1200
HEIGHT_MAX: Final = 1900
COLOURS: Final = 64  # of a file: text and lines need no more
# The pages with pictures in dark colours and at the width of a phone, too.
SEVERAL: Final = ("/", "/queues", "/queue", "/message", "/action")
QUEUES: Final = {"orders": 40, "orders.express": 12, "invoices": 3, "DLQ": 0, "shipments": 0, "returns": 6}
QUEUES_XML: Final = "<addresses>{}</addresses>"
SETTINGS: Final = (
    '<address-settings><address-setting match="#"><dead-letter-address>DLQ</dead-letter-address>'
    "<redistribution-delay>0</redistribution-delay></address-setting></address-settings>"
)
BRIDGE: Final = (
    '<bridges><bridge name="returns-to-archive"><queue-name>returns</queue-name>'
    "<forwarding-address>archive</forwarding-address><static-connectors><connector-ref>archive</connector-ref>"
    "</static-connectors></bridge></bridges>"
)


@contextmanager
def three_nodes(folder: Path) -> Iterator[list[str]]:
    """A cluster of three with an operator; their host:port."""
    ports = [free_port() for _ in NAMES]
    queues = "".join(
        f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in QUEUES
    )
    with ExitStack() as stack:
        for name, port in zip(NAMES, ports, strict=True):
            parts = cluster(port, [each for each in ports if each != port], RETRIES)
            archive = f'<connector name="archive">tcp://127.0.0.1:{free_port()}</connector></connectors>'
            parts = parts.replace("</connectors>", archive) + permissions("amq")
            parts += SETTINGS + QUEUES_XML.format(queues) + (BRIDGE if name == "munich" else "")
            data, own = str(folder / name / "data"), "configuration-changes = true\n"
            xml = write_broker_xml(folder / name, port, name, parts, data=data, security=True, own=own)
            write_users(xml, {USER: PASSWORD}, {"amq": USER})
            stack.enter_context(BrokerProcess(xml, port=port))
        yield [f"127.0.0.1:{port}" for port in ports]


@asynccontextmanager
async def client(place: str, name: str) -> AsyncIterator[Connection]:
    url = f"tcp://{place}?stay=true&clientID={name}"
    async with connect(url, user=USER, password=PASSWORD) as connection:
        yield connection


async def fill(places: list[str]) -> None:
    """Sends what the pages show."""
    for number, place in enumerate(places):
        async with client(place, "shop") as connection:
            for name, messages in QUEUES.items():
                producer = await connection.producer(f"{name}::{name}")
                for each in range(messages * (number + 1) // 2):
                    body = f'{{"order": {1000 + each}, "customer": "C-{each % 7}", "items": [{each}, {each + 1}]}}'
                    properties = {"country": ("de", "fr", "it")[each % 3], "items": 2}
                    await producer.send(Message(text=body, properties=properties))
            management = connection.management()
            if number == 0:
                await management.call("queue.invoices", "pause")
            dead = await management.call("queue.orders", "browse", 1, 2 + number)
            assert isinstance(dead, list)
            for message in dead:
                await management.call("queue.orders", "sendMessageToDeadLetterAddress", message["messageID"])


async def look(places: list[str], folder: Path, scratch: Path) -> list[Path]:
    """Has clients at the nodes while the pictures are made."""
    async with ShopClients(places):
        return await asyncio.to_thread(pictures, places, folder, scratch)


class ShopClients:
    """Consumers and senders at each node, with their names."""

    def __init__(self, places: list[str]) -> None:
        self.places = places
        self._open: list[Connection] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> None:
        for number, place in enumerate(self.places):
            for name in ("warehouse", "billing"):
                url = f"tcp://{place}?stay=true&clientID={name}-{number + 1}"
                connection = await connect(url, user=USER, password=PASSWORD)
                self._open.append(connection)
                if name == "warehouse":
                    consumer = await connection.consumer("shipments")
                    self._tasks.append(asyncio.create_task(taking(consumer)))
                else:
                    self._tasks.append(asyncio.create_task(sending(connection)))

    async def __aexit__(self, *failure: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._open:
            await connection.close()


async def taking(consumer: Consumer) -> None:
    async for message in consumer:
        await message.acknowledge()


async def sending(connection: Connection) -> None:
    producer = await connection.producer("shipments")
    while True:
        await producer.send(Message(text="a parcel"))
        await asyncio.sleep(0.02)


def pictures(places: list[str], folder: Path, scratch: Path) -> list[Path]:
    """Takes a picture of each page."""
    made: list[Path] = []
    with served_beside(*places) as server, chromium(scratch) as driver:
        browser = RealBrowser(driver, server.address)
        browser.resize((WIDTH, 800))
        browser.open("/login")
        made.append(picture(browser, folder / "console-login.png", WIDTH))
        browser.log_in(USER, PASSWORD)
        look_around(browser, "orders")
        browser.open("/search?q=orders")
        browser.links["/search"] = "/search?q=orders"
        browser.links["/element"] = "/element?kind=bridge&name=returns-to-archive"
        browser.links["/element/form"] = "/element/form?do=add&kind=bridge"
        browser.links["/action"] = "/action?do=move&name=orders"
        for path in every_page(browser, server):
            name = path.strip("/").replace("/", "-") or "cluster"
            made.append(picture(browser, folder / f"console-{name}.png", WIDTH))
            if path in SEVERAL:
                browser.colours("dark")
                made.append(picture(browser, folder / f"console-{name}-dark.png", WIDTH))
                browser.colours("light")
                made.append(picture(browser, folder / f"console-{name}-phone.png", NARROW[0]))
    return made


def picture(browser: RealBrowser, path: Path, width: int) -> Path:
    """Writes a picture of the page as it is now, with few colours."""
    browser.resize((width, 800))
    height = int(browser.driver.execute_script("return document.documentElement.scrollHeight"))
    browser.resize((width, min(height, HEIGHT_MAX)))
    image = Image.open(BytesIO(browser.driver.get_screenshot_as_png())).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    browser.resize((WIDTH, 800))
    return path


def main() -> int:
    """Makes the cluster and the pictures."""
    if missing_browser():
        print(missing_browser(), file=sys.stderr)
        return 1
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, three_nodes(Path(scratch)) as places:
        asyncio.run(fill(places))
        for path in asyncio.run(look(places, folder, Path(scratch) / "chromium")):
            print(f"{path.name} {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
