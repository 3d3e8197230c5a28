"""The check of a pipeline file: every problem with its line and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.spark.pipeline.check import read_pipeline
from atalanta.spark.pipeline.problems import PipelineError

GOOD = '''\
name = "orders"
checkpoints = "/tmp/checkpoints"

[[source]]
name = "orders"
schema = "text string, timestamp timestamp"
watermark = { column = "timestamp", delay = "10 seconds" }
[source.options]
servers = "a:61616"
queue = "orders::archive"

[[step]]
name = "totals"
sql = """
SELECT window.start AS text
FROM orders
GROUP BY window(timestamp, '1 hour')
"""

[[query]]
name = "totals"
from = "totals"
format = "atalanta"
trigger = "5 seconds"
[query.options]
servers = "a:61616"
address = "totals"
'''

YAML = """\
name: orders
checkpoints: /tmp/checkpoints
source:
  - name: orders
    options:
      servers: a:61616
      queue: orders
query:
  - name: archive
    from: orders
    format: parquet
    path: /tmp/archive
"""


def problems(tmp_path: Path, text: str, name: str = "pipeline.toml") -> list[str]:
    """Returns the lines of the problems, without the folder."""
    path = tmp_path / name
    path.write_text(text)
    try:
        read_pipeline(path, {"SERVERS": "a:61616"})
    except PipelineError as error:
        return [line.removeprefix(f"{path}:") for line in str(error).splitlines()]
    return []


def test_a_good_file_has_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD) == []
    assert problems(tmp_path, YAML, "pipeline.yaml") == []
    assert problems(tmp_path, GOOD.replace('"a:61616"', '"${SERVERS}"')) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ('trigger = "5', 'triger = "5', 24, "unknown key 'triger' (did you mean 'trigger'?)"),
        ('delay = "10 seconds"', 'delay = "10 seconds", dely = 1', 7, "'dely' (did you mean 'delay'?)"),
        ('"5 seconds"', "5", 24, "'trigger': input should be a valid string ('available_now', or"),
        ('"5 seconds"', '"5 sec"', 24, "such as '10 seconds'"),
        ('format = "atalanta"', 'format = "parket"', 23, "(atalanta, parquet, delta, iceberg or console)"),
        ('from = "totals"', "", 20, "[[query]]: key 'from' is missing (the name of a source or step)"),
        ('from = "totals"', 'from = "total"', 22, "no source or step 'total' (did you mean 'totals'?)"),
        ('queue = "orders', 'quue = "orders', 10, "unknown option quue: did you mean queue?"),
        ('queue = "orders::archive"', "", 8, "option queue is missing"),
        ('address = "totals"', 'priority = 12', 27, "option priority: 12 is more than 9"),
        ('address = "totals"', 'passwordFile = "/none"', 27, "passwordFile '/none': no such file"),
        ('checkpoints = "/tmp/checkpoints"', "", 20, "query 'totals' has no checkpoint (add 'checkpoints'"),
        ('"a:61616"\nqueue', '"${NODES}"\nqueue', 9, "variable NODES is not set (set it: export NODES=…)"),
        ('format = "atalanta"', 'format = "parquet"', 20, "format parquet needs path"),
        ('trigger = "5', "trigger = 5 seconds #", 24, "not TOML"),
        ("name = \"orders\"\nschema", "schema", 4, "[[source]]: key 'name' is missing"),
    ],
)  # fmt: skip
def test_a_problem_has_its_line_and_a_remedy(
    tmp_path: Path, old: str, new: str, line: int, text: str
) -> None:
    assert GOOD.count(old) >= 1
    found = problems(tmp_path, GOOD.replace(old, new, 1))
    assert len(found) == 1 and found[0].startswith(f"{line}: ") and text in found[0], found
    assert found[0].endswith(")")


def test_all_problems_come_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    text = GOOD.replace("queue =", "quue =").replace('from = "totals"', 'from = "x"')
    assert [line.split(":")[0] for line in problems(tmp_path, text)] == ["10", "22"]


def test_wrong_keys_hide_no_options_files_and_names(tmp_path: Path) -> None:
    table = '[[table]]\nname = "names"\nformat = "csv"\npath = "/none/names.csv"\n'
    text = (
        GOOD.replace('trigger = "5 seconds"', 'triger = "5 secs"')
        .replace(
            'queue = "orders::archive"',
            'quue = "orders::archive"\nminPartitions = "no"\npasswordFile = "/none/file"',
        )
        .replace('address = "totals"', 'adress = "totals"\npriority = 12\nprioriti = 1')
        .replace('delay = "10 seconds"', "delay = 10")
    )
    query = '[[query]]\nname = "more"\nform = "total"\nformat = "parket"\npath = "/tmp/more"\n'
    found = problems(tmp_path, f"{text}{table}{query}")
    told = [(int(line.split(":")[0]), line.partition(": ")[2]) for line in found]
    wanted = [
        (7, "key 'delay': input should be a valid string"),
        (10, "unknown option quue: did you mean queue?"),
        (11, "option minPartitions"),
        (12, "passwordFile '/none/file': no such file"),
        (26, "unknown key 'triger' (did you mean 'trigger'?)"),
        (26, "key 'trigger': string should match pattern"),
        (29, "unknown option adress"),
        (30, "option priority: 12 is more than 9"),
        (31, "unknown option prioriti"),
        (35, "path '/none/names.csv': no such file"),
        (38, "unknown key 'form' (did you mean 'from'?)"),
        (38, "query 'more': there is no source or step 'total' (did you mean 'totals'?)"),
        (39, "key 'format': input should be 'atalanta', 'parquet'"),
    ]
    assert [line for line, _ in told] == [line for line, _ in wanted], "\n".join(found)
    for (_, text), (_, begin) in zip(told, wanted, strict=True):
        assert text.startswith(begin), found


def test_what_follows_from_a_wrong_key_is_not_told(tmp_path: Path) -> None:
    nameless = GOOD.replace('name = "orders"\nschema', "schema").replace('from = "totals"', 'from = "orders"')
    (found,) = problems(tmp_path, nameless)
    assert found.startswith("4: [[source]]: key 'name' is missing")
    unnamed = GOOD.replace('name = "totals"\nsql', 'name = "the totals"\nsql')
    (found,) = problems(tmp_path, unnamed)
    assert found.startswith("13: key 'name': string should match pattern")
    unset = GOOD.replace('"a:61616"', '"${NODES}"').replace("orders::archive", "${QUEUE}")
    assert [line.partition(" (")[0] for line in problems(tmp_path, unset)] == [
        "9: variable NODES is not set",
        "10: variable QUEUE is not set",
        "26: variable NODES is not set",
    ]
    (found,) = problems(tmp_path, GOOD.replace("[[query]]", "[[quer]]").replace("[query.", "[quer."))
    assert found.startswith("20: unknown key 'quer' (did you mean 'query'?)")


def test_two_sources_of_one_queue_and_two_queries_of_one_checkpoint(tmp_path: Path) -> None:
    source = (
        '[[source]]\nname = "more"\noptions = { servers = "b:61616", queue = "orders::archive" }\n'
    )
    found = problems(tmp_path, f"{GOOD}{source}")
    assert found[0].startswith(
        "28: sources 'orders' and 'more' read queue orders::archive as group spark"
    )
    query = '[[query]]\nname = "more"\nfrom = "orders"\nformat = "console"\ncheckpoint = "/tmp/checkpoints/totals"\n'
    found = problems(tmp_path, f"{GOOD}{query}")
    assert found[0].startswith("32: queries 'totals' and 'more' have the same checkpoint")


def test_a_name_of_two_views(tmp_path: Path) -> None:
    table = '[[table]]\nname = "Orders"\nformat = "csv"\n'
    assert problems(tmp_path, f"{GOOD}{table}")[0].startswith(
        "29: table 'Orders': a source has this name"
    )


def test_a_static_table_that_is_not_there(tmp_path: Path) -> None:
    table = '[[table]]\nname = "names"\nformat = "csv"\npath = "/none/names.csv"\n'
    assert problems(tmp_path, f"{GOOD}{table}")[0].startswith(
        "31: path '/none/names.csv': no such file"
    )


def test_a_compaction_of_a_query_that_is_not_partitioned(tmp_path: Path) -> None:
    part = (
        '[[compaction]]\nquery = "totals"\npath = "/tmp/compact"\nclosed = "day < current_date()"\n'
    )
    found = problems(tmp_path, f"{GOOD}{part}")
    assert found[0].startswith("29: query 'totals' is not Parquet with one column in partition_by")


@pytest.mark.parametrize(
    ("target", "compaction", "found"),
    [
        ('format = "delta"\npath = "/tmp/a"', "", []),
        (
            'format = "delta"\npath = "/tmp/a"',
            'path = "/tmp/b"\n',
            ["35: format delta is compacted in place (remove 'path')"],
        ),
        ('format = "iceberg"\ntable = "lake.a"', "", []),
        (
            'format = "parquet"\npath = "/tmp/a"\npartition_by = ["day"]',
            "",
            ["35: compaction of query 'archive': key 'path' is missing (add the folder of the second table)"],
        ),
    ],
)
def test_a_compaction_in_place_and_into_a_second_table(
    tmp_path: Path, target: str, compaction: str, found: list[str]
) -> None:
    query = f'[[query]]\nname = "archive"\nfrom = "orders"\n{target}\n'
    part = f'[[compaction]]\nquery = "archive"\n{compaction}closed = "day < current_date()"\n'
    assert problems(tmp_path, f"{GOOD}{query}{part}") == found


def test_problems_of_yaml_have_lines(tmp_path: Path) -> None:
    assert problems(tmp_path, YAML.replace("path:", "paht:"), "p.yml")[0].startswith(
        "12: unknown key 'paht' (did you mean 'path'?)"
    )
    twice = problems(tmp_path, YAML + "    path: /tmp/other\n", "p.yml")
    assert twice == ["13: key 'path' is there twice (line 12 has it, too)"]
    assert problems(tmp_path, "name: [", "p.yml")[0].startswith("1: not YAML")
    assert problems(tmp_path, "", "p.yml")[0].startswith("1: no keys")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no such file"):
        read_pipeline(tmp_path / "none.toml")
