"""CORE behind an HTTP request: both ends agree, in any pieces, and nothing but the one request is served."""

from __future__ import annotations

import pytest

from atalanta.wire.http_upgrade import UpgradeAnswer, UpgradeRequest, accept_of, upgrade_of
from atalanta.wire.protocol_error import ProtocolError

NONCE = bytes(range(16))
# The request of a real artemis-core-client 2.44, with a key of our own.
FROM_ARTEMIS = (
    b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: activemq-remoting\r\nconnection: upgrade\r\n"
    b"httpUpgradeEndpoint: http-acceptor\r\nSec-ActiveMQRemoting-Key: AAECAwQFBgcICQoLDA0ODw==\r\n\r\n"
)


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_both_ends_agree_in_any_pieces(step: int) -> None:
    request = UpgradeRequest("host", NONCE, "http-acceptor", "default")
    answer = UpgradeAnswer()
    sent = request.request + b"ARTEMIS"
    for at in range(0, len(sent), step):
        if not answer.done:
            answer.feed(sent[at : at + step])
            rest_at = at + step
    assert answer.rest + sent[rest_at:] == b"ARTEMIS"
    back = answer.answer + b"frames"
    for at in range(0, len(back), step):
        if not request.done:
            request.feed(back[at : at + step])
            rest_at = at + step
    assert request.rest + back[rest_at:] == b"frames"


def test_the_request_of_a_real_client_is_answered() -> None:
    answer = UpgradeAnswer()
    answer.feed(FROM_ARTEMIS)
    assert answer.done
    assert answer.answer.startswith(b"HTTP/1.1 101 ")
    assert accept_of("AAECAwQFBgcICQoLDA0ODw==").encode() in answer.answer


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nUpgrade: activemq-remoting\r\nContent-Length: 1\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: activemq-remoting\r\nConnection: Upgrade\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: activemq-remoting\r\nSec-ActiveMQRemoting-Key: "
        + b"x" * 500
        + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: activemq-remoting\r\nSec-ActiveMQRemoting-Key: k\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nno size\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 2000,
        b"GET \x00\xff\r\n\r\n",
        b"ARTEMIS\r\n\r\n",
    ],
)
def test_other_requests_end_the_connection(request_bytes: bytes) -> None:
    with pytest.raises(ProtocolError, match="HTTP"):
        UpgradeAnswer().feed(request_bytes)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 X\r\nUpgrade: activemq-remoting\r\nConnection: Upgrade\r\n"
        b"Sec-ActiveMQRemoting-Accept: nonsense\r\n\r\n",
        b"ARTEMIS nonsense\r\n\r\n",
        b"HTTP/1.1 101 X\r\n" + b"a: b\r\n" * 2000,
    ],
)
def test_an_answer_that_proves_nothing_ends_the_connection(answer: bytes) -> None:
    with pytest.raises(ProtocolError, match="HTTP"):
        UpgradeRequest("host", NONCE).feed(answer)


def test_only_connectors_that_say_so_begin_with_http() -> None:
    assert upgrade_of({}, "h", NONCE) is None
    assert upgrade_of({"httpUpgradeEnabled": "false"}, "h", NONCE) is None
    made = upgrade_of({"httpUpgradeEnabled": "true", "httpUpgradeEndpoint": "e"}, "::1", NONCE)
    assert made is not None and b"httpUpgradeEndpoint: e" in made.request
    assert b"Host: [::1]" in made.request


@pytest.mark.parametrize("endpoint", ["end\r\npoint: x", "\u00e9", "\ud800"])
def test_a_name_that_would_break_the_request_is_refused(endpoint: str) -> None:
    with pytest.raises(ProtocolError, match="cannot be written"):
        UpgradeRequest("host", NONCE, endpoint)
