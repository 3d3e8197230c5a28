"""The table at the end and the commands to go on from there."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.flights.airports import JFK
from examples.flights.compare import Check
from examples.flights.out_folder import shown
from examples.flights.report import Report

OK = "[green]✓[/green]"
BAD = "[bold red]✗[/bold red]"


def print_summary(console: Console, report: Report, out: Path) -> None:
    """One table: the comparison, rates, what was forwarded, recoveries."""
    table = Table(title="The flights demo", title_style="bold", title_justify="left", header_style="bold")
    for name in ("", "pandas", "seen", "lost", "duplicated", ""):
        table.add_column(name, justify="left" if name == "" else "right")
    for check in report.checks:
        if not (check.detail and check.ok):
            add_check(table, check)
    total, fine = len(report.checks), sum(check.ok for check in report.checks)
    table.add_section()
    table.add_row("comparisons that agree, all", f"{total:,}", f"{fine:,}", "", "", OK if fine == total else BAD)
    mark = OK if not report.dropped else BAD
    table.add_row("rows dropped by the watermark", "0", f"{report.dropped:,}", "", "", mark)
    table.add_section()
    for name, text in report.figures():
        table.add_row(name, "", text)
    console.print()
    console.print(table)
    for check in report.checks:
        for example in check.examples:
            console.print(f"  {escape(check.name)}: {escape(example)}", style="red", highlight=False)
    print_next(console, out)


def add_check(table: Table, check: Check) -> None:
    """One comparison."""
    table.add_row(
        escape(check.name), f"{check.expected:,}", f"{check.seen:,}", f"{check.lost:,}", f"{check.duplicated:,}",
        OK if check.ok else BAD,
    )  # fmt: skip


def print_next(console: Console, out: Path) -> None:
    """What lies where, and what to try next."""
    python, atalanta = shown(Path(sys.executable)), shown(Path(sys.executable).with_name("atalanta"))
    folder = shown(out)
    console.print()
    console.print("[bold]To look at[/bold]")
    for name in ("delays.png", "cluster.png", "cluster.svg", "report.json", "alerts.json", "archive/", "delays/"):
        console.print(f"  {folder}/{name}", highlight=False)
    console.print("[bold]To go on[/bold]")
    read = f"import pandas as pd; print(pd.read_parquet('{folder}/delays').nlargest(10, 'delay_max'))"
    for command, what in (
        (f'{python} -c "{read}"', "the worst hours"),
        (f"{atalanta} run {folder}/nodes/{JFK.code.lower()}/etc/broker.xml", "a node again, on its data"),
        ("FLIGHTS=20000 make demo", "the short form"),
        ("MASTER=spark://127.0.0.1:7077 make demo", "another Spark, on this machine"),
    ):
        console.print(f"  {command}", highlight=False, soft_wrap=True, markup=False)
        console.print(f"      {what}", style="dim", highlight=False)
