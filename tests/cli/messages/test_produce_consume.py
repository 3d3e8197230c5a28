"""`atalanta produce`, `consume` and `browse` against a node of ours, one for all tests here."""

from __future__ import annotations

import base64
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import Cli, node

pytestmark = pytest.mark.process

CLOSED = """<address-settings><address-setting match="closed.#">
<auto-create-queues>false</auto-create-queues><auto-create-addresses>false</auto-create-addresses>
</address-setting><address-setting match="narrow.#"><max-size-bytes>50000</max-size-bytes>
<address-full-policy>BLOCK</address-full-policy></address-setting></address-settings>"""


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with node(tmp_path_factory.mktemp("node"), CLOSED) as found:
        yield found


def test_text_and_typed_properties(cli: Cli) -> None:
    words = ("-p", "sugar=true", "-p", "cups:int=2", "-p", "price=9.5", "-p", "code:string=007")
    cli("produce", "typed", "--text", "one coffee", *words, "--priority", "7", "--group", "g")
    assert "sent 1 message in" in cli.errors
    (message,) = cli.rows("consume", "typed", "--count", "1", "--timeout", "10")
    assert message["text"] == "one coffee" and message["priority"] == 7
    assert message["properties"] == {"sugar": True, "cups": 2, "price": 9.5, "code": "007"}
    assert message["property_types"] == {"cups": "int"} and message["group_id"] == "g"
    assert cli.rows("browse", "typed") == []


def test_lines_of_stdin(cli: Cli) -> None:
    sent = cli.rows("produce", "queue://lines", "--file", "-", "--count", "3", status=0)
    assert sent[0]["sent"] == 0
    cli("produce", "queue://lines", "--file", "-", typed="eins\nzwei\r\ndreißig")
    assert cli("consume", "lines", "--timeout", "0.2") == "eins\nzwei\ndreißig\n"


def test_half_a_character_goes_through_json_and_back(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "halves"
    path.write_text('{"text": "a\\ud800b", "properties": {"p": "\\udc00"}}\n')
    cli("produce", "halves", "--file", str(path), "--json-lines")
    assert "a\\ud800b" in cli("browse", "halves")
    written = cli("consume", "halves", "--json", "--count", "1", "--timeout", "10")
    assert '"a\\ud800b"' in written and '"\\udc00"' in written
    path.write_text(written, encoding="utf-8")
    cli("produce", "halves", "--file", str(path), "--json-lines")
    assert [row["text"] for row in cli.rows("browse", "halves")] == ["a\ud800b"]


def test_what_comes_does_not_steer_the_terminal(cli: Cli) -> None:
    body = "one\n\ttwo\u00a0\x1b[2J\r\x07"
    cli("produce", "steering", "--text", body)
    cli("produce", "steering", "--text", body, "-p", "p=\x1b[31m")
    main, other = pty.openpty()
    try:
        for words in (["--count", "1"], ["--count", "1", "--headers"]):
            command = [sys.executable, "-m", "atalanta", "consume", "steering", *words]
            done = subprocess.run(
                [*command, "--timeout", "20"],
                stdout=other,
                stderr=subprocess.PIPE,
                env={**os.environ, **cli.environment},
            )
            assert done.returncode == 0, done.stderr
        shown = os.read(main, 10_000).decode()
    finally:
        os.close(main)
        os.close(other)
    assert shown.count("one\r\n\ttwo\u00a0\\x1b[2J\\r\\x07\r\n") == 2, shown
    assert "p=\\x1b[31m" in shown and "\x1b" not in shown


def test_lines_of_a_file_are_counted_and_must_be_utf8(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\nd\n")
    cli("produce", "file", "--file", str(path), "--count", "3", "--connections", "2")
    assert sorted(cli("consume", "file", "--timeout", "0.2").split()) == ["a", "b", "c"]
    path.write_bytes(b"a\n\xff\n")
    cli("produce", "file", "--file", str(path), status=65)
    assert f"{path}:2: not UTF-8" in cli.errors


def test_what_consume_writes_produce_sends_again(cli: Cli) -> None:
    words = ("-p", "b:byte=-1", "-p", "s:short=3", "-p", "f:float=0.5", "-p", "c:char=x")
    cli("produce", "first", "--size", "300", *words, "--non-durable", "--correlation-id", "c-1")
    lines = cli("consume", "first", "--json", "--count", "1", "--timeout", "10")
    cli("produce", "second", "--file", "-", "--json-lines", typed=lines)
    (before,) = lines.splitlines()
    (after,) = cli("consume", "second", "--json", "--count", "1", "--timeout", "10").splitlines()
    kept = ("type", "durable", "body_base64", "properties", "property_types", "correlation_id")
    found = [{name: json.loads(line)[name] for name in kept} for line in (before, after)]
    assert found[0] == found[1]
    assert len(base64.b64decode(found[0]["body_base64"])) == 300
    assert found[0]["property_types"] == {"b": "byte", "s": "short", "f": "float", "c": "char"}


def test_bad_json_names_its_line(cli: Cli) -> None:
    cli("produce", "x", "--file", "-", "--json-lines", typed='{"text":"a"}\n{"text"', status=65)
    assert "stdin:2: not JSON" in cli.errors


def test_count_selector_and_what_is_left(cli: Cli) -> None:
    for cups in (1, 2, 3):
        cli("produce", "chosen", "--text", f"{cups} cups", "-p", f"cups={cups}")
    assert cli("consume", "chosen", "--selector", "cups > 2", "--count", "1") == "3 cups\n"
    assert (
        cli("consume", "chosen", "--count", "5", "--timeout", "0.2", status=1) == "1 cups\n2 cups\n"
    )


def test_not_acknowledged_goes_back(cli: Cli) -> None:
    cli("produce", "kept", "--count", "3")
    assert len(cli("consume", "kept", "--ack", "none", "--count", "3").splitlines()) == 3
    assert len(cli.rows("consume", "kept", "--ack", "individual", "--timeout", "0.2")) == 3
    assert cli("consume", "kept", "--timeout", "0.1") == ""


def test_duplicate_ids(cli: Cli) -> None:
    for _ in range(2):
        cli("produce", "once", "--count", "10", "--duplicate-id", "run7")
    assert [row["duplicate_id"] for row in cli.rows("browse", "once")][:2] == ["run7-1", "run7-2"]
    assert len(cli.rows("consume", "once", "--timeout", "0.2")) == 10


def test_a_durable_subscription_keeps_what_comes_meanwhile(cli: Cli) -> None:
    reader = ("consume", "topic://news", "--durable", "desk", "--client-id", "a.b", "--timeout", "0.1")
    cli("address", "create", "news")
    assert cli(*reader) == ""
    cli("produce", "topic://news", "--text", "rain")
    assert cli(*reader) == "rain\n"
    cli(*reader, "--selector", "a = 1", status=1)
    assert r"a\.b.desk exists" in cli.errors


def test_expiry_delay_and_raw(cli: Cli) -> None:
    cli("produce", "late", "--text", "x", "--delay", "150", "--ttl", "60000")
    assert cli("consume", "late", "--raw", "--count", "1", "--timeout", "10") == "x"


def test_the_table_of_browse_is_shortened_and_says_so(cli: Cli) -> None:
    cli("produce", "long", "--text", "x" * 200, "--count", "3", "-p", "[red]=1")
    table = cli("browse", "queue://long", "--count", "2")
    assert "x" * 200 not in table and "…" in table and "[red]=1" in table
    assert "the first 2" in cli.errors


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("browse", "nosuch"), 66, "queue nosuch does not exist"),
        (("produce", "closed.x"), 66, "address closed.x does not exist"),
        (("consume", "x", "--selector", "a >"), 1, "filter"),
        (("produce", "x://y"), 2, "x://y"),
        (("produce", "y", "-p", "n:int=q"), 2, "'q' is not of type int"),
        (("produce", "y", "--text", "a", "--size", "1"), 2, "--size and --text"),
        (("produce", "y", "--url", "tcp://h?reconnectAttempt=1"), 2, "reconnectAttempts"),
        (("produce", "y", "--file", "/no/such/file"), 66, "/no/such/file"),
        (("produce", "y", "--url", "tcp://127.0.0.1:1"), 69, "connection refused"),
        (("browse", "topic://y"), 2, "topic"),
        (("consume", "y", "--durable", "d"), 2, "--durable"),
    ],
)
def test_errors_are_one_line(cli: Cli, words: tuple[str, ...], status: int, says: str) -> None:
    cli(*words, status=status)
    assert says in cli.errors and len(cli.errors.splitlines()) == 1


def test_a_reader_that_leaves_takes_nothing_it_did_not_see(cli: Cli) -> None:
    cli("produce", "piped", "--count", "5000", "--size", "100")
    command = [sys.executable, "-m", "atalanta", "consume", "piped", "--json"]
    consume = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **cli.environment},
    )
    assert consume.stdout is not None and consume.stderr is not None
    consume.stdout.readline()
    consume.stdout.close()
    assert consume.wait(60) == 141 and b"Traceback" not in consume.stderr.read()
    consume.stderr.close()
    assert len(cli.rows("browse", "piped", "--count", "10000")) > 3_000


def test_a_body_that_should_not_be_in_memory_is_written_and_looked_at(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)) * 8_000)
    cli("produce", "large", "--body-file", str(path))
    limit = f"{cli.environment['ATALANTA_URL']}?largeMessageMaxBytes=500000"
    assert "<2048000 bytes>" in cli("browse", "large", "--url", limit)
    (message,) = cli.rows("browse", "large", "--url", limit)
    assert message["body_bytes"] == 2_048_000 and "body_base64" not in message
    words = ("consume", "large", "--count", "1", "--timeout", "10", "--url", limit)
    cli(*words, "--json", status=1)  # JSON has all of a message, or there is none
    assert "more than largeMessageMaxBytes=500000" in cli.errors
    assert cli(*words, "--ack", "none") == "<2048000 bytes>\n"
    received = subprocess.run(
        [sys.executable, "-m", "atalanta", *words, "--raw"], capture_output=True, timeout=60
    )
    assert received.stdout == path.read_bytes(), received.stderr
    assert cli.rows("browse", "large") == []


def test_a_producer_that_waits_for_room_says_so(cli: Cli) -> None:
    words = (sys.executable, "-m", "atalanta", "produce", "narrow.q", "--count", "4000", "--size", "1000")
    environment = os.environ | cli.environment
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as producing:
        assert producing.stderr is not None
        said = producing.stderr.readline()
        assert said.startswith("atalanta: the broker accepts no more messages for narrow.q: "), said
        cli("consume", "narrow.q", "--count", "4000", "--timeout", "20", "--raw")
        assert producing.wait(60) == 0
        assert "sent 4,000 messages" in producing.stderr.read()


def test_a_file_as_a_body(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)) * 2_000)
    cli("produce", "bodies", "--body-file", str(path), "--count", "2", "-p", "name=body")
    assert "sent 2 messages" in cli.errors
    for message in cli.rows("consume", "bodies", "--count", "2", "--timeout", "10"):
        assert message["type"] == "bytes" and message["properties"] == {"name": "body"}
        assert base64.b64decode(message["body_base64"]) == path.read_bytes()
    cli("produce", "bodies", "--body-file", "-", typed="from a pipe")
    assert cli("consume", "bodies", "--count", "1", "--timeout", "10", "--raw") == "from a pipe"
    cli("produce", "bodies", "--body-file", str(tmp_path / "nowhere"), status=66)
    assert "nowhere" in cli.errors
    cli("produce", "bodies", "--body-file", "-", "--count", "2", status=2)
    assert "stdin cannot be read again" in cli.errors


def test_a_typo_creates_no_queue(cli: Cli) -> None:
    cli("produce", "purchases", "--text", "x")
    cli("queue", "create", "desk", "--address", "headlines", "--multicast")
    for words in (("browse", "purchase"), ("consume", "purchase", "--timeout", "0.1")):
        cli(*words, status=66)
        assert "queue purchase does not exist; did you mean purchases?" in cli.errors
        cli(*words[:1], "queue://purchase", *words[2:], status=66)
        cli(*words[:1], "headlines", *words[2:], status=66)
        assert "did you mean headlines::desk?" in cli.errors
        assert ("--create" in cli.errors) == (words[0] == "consume")
    names = [row["name"] for row in json.loads(cli("queue", "stat", "--json"))]
    assert "purchase" not in names and "headlines" not in names
    assert cli("consume", "fresh", "--create", "--timeout", "0.1") == ""


def test_a_typo_creates_no_topic(cli: Cli) -> None:
    cli("address", "create", "weather")
    for more in ((), ("--durable", "typo")):
        words = ("consume", "topic://wether", "--timeout", "0.1", *more)
        cli(*words, status=66)
        meant = "topic wether does not exist; did you mean weather?; --create creates it"
        assert cli.errors == f"atalanta: {meant}\n"
        assert "wether" not in cli("address", "show") and "typo" not in cli("queue", "stat", "--all")
    cli(*words, "--create")
    assert "wether" in cli("address", "show")
