"""The command `atalanta topology`: surveys, draws in the terminal, writes the picture; once or repeatedly."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Final

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from atalanta.cli.cluster.picture import drawn
from atalanta.cli.cluster.svg import svg_of
from atalanta.cli.operator_login import operator_login
from atalanta.cli.output.outcome import line_of, reported
from atalanta.cli.output.tables import FILE_COLUMNS
from atalanta.client import ClientError, run
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.flow import Flow, FlowNode, flow_of
from atalanta.survey.survey import Survey, url_of

PAUSE_S: Final = 1.0  # for --watch with --wait 0


class Surveys:
    """Repeated surveys. Nodes that were found are asked too, so that it continues when the named ones are down."""

    def __init__(
        self, nodes: list[str], target: BrokerLogin, wait: float, svg: Path | None, short: bool = True
    ) -> None:
        self.nodes = nodes
        self.short = short  # short names for people
        self.target = target
        self.wait = wait
        self.svg = svg
        self.found: list[str] = []
        self.known: dict[str, FlowNode] = {}  # the nodes that answered once, by node id

    def survey(self) -> Flow:
        """Surveys once. Raises the error of the first node if no node answers."""
        options = url_of(self.nodes[0])[1]
        more = [f"tcp://{at}?{options}" if options else at for at in self.found]
        survey = Survey(self.target, self.wait, details=False)
        cluster = run(survey.run(list(dict.fromkeys([*self.nodes, *more]))))
        if self.short:
            cluster.shorten()
        flow = flow_of(cluster)
        self.found = [node.at for node in flow.nodes if node.reached]
        self.remember(flow)
        if self.svg is not None:
            self.svg.write_text(svg_of(flow), encoding="utf-8")
        return flow

    def remember(self, flow: Flow) -> None:
        """Gives the nodes that did not answer their names of earlier surveys."""
        for node in flow.nodes:
            if node.reached:
                self.known[node.node_id] = node
            elif node.node_id in self.known:
                node.rename(self.known[node.node_id])

    def survey_again(self, before: Flow) -> tuple[Flow, str]:
        """Surveys after a pause. If no node answers, returns the last result with the reason."""
        if self.wait <= 0:
            time.sleep(PAUSE_S)
        try:
            return self.survey(), ""
        except (ClientError, OSError) as error:
            time.sleep(PAUSE_S)
            return before, line_of(error)


def run_topology(
    nodes: list[str],
    user: str | None,
    password: str | None,
    wait: float,
    watch: bool,
    svg: Path | None,
    json_output: bool,
) -> None:
    """Shows the topology. An error ends it at the first survey; --watch ignores later ones, until Ctrl-C."""
    with reported():
        surveys = Surveys(nodes, operator_login("", user, password), wait, svg, not json_output)
        flow = surveys.survey()
        if json_output:
            typer.echo(as_text(flow, not watch))
            while watch:
                flow, why = surveys.survey_again(flow)
                typer.echo(why if why else as_text(flow, False), err=bool(why))
            return
        console = Console(width=None if sys.stdout.isatty() else FILE_COLUMNS, highlight=False)
        if not watch or not console.is_terminal:
            console.print(drawn(flow, console.width))
            while watch:
                flow, why = surveys.survey_again(flow)
                console.print(Text(why) if why else drawn(flow, console.width))
            return
        with Live(drawn(flow, console.width), console=console, auto_refresh=False) as live:
            while True:
                flow, why = surveys.survey_again(flow)
                live.update(Group(drawn(flow, console.width), Text(why, "red")), refresh=True)


def as_text(flow: Flow, wide: bool) -> str:
    return json.dumps(flow.as_json(), indent=2 if wide else None, ensure_ascii=False)
