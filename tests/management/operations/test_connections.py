"""Lists of connections with clients of every protocol."""

from __future__ import annotations

import json

from tests.wire.core.server.management_rig import ask, operator_of
from tests.wire.mixed_server import MixedServer

QUERY = json.dumps({"field": "", "operation": "", "value": "", "sortField": "protocol", "sortOrder": "desc"})


def test_connections_of_every_protocol_are_listed() -> None:
    server = MixedServer()
    operator = operator_of(server)
    server.openwire_client("o")
    server.stomp_client(client_id="s")
    listed = ask(operator, "listConnectionsAsJSON")
    assert isinstance(listed, str)
    kinds = [each["implementation"] for each in json.loads(listed)]
    assert sorted(kinds) == ["OpenWireConnection", "RemotingConnectionImpl", "StompConnection"]
    listed = ask(operator, "listConnections", QUERY, 1, 100)
    assert isinstance(listed, str)
    found = {each["protocol"]: each["implementation"] for each in json.loads(listed)["data"]}
    assert found == {"CORE": kinds[0], "OPENWIRE": "OpenWireConnection", "STOMP": "StompConnection"}
