"""The snippets of docs/guide/spark.md, typed at a node: names of servers and folders change, nothing else.

Others have tests of their own: declarative pipelines in tests/interop/test_spark_declarative_pipelines.py, Avro in
tests/spark/test_recipes.py, archives for spark-submit and `register` in tests/interop/test_spark_versions.py.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from atalanta.client import Message, blocking
from atalanta.client.log import PropertyValue
from atalanta.spark.options import read_options
from tests.source_tree import ROOT
from tests.spark.nodes import PASSWORD, USER, BrokerCluster
from tests.spark.pipeline.process import ATALANTA, user_environment

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(300)]

PAGE = (ROOT / "docs" / "guide" / "spark.md").read_text(encoding="utf-8")
SETTING = """\
<address-setting match="failing"><dead-letter-address>DLQ</dead-letter-address>
  <max-delivery-attempts>1</max-delivery-attempts></address-setting>
<address-setting match="carriers"><default-last-value-queue>true</default-last-value-queue></address-setting>
<address-setting match="atalanta.spark.#"><auto-create-addresses>true</auto-create-addresses>
  <auto-create-queues>true</auto-create-queues></address-setting>
"""
ANYCAST = ("orders", "delays", "carriers", "failing", "parked", "DLQ")
ADDRESSES = '<address name="flights.delays"><multicast><queue name="board"/></multicast></address>\n' + "".join(
    f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>\n' for name in ANYCAST
)
DAY_MS = 1_767_139_200_000  # the day of the page


def snippet(section: str, kind: str = "python", at: int = 0) -> str:
    """Returns a block of a section."""
    text = re.split(r"^##+ ", PAGE.partition(f"# {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return blocks[at]


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, (old, text)
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    cluster = BrokerCluster(tmp_path_factory.mktemp("brokers"), 1)
    xml = cluster.nodes[0].broker_xml
    text = xml.read_text().replace("</address-settings>", SETTING + "</address-settings>")
    xml.write_text(text.replace("</addresses>", ADDRESSES + "</addresses>"))
    with cluster:
        yield cluster


class Typist:
    """A user with a folder, a password file and `spark`, as the snippets suppose them."""

    def __init__(self, spark: SparkSession, brokers: BrokerCluster, folder: Path) -> None:
        self.spark = spark
        self.brokers = brokers
        self.folder = folder
        self.password = folder / "password"
        self.password.write_text(PASSWORD)
        self.login = {"servers": brokers.servers, "user": USER, "password": PASSWORD}

    def types(self, code: str, *changes: tuple[str, str], **names: Any) -> dict[str, Any]:
        """Runs a snippet, and returns its names."""
        known = {"spark": self.spark, "login": self.login, "F": F, **names}
        exec(compile(changed(code, *changes), "spark.md", "exec"), known)
        return known

    def secrets(self) -> tuple[str, str]:
        return "/run/secrets/spark", str(self.password)

    def at(self, name: str) -> str:
        return str(self.folder / name)

    def send(self, address: str, *messages: Message, routing: str = "anycast") -> None:
        with blocking.connect(f"tcp://{self.brokers.servers}", user=USER, password=PASSWORD) as connection:
            producer = connection.producer(address, routing=routing)
            for message in messages:
                producer.send(message)

    def received(self, queue: str) -> list[str]:
        found = []
        with blocking.connect(f"tcp://{self.brokers.servers}", user=USER, password=PASSWORD) as connection:
            consumer = connection.consumer(queue)
            while (message := consumer.receive(1)) is not None:
                message.acknowledge()
                found.append(str(message.text))
        return sorted(found)

    def archived(self, frame: DataFrame, name: str) -> list[Any]:
        """Returns the rows of a run that ends."""
        to_the_end(
            frame.writeStream.option("checkpointLocation", self.at(f"{name}-checkpoint"))
            .trigger(availableNow=True)
            .start(self.at(name))
        )
        return self.spark.read.parquet(self.at(name)).collect()


def to_the_end(query: StreamingQuery) -> None:
    assert query.awaitTermination(120)
    assert query.exception() is None


@pytest.fixture
def typist(real: SparkSession, brokers: BrokerCluster, tmp_path: Path) -> Iterator[Typist]:
    yield Typist(real, brokers, tmp_path)
    for query in real.streams.active:
        query.stop()


def test_a_first_table(typist: Typist, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    (for n in .*|atalanta produce [^#\n]*)", PAGE, re.MULTILINE)
    assert len(commands) == 2
    login = {"ATALANTA_URL": f"tcp://{typist.brokers.servers}", "ATALANTA_USER": USER, "ATALANTA_PASSWORD": PASSWORD}
    for command in commands:
        line = re.sub("^atalanta", shlex.join(ATALANTA), command)
        subprocess.run(["bash", "-c", line], cwd=typist.folder, env=user_environment() | login, check=True)
    typist.types(
        snippet("A first table"),
        ("127.0.0.1:61616", typist.brokers.servers),
        ('"admin"', f'"{USER}"'),
        ('"tryout"', f'"{PASSWORD}"'),
        ('"orders-checkpoint"', repr(typist.at("checkpoint"))),
        ('"orders-table"', repr(typist.at("table"))),
    )
    said = capsys.readouterr().out
    assert said.startswith("1000\n")
    assert [re.findall(r"\w+ ?\w*", line) for line in said.splitlines() if "shop " in line and "|" in line]
    for shop in ("shop 0", "shop 1", "shop 2"):
        assert re.search(rf"\|\s*{shop}\|\s*33[34]\|", said), said
    assert typist.brokers.waiting("orders") == 0


def test_a_stream_and_a_schema_of_ones_own(typist: Typist) -> None:
    properties: dict[str, PropertyValue] = {"carrier": "AA", "dep_delay": 7}
    typist.send("flights", Message(text="one", properties=properties), routing="multicast")
    typist.types(
        snippet("Reading a stream"),
        ("ewr:61616,jfk:61616,lga:61616", typist.brokers.servers),
        typist.secrets(),
        ('"checkpointLocation", "…"', f"'checkpointLocation', {typist.at('c')!r}"),
        ('.start("…")', f".start({typist.at('rows')!r})"),
    )
    (query,) = typist.spark.streams.active
    query.processAllAvailable()
    query.stop()
    assert [row.text for row in typist.spark.read.parquet(typist.at("rows")).collect()] == ["one"]
    typist.send("flights", Message(text="two", properties=properties), routing="multicast")
    code = f"reader = {snippet('Columns')}"
    reader = typist.types(code)["reader"].options(**typist.login, queue="flights::archive", group="own")
    (row,) = typist.archived(reader.load(), "own")
    assert (row.carrier, row.dep_delay) == ("AA", 7) and set(row.asDict()) == {"timestamp", "carrier", "dep_delay"}


def test_a_batch_of_yesterday(typist: Typist) -> None:
    for days, text in ((-1, "before"), (0, "that day"), (1, "after")):
        typist.send("orders", Message(text=text, timestamp_ms=DAY_MS + days * 86_400_000))
    code = snippet("A batch of yesterday").replace("spark.read", "rows = spark.read")
    rows = typist.types(code)["rows"].collect()
    assert [row.text for row in rows] == ["that day"]
    assert typist.received("orders") == ["after", "before", "that day"]


def test_a_replay(typist: Typist) -> None:
    typist.send("flights", Message(text="kept"), routing="multicast")
    known = typist.types(snippet("Replay"))
    assert [row.text for row in typist.archived(known["flights"], "first")] == ["kept"]
    options = {**typist.login, "queue": "flights::archive"}

    def past() -> list[str]:
        rows = typist.spark.read.format("atalanta").options(**options, startingTimestamp=0).load()
        return [row.text for row in rows.collect()]

    assert past() == ["kept"]
    released = typist.spark.readStream.format("atalanta").options(**options, retention="none")
    typist.send("flights", Message(text="new"), routing="multicast")
    typist.archived(released.option("group", "archive").load(), "second")
    assert past() == []


def test_the_names_of_pairs(typist: Typist) -> None:
    login = typist.types(snippet("High availability"))["login"]
    options = read_options({**login, "queue": "orders"})
    assert options.login.groups == (("ewr-1:61616", "ewr-2:61616"), ("jfk-1:61616", "jfk-2:61616"))


def test_nodes_without_the_log_view(typist: Typist) -> None:
    typist.send("orders", Message(text="received"))
    known = typist.types(
        snippet("Nodes without the log view"),
        ("artemis-1:61616,artemis-2:61616", typist.brokers.servers),
        typist.secrets(),
        ("/data/orders/wal", typist.at("wal")),
        (".load()", '.option("sourceMode", "wal").load()'),  # our node has one
    )
    assert [row.text for row in typist.archived(known["orders"], "rows")] == ["received"]
    assert typist.brokers.waiting("orders") == 0


def counts(typist: Typist) -> DataFrame:
    """A stream of carriers with their numbers of messages in the queue `delays`."""
    typist.send("delays", *(Message(text=carrier) for carrier in ("AA", "UA", "AA")))
    reader = typist.spark.readStream.format("atalanta").options(**typist.login, queue="delays")
    return reader.load().withColumn("carrier", F.col("text"))


def test_answers_of_a_stream_and_of_a_frame(typist: Typist) -> None:
    known = typist.types(
        snippet("Writing").replace("answers.write", "query = answers.write"),
        ("ewr:61616,jfk:61616,lga:61616", typist.brokers.servers),
        ('"checkpointLocation", "…")', f"'checkpointLocation', {typist.at('c')!r}).options(**login)"),
        (".options(…)", '.options(**login, address="parked", routing="anycast")'),
        answers=counts(typist).select("text", "carrier"),
        frame=typist.spark.createDataFrame([("a row",)], "text string"),
    )
    known["query"].processAllAvailable()
    known["query"].stop()
    assert typist.received("flights.delays::board") == ["AA", "AA", "UA"]
    assert typist.received("parked") == ["a row"]


def test_the_newest_row_of_each_key(typist: Typist) -> None:
    grouped = counts(typist).groupBy("carrier").agg(F.count("*").cast("string").alias("text"))
    code = snippet("Writing", at=1).replace("counts.write", "query = counts.write")
    known = typist.types(
        code,
        (", …)", ', **login, address="carriers", routing="anycast", propertyColumns="carrier")'),
        ('"checkpointLocation", "…"', f"'checkpointLocation', {typist.at('c')!r}"),
        counts=grouped,
    )
    known["query"].processAllAvailable()
    known["query"].stop()
    assert typist.received("carriers") == ["1", "2"]


def test_a_view_and_a_table(typist: Typist) -> None:
    typist.send("delays", Message(text="early"))
    here = (("ewr:61616", typist.brokers.servers), typist.secrets())

    def run(block: str, *changes: tuple[str, str]) -> list[list[Any]]:
        statements = [one.strip() for one in changed(block, *changes).split(";") if one.strip()]
        return [typist.spark.sql(one).collect() for one in statements]

    assert [row.text for row in run(snippet("SQL", "sql"), *here)[-1]] == ["early"]
    try:
        _, selected, _ = run(snippet("SQL", "sql", 1), *here)
        assert [row.text for row in selected] == ["early"]
        read = typist.spark.read.options(**typist.login, queue="delays").table("messages")
        assert sorted(row.text for row in read.collect()) == ["early", "late"]
        streamed = typist.spark.readStream.options(**typist.login, queue="delays").table("messages")
        assert sorted(row.text for row in typist.archived(streamed, "rows")) == ["early", "late"]
    finally:
        typist.spark.sql("DROP TABLE IF EXISTS messages")


def test_json_bodies(typist: Typist) -> None:
    typist.send("orders", Message(text='{"id": 1, "shop": "a"}'), Message(text="no JSON"))
    rows = typist.spark.read.format("atalanta").options(**typist.login, queue="orders").load()
    code = re.sub(r"from pyspark.sql.avro.*\n", "", snippet("JSON, Avro and a schema registry"))
    orders = typist.types(code, rows=rows)["orders"].select("order.*").collect()
    assert [tuple(row) for row in orders] == [(1, "a", None), (None, None, "no JSON")]
    assert len(typist.received("orders")) == 2


def test_dead_letters_are_seen_and_sent_again(typist: Typist, capsys: pytest.CaptureFixture[str]) -> None:
    typist.send("failing", Message(text="poison"))
    with blocking.connect(f"tcp://{typist.brokers.servers}", user=USER, password=PASSWORD) as connection:
        with connection.transaction() as work:
            found = work.consumer("failing").receive(10)
            assert found is not None
            found.acknowledge()
            work.rollback()
    known = typist.types(snippet("Dead letters"))
    assert re.search(r"failing\|\s*failing\|undelivered\|\s*1\|", capsys.readouterr().out)
    again = snippet("Dead letters", at=1).replace("dead_letters.redrive", "query = dead_letters.redrive")
    change = ('"checkpointLocation", "…"', f"'checkpointLocation', {typist.at('c')!r}")
    to_the_end(typist.types(again, change, dead_letters=known["dead_letters"])["query"])
    assert (typist.received("failing"), typist.brokers.waiting("DLQ")) == (["poison"], 0)


def test_a_faster_start_of_ones_own_session(typist: Typist, monkeypatch: pytest.MonkeyPatch) -> None:
    import atalanta.spark

    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
    (code,) = re.findall(r"^```python\n(python = atalanta.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    change = ('"a folder for the script"', repr(typist.at("script")))
    typist.types(code, change, os=os, Path=Path, atalanta=atalanta)
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"]
    done = subprocess.run([os.environ["PYSPARK_PYTHON"], "-c", "print(7)"], capture_output=True, text=True, check=True)
    assert done.stdout == "7\n"
