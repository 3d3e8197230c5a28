"""Source and sink of a user with few rights: a start or a batch that is refused leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, StructType

from atalanta.client import Message, blocking
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import LoginRefused
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.options import read_options, write_options
from atalanta.spark.read.several_queues import QueuesStreamReader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from atalanta.spark.write.sink import AtalantaStreamWriter
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml, write_users
from tests.ports import free_port
from tests.spark.write.sink_rig import batches

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]
SETTING = """<security-setting match="{address}"><permission type="consume" roles="{consume}"/>
  <permission type="send" roles="{send}"/></security-setting>"""
SETTINGS = [
    SETTING.format(address="orders", consume="reader,all", send="all"),
    SETTING.format(address="secret", consume="all", send="all"),
    SETTING.format(address="out", consume="all", send="reader,all"),
]
ADDRESSES = "".join(
    f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>'
    for name in ("orders", "secret", "out")
)


@pytest.fixture
def login(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The options of a user that may read `orders` and send to `out`."""
    port = free_port()
    form = f"<security-settings>{''.join(SETTINGS)}</security-settings><addresses>{ADDRESSES}</addresses>"
    xml = write_broker_xml(tmp_path, port, "node", form, security=True)
    write_users(xml, {"reader": "r", "all": "a"}, {"reader": "reader", "all": "all"})
    with BrokerProcess(xml, port=port):
        yield {"servers": f"127.0.0.1:{port}", "user": "reader", "password": "r", "nodeTimeout": "5s"}


def test_a_start_that_one_queue_refuses_leaves_no_lease_at_a_queue_that_is_done(login: dict[str, str]) -> None:
    with blocking.connect(f"tcp://{login['servers']}", user="all", password="a") as connection:
        producer = connection.producer("orders", routing="anycast")
        for number in range(5):
            producer.send_soon(Message(text=str(number)))
        producer.drain()
        reader = AtalantaStreamReader(read_options(login | {"queue": "orders"}), COLUMNS, connect)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
        reader.stop()
        refused = QueuesStreamReader(read_options(login | {"queue": "orders,secret"}), COLUMNS, connect)
        with pytest.raises(LoginRefused, match="secret"):
            refused.initialOffset()
        refused.stop()
        connection.consumer("orders").close()  # it would be refused under a lease


def test_a_sink_that_may_not_decide_leaves_no_branches(login: dict[str, str]) -> None:
    options = write_options(login | {"address": "out", "routing": "anycast"})
    for _ in range(3):  # restarts
        sink = AtalantaStreamWriter(options, StructType().add("value", StringType()), connect)
        written = [sink.writer.write(iter(batches("x")), "q", 0, 0)]
        with pytest.raises(LoginRefused, match="CREATE_ADDRESS"):
            sink.commit([*written], 0)
        sink.abort([*written], 0)  # as Spark does
    gateway = connect(login["servers"], options.login.quick_credentials())
    assert gateway.prepared_branches() == []
    gateway.close()
