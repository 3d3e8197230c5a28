"""Targets of Spark: offsets of a checkpoint and options for the source; and lines of JSON that become messages."""

from __future__ import annotations

import json

from atalanta.cli.messages.json_lines import message_of
from atalanta.cli.output.outcome import Refused
from atalanta.spark.errors import OptionError, SparkSourceError
from atalanta.spark.options import READ, read_options, write_options
from atalanta.spark.read.offsets import Offset, ranges, split_all
from tests.fuzz.target import Target

JSON_WORDS = (
    b"null", b"true", b"NaN", b"-Infinity", b"1e999", b"[", b"]", b"{", b"}", b'"', b":", b",", b"\\ud800",
    b"[" * 2000,
    b"9" * 5000, b"-1", b'"from":', b'"sequence":', b'"incarnation":', b'"nodes":', b'"queue":',
)  # fmt: skip


class OffsetTarget(Target):
    """The end of a batch as JSON; the range behind a fixed beginning is cut into partitions."""

    name = "offsets"
    refusals = (SparkSourceError,)
    words = JSON_WORDS

    def seeds(self) -> list[bytes]:
        return [
            b'{"queue": "q", "nodes": {"a": {"incarnation": "i", "from": 0, "sequence": 1234, "server": "h:1",'
            b' "planned_at": 1767225600000},'
            b' "b": {"incarnation": "j", "sequence": 5, "server": "h:2"}}}',
            b'{"queue": "q", "nodes": {}}',
        ]

    def run(self, data: bytes) -> None:
        try:
            value = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:  # Spark's own reading
            raise SparkSourceError(str(error)) from error
        end = Offset.from_json(value, "q")
        again = Offset.from_json(json.loads(json.dumps(end.to_json())), "q")
        assert again.entries == end.entries
        pieces = split_all(ranges(Offset("q", {}), end), 4)
        assert all(piece.start <= piece.end for piece in pieces) and len(pieces) < 100 + 4 * len(end.entries)


class OptionTarget(Target):
    """u8 source or sink · lines `name=value`."""

    name = "spark options"
    refusals = (OptionError,)
    words = (
        *(name.encode() + b"=" for name in READ), b"\n", b"earliest", b"latest", b"true", b"120s", b"1e9", b"10MB",
        b"nan",
        b'{"a": 5}', b'{"nodes": {"a": {"sequence": 1}}}', b"[" * 2000, b"9" * 5000, b"h:1,h:2", b"\xc2\xb2", b"-2",
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b"\x00servers=h:1,h:2\nqueue=q\nstartingOffsets={\"a\": 5}\nleaseTimeout=2m\nmaxBytesPerTrigger=10MB"
            b"\nendingTimestamp={\"a\": 5}",
            b"\x00servers=h:1\naddress=a\nqueue=q\nuser=u\npassword=p\nminPartitions=4\nunreachable=fail",
            b"\x01servers=h:1\naddress=a\nrouting=anycast\npriority=5\npropertyColumns=a,b",
        ]

    def run(self, data: bytes) -> None:
        given: dict[str, str] = {}
        for line in data[1:].decode("utf-8", "replace").split("\n"):
            name, _, value = line.partition("=")
            given[name] = value
        if data[:1] and data[0] % 2:
            repr(write_options(given))
        else:
            options = read_options(given)
            repr((options.starting, options.ending, options.lease_timeout_s))


class LineTarget(Target):
    """A line of `atalanta produce --json`."""

    name = "lines"
    refusals = (Refused,)
    words = (
        *JSON_WORDS[:16], b'"properties":', b'"property_types":', b'"map":', b'"map_types":', b'"bytes"', b'"long"',
        b'"float"',
        b'"body_base64":', b'"duplicate_id":', b'"priority":', b'"type":', b'"text"', b'"byte"', b'"char"',
    )  # fmt: skip

    def seeds(self) -> list[bytes]:
        return [
            b'{"text": "a", "properties": {"n": 1, "b": "AQ==", "d": "NaN"}, "property_types": {"b": "bytes",'
            b' "d": "double"}, "priority": 5, "durable": false, "expiration": 1, "correlation_id": "c",'
            b' "duplicate_id": "d"}',
            b'{"map": {"a": 1, "b": true, "c": null}, "map_types": {"a": "byte"}, "type": "map"}',
            b'{"body_base64": "AQID", "timestamp": 5, "group_id": "g", "reply_to": "r",'
            b' "duplicate_id_base64": "AQ=="}',
        ]

    def run(self, data: bytes) -> None:
        repr(message_of(data.decode("utf-8", "replace"), "stdin:1").properties)
