"""`atalanta run activemq.xml` as a real process."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION
from atalanta.wire.core.client.errors import ClientError
from tests.broker_process import BrokerProcess
from tests.config.activemq.classic_files import classic_file
from tests.ports import free_port

pytestmark = pytest.mark.process

INSIDE = """<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>
<compositeQueue name="IN"><forwardTo><queue physicalName="A"/>
<filteredDestination selector="x = 1" queue="B"/></forwardTo></compositeQueue>
</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>
<plugins><simpleAuthenticationPlugin><users>
<authenticationUser username="clerk" password="till" groups="users"/>
<authenticationUser username="system" password="manager" groups="admins"/></users></simpleAuthenticationPlugin>
<authorizationPlugin><map><authorizationMap><authorizationEntries>
<authorizationEntry queue="&gt;" read="admins" write="admins" admin="admins"/>
<authorizationEntry topic="news.&gt;" read="users" write="users" admin="users"/>
</authorizationEntries></authorizationMap></map></authorizationPlugin></plugins>
<networkConnectors><networkConnector name="north" uri="static:(tcp://b:61616)"/></networkConnectors>
<transportConnectors><transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/></transportConnectors>"""


def test_messages_go_where_the_file_says(tmp_path: Path) -> None:
    port = free_port()
    path = classic_file(tmp_path, INSIDE.format(port=port), 'dataDirectory="${activemq.data}"')
    url = f"tcp://127.0.0.1:{port}"
    with BrokerProcess(path) as broker:
        broker.until_logged("network_bridge_connect_failed")
        with connect(url, user="system", password="manager") as client:
            producer = client.producer("IN", routing="anycast")
            producer.send(Message(text="one", properties={"x": 1}))
            producer.send(Message(text="two", properties={"x": 2}))
            for queue, texts in (("A", ["one", "two"]), ("B", ["one"]), ("IN", [])):
                consumer = client.consumer(queue)
                for text in texts:
                    message = consumer.receive(timeout_s=20)
                    assert message is not None and message.text == text
                    message.acknowledge()
                assert consumer.receive(timeout_s=0.2) is None
        with connect(f"{url}?clientID=desk", user="clerk", password="till") as client:
            with pytest.raises(ClientError, match="does not have permission='SEND' on address IN"):
                client.producer("IN", routing="anycast").send(Message(text="no"))
            # A subscription with Classic's wildcard.
            subscription = client.subscription("news.>", "daily")
            client.producer("news.sport", routing="multicast").send(Message(text="goal"))
            message = subscription.receive(timeout_s=20)
            assert message is not None and message.text == "goal"
    assert (tmp_path / "data" / "localhost" / "KahaDB" / "journal").is_dir()


def test_a_file_that_says_that_there_are_others_starts_only_when_it_is_told_that_there_are_none(tmp_path: Path) -> None:
    """A second master beside the others would be worse than none."""
    inside = '<persistenceAdapter><replicatedLevelDB directory="data"/></persistenceAdapter>' + (
        f'<transportConnectors><transportConnector uri="tcp://127.0.0.1:{free_port()}"/></transportConnectors>'
    )
    path = classic_file(tmp_path, inside)
    refused = BrokerProcess(path)
    refused.start()
    assert refused.wait() == BAD_CONFIGURATION
    assert f"{path}:3: replicatedLevelDB: it says that there are other brokers" in refused.log()
    assert f"`atalanta run --alone {path}`" in refused.log()
    with BrokerProcess(path, "--alone") as broker:
        started = broker.log().rpartition("process_started")[2]
        assert "option_without_effect" in started and f"{path}:3: replicatedLevelDB" in started


def test_the_messages_of_earlier_starts_are_deleted_if_the_file_says_so(tmp_path: Path) -> None:
    port = free_port()
    inside = (
        '<destinations><queue physicalName="Q"/></destinations><transportConnectors>'
        f'<transportConnector uri="tcp://127.0.0.1:{port}"/></transportConnectors>'
    )
    deleting = False
    of_runs: list[list[str]] = [[], ["one"], []]
    for expected in of_runs:
        attributes = f'dataDirectory="{tmp_path}" deleteAllMessagesOnStartup="{str(deleting).lower()}"'
        with BrokerProcess(classic_file(tmp_path, inside, attributes)), connect(f"tcp://127.0.0.1:{port}") as client:
            consumer = client.consumer("Q")
            for text in expected:
                message = consumer.receive(timeout_s=20)
                assert message is not None and message.text == text
            assert consumer.receive(timeout_s=0.2) is None
            consumer.close()
            if not expected:
                client.producer("Q", routing="anycast").send(Message(text="one"))
        deleting = bool(expected)
