"""What a transportConnector says of STOMP: Classic's ways, heart-beats and limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.activemq.tables import STOMP_SIZES
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.stomp.decoder import BODY_BYTES_MAX
from tests.config.activemq.classic_files import classic_file, findings, problems, read


def connector(folder: Path, uri: str) -> Path:
    uri = uri.replace("&", "&amp;")
    return classic_file(
        folder, f'<transportConnectors><transportConnector name="c" uri="{uri}"/></transportConnectors>'
    )


def options(folder: Path, uri: str) -> StompAcceptor:
    (acceptor,) = read(connector(folder, uri)).acceptors
    return acceptor.options(StompAcceptor)


@pytest.mark.parametrize(
    "uri", ["stomp://h:1", "stomp+nio+ssl://h:1", "ws://h:1", "auto://h:1", "auto+nio://h:1?auto.protocols=default,stomp"]
)
def test_stomp_is_that_of_classic(tmp_path: Path, uri: str) -> None:
    assert options(tmp_path, uri).classic


def test_other_protocols_have_no_options_of_stomp(tmp_path: Path) -> None:
    (acceptor,) = read(connector(tmp_path, "tcp://h:1?wireFormat.maxFrameSize=2000")).acceptors
    assert not acceptor.options(StompAcceptor).classic and "stompMaxDataLength" not in acceptor.params


def test_heart_beats(tmp_path: Path) -> None:
    uri = "stomp://h:1?transport.defaultHeartBeat=5000,0&transport.hbGracePeriodMultiplier=1.5"
    found = options(tmp_path, uri)
    assert (found.default_heart_beat, found.ttl_modifier) == ("5000,0", 1.5)
    assert not [each for each in findings(read(connector(tmp_path, uri))) if "transport." in each]


def test_a_grace_period_below_one_heart_beat(tmp_path: Path) -> None:
    uri = "stomp://h:1?transport.hbGracePeriodMultiplier=0.5"
    assert options(tmp_path, uri).ttl_modifier == 1
    assert any("1 counts" in each for each in findings(read(connector(tmp_path, uri))))


def test_a_heart_beat_that_is_none(tmp_path: Path) -> None:
    assert "stompDefaultHeartBeat" in str(problems(connector(tmp_path, "stomp://h:1?transport.defaultHeartBeat=often")))


@pytest.mark.parametrize("name", STOMP_SIZES)
def test_the_largest_body(tmp_path: Path, name: str) -> None:
    assert options(tmp_path, f"stomp://h:1?{name}=1000").body_bytes_max == 1000
    assert not [each for each in findings(read(connector(tmp_path, f"stomp://h:1?{name}=1000"))) if name in each]
    path = connector(tmp_path, f"stomp://h:1?{name}=104857600")
    (found,) = [each for each in findings(read(path)) if name in each]
    assert f"at most {BODY_BYTES_MAX} bytes" in found
    assert options(tmp_path, f"stomp://h:1?{name}=104857600").body_bytes_max == BODY_BYTES_MAX
