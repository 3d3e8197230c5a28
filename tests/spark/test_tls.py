"""The source and sink speak TLS, with PKCS12 or PEM and a client certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.spark.errors import NodeUnavailable, OptionError
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import read_options, write_options
from tests.broker_process import BrokerProcess
from tests.certificates import PASSWORD, Authority
from tests.client.tls_node import ASKING, write_node
from tests.ports import free_port

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


class SecureNode:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.path = write_node(folder, Authority(), self.port, ASKING)
        self.etc = self.path.parent

    def options(self, **more: str) -> dict[str, str]:
        given = {
            "servers": f"localhost:{self.port}", "queue": "orders", "sslEnabled": "true",
            "trustStorePath": str(self.etc / "authority-trust.pem"),
            "keyStorePath": str(self.etc / "client.p12"), "keyStorePassword": PASSWORD,
        }  # fmt: skip
        return {**given, **more}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    made = SecureNode(tmp_path_factory.mktemp("tls") / "a")
    with BrokerProcess(made.path):
        yield made


def reached(options: dict[str, str]) -> Gateway:
    login = read_options(options).login
    return connect(login.servers[0], login.credentials(5.0))


@pytest.mark.parametrize("store", ["pem", "p12"])
def test_a_client_certificate_and_either_kind_of_trust_store(node: SecureNode, store: str) -> None:
    trust = {"trustStorePath": str(node.etc / f"authority-trust.{store}")}
    more = {"trustStorePassword": PASSWORD} if store == "p12" else {}
    gateway = reached(node.options(**trust, **more))
    assert gateway.position("orders").messages == 0
    gateway.close()


def test_who_is_not_believed_and_does_not_believe(node: SecureNode, tmp_path: Path) -> None:
    elsewhere = str(Authority("elsewhere").trust_pem(tmp_path))
    with pytest.raises(NodeUnavailable):
        reached(node.options(trustStorePath=elsewhere))
    without = node.options()
    del without["keyStorePath"], without["keyStorePassword"]
    with pytest.raises(NodeUnavailable):
        reached(without)


def test_options_that_say_nothing_or_the_wrong_thing() -> None:
    base = {"servers": "a:1", "queue": "q", "address": "q"}
    assert read_options(base).login.tls == ()
    secret = write_options({"servers": "a:1", "sslEnabled": "TRUE", "KEYSTOREPASSWORD": "a&b=c"})
    assert secret.login.tls == (("sslEnabled", "TRUE"), ("keyStorePassword", "a&b=c"))
    assert "a&b=c" not in repr(secret)
    with pytest.raises(OptionError, match="trustStorePath needs sslEnabled=true"):
        read_options({**base, "trustStorePath": "x"})
    with pytest.raises(OptionError, match="trustAll"):
        read_options({**base, "sslEnabled": "true", "trustAll": "perhaps"})
