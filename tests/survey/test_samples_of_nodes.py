"""Samples that follow one another, at a real node: over one connection, and after a restart of the node."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.flow import flow_of
from atalanta.survey.model.cluster import NOT_ADMITTED
from atalanta.survey.survey import Survey
from tests.broker_process import BrokerProcess
from tests.broker_xml import ORDERS, write_broker_xml
from tests.cli.cluster_nodes import cluster
from tests.ports import free_port
from tests.waiting import until

pytestmark = pytest.mark.process


def test_samples_over_one_connection_and_a_restart(tmp_path: Path) -> None:
    port = free_port()
    at = f"127.0.0.1:{port}"

    async def run(broker: BrokerProcess) -> None:
        survey = Survey(BrokerLogin("", None, None), 0, details=False)
        try:
            first = await survey.sample([at])
            (connection, _) = survey._open[at, None]
            await asyncio.to_thread(send)
            second = await survey.sample([at], first, 2.0)
            assert survey._open[at, None][0] is connection
            assert flow_of(second).nodes[0].in_per_second == 1.5
            assert second.nodes[0].clients == first.nodes[0].clients == 1
            await asyncio.to_thread(restart, broker)
            third = await survey.sample([at], second, 2.0)
            assert third.nodes[0].node_id == first.nodes[0].node_id and third.unreachable == []
        finally:
            await survey.close()

    def send() -> None:
        with connect(f"tcp://{at}") as client, client.producer("orders") as producer:
            for number in range(3):
                producer.send(Message(str(number)))

    def restart(broker: BrokerProcess) -> None:
        broker.end(signal.SIGKILL)
        broker.start()
        broker.wait_ready()

    with BrokerProcess(write_broker_xml(tmp_path, port, more=ORDERS)) as broker:
        asyncio.run(run(broker))


def test_credentials_go_only_where_somebody_has_agreed(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as (a, b):

        def survey(admitted: bool) -> tuple[int, list[str]]:
            asked = Survey(BrokerLogin("", None, None), 0, details=False, admits=lambda at: admitted)
            found = asyncio.run(asked.run([a.at]))
            return len(found.nodes), [each.why for each in found.unreachable]

        until(lambda: survey(True) == (2, []), "both are asked")
        assert survey(False) == (1, [NOT_ADMITTED])
