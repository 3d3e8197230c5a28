"""`atalanta bench`: its arguments. The work is in cli/bench/load.py."""

from __future__ import annotations

from typing import Annotated

import typer

from atalanta.cli.options import DEFAULT_URL, Json, Password, Quiet, User

Where = Annotated[
    str,
    typer.Argument(metavar="[DESTINATION]", help="queue://name or topic://name", show_default=True),
]
Urls = Annotated[
    list[str] | None,
    typer.Option(
        "--url", envvar="ATALANTA_URL", help="a broker; give several brokers to compare them", metavar="URL"
    ),
]
Producers = Annotated[int, typer.Option(min=0, max=1_000, help="connections that send")]
Consumers = Annotated[int, typer.Option(min=0, max=1_000, help="connections that receive")]
Count = Annotated[int | None, typer.Option(min=1, help="messages in all, instead of --duration")]
Duration = Annotated[float, typer.Option(min=0.1, help="seconds of sending, after the warm-up")]
Warmup = Annotated[float, typer.Option(min=0, help="seconds of warm-up, not measured")]
Size = Annotated[int, typer.Option(min=0, help="size of a body in bytes")]
Rate = Annotated[float, typer.Option(min=0, help="messages per second in all; 0: no limit")]
Window = Annotated[int, typer.Option(min=1, help="most unconfirmed messages of a producer")]
NonDurable = Annotated[bool, typer.Option("--non-durable", help="not durable: lost in a restart")]


def bench(
    destination: Where = "queue://atalanta.bench",
    producers: Producers = 1,
    consumers: Consumers = 1,
    count: Count = None,
    duration: Duration = 10.0,
    warmup: Warmup = 1.0,
    size: Size = 1_024,
    rate: Rate = 0.0,
    window: Window = 1_000,
    non_durable: NonDurable = False,
    urls: Urls = None,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure throughput and latency of a broker, or of several one after the other.

    Without --rate messages pile up before the slowest part, and latency says how long the pile is: give a rate that
    every broker can follow to compare latencies. If the client uses a whole core, it is what is measured.

    \b
    atalanta bench --rate 2000 --duration 20
    atalanta bench --url tcp://a:61616 --url tcp://b:61616 --non-durable
    """
    from atalanta.cli.bench.load import BenchLoad, run_bench
    from atalanta.cli.operator_login import operator_login
    from atalanta.cli.output.outcome import USAGE, Refused, reported

    with reported():
        if producers == 0 and consumers == 0:
            raise Refused("--producers and --consumers are both 0", USAGE)
        load = BenchLoad(destination, producers, consumers, size)
        load.count, load.duration_s, load.warmup_s = (
            count,
            duration,
            warmup if count is None else 0.0,
        )
        load.rate, load.window, load.durable = rate, window, not non_durable
        targets = [operator_login(url, user, password) for url in urls or [DEFAULT_URL]]
        run_bench(targets, load, json_output, quiet)
