"""Options: what is wrong is said with the option's name, and the nearest known one."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.client import Position
from atalanta.spark.arrow.schema import default_schema
from atalanta.spark.errors import OptionError
from atalanta.spark.options import Start, read_options, write_options
from atalanta.spark.read.members import Located
from atalanta.spark.read.starting_offsets import time_of
from atalanta.spark.source import AtalantaDataSource
from atalanta.spark.wal.wal_options import check_batch, check_stream

READ = {"servers": "a:61616,b:61617", "queue": "archive"}


def test_defaults() -> None:
    options = read_options(READ)
    assert options.login.servers == ("a:61616", "b:61617")
    assert options.queue == "archive"
    assert options.starting == Start("earliest")
    assert options.max_messages is None
    assert options.fail_on_data_loss and options.wait_unreachable
    assert options.login.node_timeout_s == 120.0


def test_names_are_found_in_any_case() -> None:
    options = read_options(READ | {"maxoffsetspertrigger": "10", "NODETIMEOUT": "2m"})
    assert (options.max_messages, options.login.node_timeout_s) == (10, 120.0)


def test_address_and_queue_become_a_qualified_name() -> None:
    assert read_options(READ | {"address": "flights"}).queue == "flights::archive"
    assert read_options({"servers": "a:1", "address": "orders"}).queue == "orders"
    assert read_options(READ | {"queue": "x::y", "address": "z"}).queue == "x::y"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffset": "latest"}, "unknown option startingoffset: did you mean startingOff"),
        ({"kafka.bootstrap.servers": "a:1"}, "its name here is servers"),
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger: 0 is less than 1"),
        ({"maxOffsetsPerTrigger": "many"}, "option maxOffsetsPerTrigger: 'many' is not a whole"),
        ({"maxBytesPerTrigger": "5x"}, "option maxBytesPerTrigger: '5x' is not a size"),
        ({"nodeTimeout": "soon"}, "option nodeTimeout: 'soon' is not a duration"),
        ({"unreachable": "skip"}, "option unreachable: 'skip' is not one of wait, fail"),
        ({"failOnDataLoss": "yes"}, "option failOnDataLoss: 'yes' must be true or false"),
        ({"servers": "a"}, "option servers: 'a' is not host:port"),
        ({"servers": ""}, "option servers is missing"),
        ({"queue": ""}, "option queue is missing"),
        ({"startingOffsets": "now"}, "option startingOffsets: 'now' is neither"),
        ({"startingOffsets": '{"a": -3}'}, "option startingOffsets: JSON must be"),
        ({"password": "x", "passwordFile": "y"}, "exclude each other"),
        ({"startingOffsets": "latest", "startingTimestamp": "1"}, "exclude each other"),
    ],
)
def test_complaints_name_the_option(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_options(READ | given)
    assert said in str(caught.value)


def test_sizes_and_durations_have_units() -> None:
    options = read_options(READ | {"maxBytesPerTrigger": "10m", "requestTimeout": "500ms"})
    assert (options.max_bytes, options.login.request_timeout_s) == (10 << 20, 0.5)


def test_offsets_in_json_name_nodes_or_a_whole_checkpoint_offset() -> None:
    assert read_options(READ | {"startingOffsets": '{"n1": 5}'}).starting.sequences == {"n1": 5}
    whole = '{"queue": "q", "nodes": {"n1": {"incarnation": "i", "sequence": 9, "server": "a"}}}'
    assert read_options(READ | {"startingOffsets": whole}).starting.sequences == {"n1": 9}


def test_the_password_stays_out_of_texts_and_may_come_from_a_file(tmp_path: Path) -> None:
    assert "geheim" not in repr(read_options(READ | {"password": "geheim"}))
    secret = tmp_path / "secret"
    secret.write_text("geheim\n")
    assert read_options(READ | {"passwordFile": str(secret)}).login.secret() == "geheim"
    with pytest.raises(OptionError, match="passwordFile"):
        read_options(READ | {"passwordFile": str(tmp_path / "none")}).login.secret()


def test_the_sink_has_options_of_its_own() -> None:
    options = write_options({"servers": "a:1", "address": "out", "propertyColumns": "x, y"})
    assert options.property_columns == ("x", "y")
    assert (options.login.block_timeout_s, options.login.credentials(1.0).block_timeout_s) == (120.0, 120.0)
    assert write_options({"servers": "a:1", "blockTimeout": "5m"}).login.credentials(1.0).block_timeout_s == 300.0
    with pytest.raises(OptionError, match="unknown option blocktimeout"):
        read_options(READ | {"blockTimeout": "5m"})
    with pytest.raises(OptionError, match="unknown option selector"):
        write_options({"servers": "a:1", "selector": "x"})


@pytest.mark.parametrize(
    "name, value",
    [
        ("servers", "a:" + "9" * 5000),
        ("servers", "a:²"),
        ("maxBytesPerTrigger", "9" * 5000),
        ("maxBytesPerTrigger", "²k"),
        ("startingOffsets", "[" * 100_000),
    ],
)
def test_what_is_no_number_and_no_json_names_its_option(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"option {name}"):
        read_options(READ | {name: value})


def test_columns_select_from_the_default_schema() -> None:
    assert default_schema(True, ["node", "sequence"]).simpleString() == "struct<node:string,sequence:bigint>"
    with pytest.raises(OptionError, match="there is no column carrier .*A property needs a type"):
        default_schema(True, ["carrier"])


def test_a_sql_table_gives_its_options_with_a_prefix_and_properties_of_its_own() -> None:
    given = {"provider": "atalanta", "owner": "root", "is_managed_location": "true"}
    given |= {"option.servers": "a:61616", "option.queue": "orders", "option.routing": "anycast"}
    assert read_options(given).queue == "orders"
    with pytest.raises(OptionError, match=r"unknown option quue"):
        read_options(given | {"option.quue": "orders"})


def test_without_any_option_the_remedy_for_a_sql_table_is_told() -> None:
    """Spark gives the reader and the writer of a table none of the table's options."""
    with pytest.raises(OptionError, match=r"queue is missing.*FROM orders WITH \(servers = "):
        read_options({})
    with pytest.raises(OptionError, match=r"servers is missing.*FROM orders WITH \(servers = "):
        write_options({})
    with pytest.raises(OptionError) as caught:
        read_options({"servers": "a:61616"})
    assert "WITH" not in str(caught.value)


def test_times_are_for_all_nodes_or_for_each() -> None:
    options = read_options(READ | {"startingTimestamp": "5", "endingTimestamp": '{"n1": 7, "b:61617": 8}'})
    places = [at("n1", "x:1"), at("n2", "b:61617"), at("n3", "c:1"), at("n4", "d:1", "b:61617")]
    assert [time_of(options.starting_times, place) for place in places] == [5, 5, 5, 5]
    assert [time_of(options.ending_times, place) for place in places] == [7, 8, None, 8]


def at(node_id: str, server: str, *backups: str) -> Located:
    return Located(server, Position(node_id, "inc-1", 1, 0, 0, 0, 0, 0, 0), backups)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingTimestamp": '{"n1": "noon"}'}, 'option startingTimestamp: JSON must be {"node id or host:port": '),
        ({"endingTimestamp": "{5}"}, "option endingTimestamp: JSON must be"),
        ({"endingTimestamp": '{"n1": true}'}, "option endingTimestamp: JSON must be"),
        ({"endingTimestamp": "noon"}, "option endingTimestamp: 'noon' is not a whole number"),
        ({"endingOffsets": "latest", "endingTimestamp": "1"}, "exclude each other"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "minOffsetsPerTrigger: 9 is more than maxOff"),
        ({"maxTriggerDelay": "1m"}, "option maxTriggerDelay needs minOffsetsPerTrigger"),
        ({"maxRecordsPerPartition": "0"}, "option maxRecordsPerPartition: 0 is less than 1"),
        ({"includeExpired": "maybe"}, "option includeExpired: 'maybe' must be true or false"),
        ({"startingOffsetsByTimestamp": "{}"}, "its name here is startingTimestamp, with {"),
        ({"subscribePattern": "orders.*"}, "its name here is queuePattern"),
        ({"kafka.ssl.truststore.location": "x"}, "its name here is trustStorePath"),
        ({"kafka.fetch.min.bytes": "1"}, "it is one of Kafka's client, and has no counterpart here"),
        ({"columns": "key,text"}, "there is no column key: its name here is group_id"),
    ],
)
def test_what_kafka_users_write_has_its_name_here(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        options = read_options(READ | given)
        default_schema(True, options.columns)
    assert said in str(caught.value)


def test_columns_of_kafka_are_named_as_here() -> None:
    with pytest.raises(OptionError, match="there is no column offset: its name here is sequence"):
        default_schema(True, ("offset",))


@pytest.mark.parametrize("option", [{"endingOffsets": "earliest"}, {"endingTimestamp": "1"}])
def test_a_stream_has_no_end(option: dict[str, str]) -> None:
    source = AtalantaDataSource(READ | option)
    with pytest.raises(OptionError, match="endingOffsets and endingTimestamp are for batch reads"):
        source.streamReader(source.schema())


@pytest.mark.parametrize("mode", [{}, {"sourceMode": "wal", "walLocation": "/wal"}])
def test_a_node_without_the_log_view_has_no_times_and_no_smaller_tasks(mode: dict[str, str]) -> None:
    for option in ({"endingTimestamp": "1"}, {"startingTimestamp": '{"n": 1}'}):
        with pytest.raises(OptionError, match="need the log view.*use a selector"):
            check_batch(read_options(READ | mode | option))
    for check in (check_batch, check_stream):
        with pytest.raises(OptionError, match="maxRecordsPerPartition needs the log view.*a task reads a file"):
            check(read_options(READ | {"walLocation": "/wal", "maxRecordsPerPartition": "1"}))
