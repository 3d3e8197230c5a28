"""A node that loses its network, as a process: nobody is served, what was sent stays, and it comes back by itself."""

from __future__ import annotations

import http.server
import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from atalanta.runtime.process import exit_codes
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.certificates import Authority
from tests.cli.cluster_nodes import cluster
from tests.ports import free_port
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process

NOWHERE = "192.0.2.1"  # never anybody's (RFC 5737)


class Network:
    """A ping command that succeeds while a file is there."""

    def __init__(self, folder: Path) -> None:
        self.there = folder / "there"
        self.command = folder / "pinger"
        self.command.write_text(f'#!/bin/sh\ntest "$2" = {NOWHERE} -a -e {self.there}\n', encoding="utf-8")
        self.command.chmod(0o755)
        self.found()

    def found(self) -> None:
        self.there.touch()

    def lose(self) -> None:
        self.there.unlink()

    @property
    def xml(self) -> str:
        return (
            f"<network-check-list>{NOWHERE}</network-check-list>"
            "<network-check-period>50</network-check-period>"
            f"<network-check-ping-command>{self.command} %d %s</network-check-ping-command>"
        )


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=20).close()
    except OSError:
        return False
    return True


def until_logged(broker: BrokerProcess, text: str, times: int) -> None:
    until(lambda: broker.log().count(text) >= times, broker.log)


def health(broker: BrokerProcess) -> tuple[int, dict[str, object]]:
    web = broker.ready_line.rpartition("web=")[2]
    try:
        with urllib.request.urlopen(f"http://{web}/health/ready", timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_node_without_network_serves_nobody_and_comes_back_with_what_it_had(tmp_path: Path) -> None:
    network = Network(tmp_path)
    port = free_port()
    broker_xml = write_broker_xml(tmp_path, port, more=network.xml)
    with BrokerProcess(broker_xml, "--web", "127.0.0.1:0") as broker:
        assert health(broker)[0] == 200
        with connect(f"tcp://127.0.0.1:{port}") as client:
            client.producer("orders", routing="anycast").send(Message(text="kept"))
        for times in (1, 2):
            with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as idle:
                until(lambda: health(broker)[0] == 200, broker.log)
                network.lose()
                assert idle.recv(1) == b"", "who is connected is sent away"
            until(lambda: not accepts(port), broker.log)
            until_logged(broker, "node_stopped status=0", times)
            status, told = health(broker)
            assert (status, told) == (503, {"ready": False, "network_lost": True})
            assert broker.log().count("network_lost why=") == times
            network.found()
            until(lambda: accepts(port), broker.log)
        with connect(f"tcp://127.0.0.1:{port}") as client:
            message = client.consumer("orders").receive(timeout_s=DEADLINE_S)
            assert message is not None and message.text == "kept"
            message.acknowledge()
        assert health(broker)[0] == 200
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED
        assert broker.log().count("network_found") == 2
        assert broker.log().count("node_ready") == 3


def test_a_node_that_starts_without_network_is_ready_when_it_is_there(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.lose()
    port = free_port()
    broker = BrokerProcess(write_broker_xml(tmp_path, port, more=network.xml))
    broker.start()
    with broker.process:
        broker.until_logged("network_lost")
        assert not accepts(port)
        network.found()
        broker.wait_ready()
        assert accepts(port)
        network.lose()
        broker.until_logged("node_stopped")
        # A port that somebody else has by now is waited for.
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
            network.found()
            broker.until_logged("network_start_failed")
        until_logged(broker, "node_ready", 2)
        network.lose()
        until_logged(broker, "node_stopped", 2)
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED, "while it waits, too"


def test_a_file_that_was_changed_while_the_network_was_away_counts_when_the_node_comes_back(tmp_path: Path) -> None:
    network = Network(tmp_path)
    port, other = free_port(), free_port()
    broker_xml = write_broker_xml(tmp_path, port, more=network.xml)
    with BrokerProcess(broker_xml) as broker:
        network.lose()
        broker.until_logged("node_stopped")
        good = broker_xml.read_text(encoding="utf-8")
        broker_xml.write_text(good.replace("</core>", "<nonsense/></core>"), encoding="utf-8")
        network.found()
        broker.until_logged("reload_refused")
        until(lambda: accepts(port), broker.log)
        network.lose()
        until_logged(broker, "node_stopped", 2)
        broker_xml.write_text(good.replace(f":{port}", f":{other}"), encoding="utf-8")
        network.found()
        until(lambda: accepts(other), broker.log)
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED


def test_a_key_store_that_is_no_good_when_the_network_comes_back_is_waited_for(tmp_path: Path) -> None:
    network = Network(tmp_path)
    port = free_port()
    broker_xml = write_broker_xml(tmp_path, port, more=network.xml)
    store = Authority().holder("a", "127.0.0.1").key_pem(broker_xml.parent)
    text = broker_xml.read_text(encoding="utf-8")
    tls = f":{port}?sslEnabled=true;keyStorePath={store.name}"
    broker_xml.write_text(text.replace(f":{port}", tls), encoding="utf-8")
    with BrokerProcess(broker_xml) as broker:
        network.lose()
        broker.until_logged("node_stopped")
        good = store.read_bytes()
        store.write_bytes(good[:100])
        network.found()
        broker.until_logged("network_start_failed")
        time.sleep(0.3)  # some periods of the check
        store.write_bytes(good)
        until_logged(broker, "node_ready", 2)
        # It was tried again and again, and told once.
        assert (broker.log().count("network_start_failed"), broker.log().count("reload_refused")) == (1, 1)
        assert broker.end(signal.SIGTERM) == exit_codes.STOPPED


def test_a_member_whose_network_comes_back_is_a_member_again(tmp_path: Path) -> None:
    network = Network(tmp_path)
    with cluster(tmp_path, 2, more_of={1: network.xml}) as (other, node):
        until_logged(node.broker, " member node=", 1)
        network.lose()
        until_logged(node.broker, "node_stopped", 1)
        network.found()
        until_logged(node.broker, "node_ready", 2)
        with connect(f"tcp://{node.at}") as taking, connect(f"tcp://{other.at}") as giving:
            consumer = taking.consumer("orders")
            producer = giving.producer("orders")

            def arrived() -> bool:  # as soon as the other one knows of the consumer
                producer.send(Message(text="for who is there"))
                message = consumer.receive(timeout_s=0.1)
                return message is not None and message.text == "for who is there"

            until(arrived, lambda: node.broker.log() + other.broker.log())


def test_a_url_is_asked_as_well(tmp_path: Path) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status[0])
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    status = [200]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        port = free_port()
        more = (
            f"<network-check-URL-list>http://127.0.0.1:{server.server_port}/</network-check-URL-list>"
            "<network-check-period>50</network-check-period>"
        )
        try:
            with BrokerProcess(write_broker_xml(tmp_path, port, more=more)) as broker:
                status[0] = 503
                broker.until_logged("HTTP Error 503")
                until(lambda: not accepts(port), broker.log)
                status[0] = 200
                until(lambda: accepts(port), broker.log)
        finally:
            server.shutdown()
            thread.join()
