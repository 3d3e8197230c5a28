"""python -m examples.foreign --url tcp://host:61616 [--user …] [--password …] [--count 5000]

Sends messages to a queue of its own at a running Artemis, reads them with Spark, kills the Spark driver once while it
reads, starts it again, and counts. The exit status is 0 if every message is one row.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from atalanta.client import ClientError, Message, blocking
from examples.flights.processes import start_child

ROOT = Path(__file__).resolve().parents[2]
FIRST_ROWS_S = 180.0
END_S = 600.0
FILES_BEFORE_THE_KILL = 3


def main() -> int:
    """Returns the exit status: 0 each message is one row, 2 not, 1 the run failed."""
    parser = argparse.ArgumentParser(prog="python -m examples.foreign")
    parser.add_argument("--url", required=True, help="a running Artemis, such as tcp://127.0.0.1:61616")
    parser.add_argument("--user", default="")
    parser.add_argument("--password", default="")
    parser.add_argument("--count", type=int, default=5_000, help="messages")
    asked = parser.parse_args()
    console = Console()
    queue = f"atalanta.foreign.{uuid.uuid4()}"
    try:
        with blocking.connect(asked.url, user=asked.user or None, password=asked.password or None) as connection:
            connection.create_queue(queue, routing="anycast")
            with connection.producer(queue) as producer:
                for number in range(asked.count):
                    producer.send_soon(Message(text=str(number)))
                producer.drain()
            with tempfile.TemporaryDirectory() as folder:
                kills = asyncio.run(read(asked, queue, Path(folder)))
                counts = json.loads(Path(folder, "counts.json").read_text())
            left = connection.query_queue(queue).message_count
            connection.delete_queue(queue)
    except (ClientError, RuntimeError) as error:
        console.print(f"the run failed: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    rows, different = counts["rows"], counts["different"]
    lost, doubled = asked.count - different, rows - different
    table = Table("sent", "driver kills", "rows", "lost", "doubled", "left in the queue")
    table.add_row(*map(str, (asked.count, kills, rows, lost, doubled, left)))
    console.print(table)
    return 0 if (lost, doubled, left) == (0, 0, 0) else 2


async def read(asked: argparse.Namespace, queue: str, folder: Path) -> int:
    """Runs the driver twice and kills the first with all its processes. Returns the number of kills."""
    parts = urlsplit(asked.url)
    command = [sys.executable, "-m", "examples.foreign.driver", f"{parts.hostname}:{parts.port or 61616}", queue]
    log = folder / "log"
    environment = {"FOREIGN_USER": asked.user, "FOREIGN_PASSWORD": asked.password}
    child = await start_child("driver", [*command, str(folder)], log, ROOT, environment)
    deadline = time.monotonic() + FIRST_ROWS_S
    while child.running and time.monotonic() < deadline:
        if len(list((folder / "rows").glob("*.parquet"))) >= FILES_BEFORE_THE_KILL:
            break
        await asyncio.sleep(0.02)
    kills = int(child.running)
    await child.kill()
    child = await start_child("driver", [*command, str(folder)], log, ROOT, environment)
    status = await asyncio.wait_for(child.process.wait(), END_S)
    await child.kill()
    if status:
        raise RuntimeError(f"the Spark driver ended with status {status}\n{log.read_text()[-3_000:]}")
    return kills


if __name__ == "__main__":
    sys.exit(main())
