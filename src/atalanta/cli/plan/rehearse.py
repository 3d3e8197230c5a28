"""The command `atalanta rehearse`: parses loads and events, runs the simulator, prints the report."""

from __future__ import annotations

import os
import re
from pathlib import Path
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from atalanta.cli.plan.file_nodes import broker_file, file_node, labels_of, seats_of
from atalanta.cli.plan.pairs import FilePairs, pairs_of_files
from atalanta.config import read_broker_xml
from atalanta.kernel.queue import MULTICAST
from atalanta.sim.files.load import LoadTally, RehearsalLoad
from atalanta.sim.files.rehearsal import (
    CUT,
    FORWARD,
    HEAL,
    JOIN,
    KILL_ACTIVE,
    START_AGAIN,
    Event,
    Rehearsal,
    RehearsalReport,
)

LOAD = re.compile(r"(?P<queue>\S+)\s+(?P<source>\S+?)\s*->\s*(?P<targets>(?![\d.]+/s)[^\s]*)(\s+(?P<rate>[\d.]+)/s)?")
DEFAULT_RATE = 10.0
DEFAULT_LOADS_MAX = 5
RATE_MAX = 1_000.0


class BadOption(ValueError):
    """An option is invalid, or names a node that does not exist."""


def events_of(texts: dict[str, list[str]], files: list[Path]) -> list[Event]:
    """Parses the events; BadOption names the option. Labels are those of `labels_of`; a joining file has its own."""
    paths = [broker_file(path) for path in files]
    labels = labels_of(paths)
    events: list[Event] = []
    for what, each in texts.items():
        for text in each:
            label, _, when = text.rpartition("@")
            at_s = _seconds(what, when)
            if what == JOIN:
                path = broker_file(Path(label))
                joining = labels_of([*paths, path])[-1]
                if joining in labels:
                    raise BadOption(f"--join {text}: there is a node {joining} already")
                _check_alone(text, joining, dict(zip([*labels, joining], [*paths, path], strict=True)))
                paths.append(path)
                labels.append(joining)
                events.append(Event(at_s, what, joining, file_node(path, joining)))
            elif what == HEAL:
                events.append(Event(at_s, what, label))
            else:
                events.append(Event(at_s, what, label))
    for event in events:
        named = event.label.split("/") if event.what == CUT else [event.label]
        if event.what == CUT and len(named) != 2:
            raise BadOption(f"--cut {event.label}: two nodes are cut off from each other, as in a/b")
        for label in named:
            if event.what != HEAL and label not in labels:
                raise BadOption(f"--{event.what} {label}: there is no such node: {', '.join(labels)}")
    return events


def _check_alone(text: str, joining: str, path_of: dict[str, Path]) -> None:
    """Raises BadOption if the joining node is of a pair or a group: these are there from the beginning."""
    for each in pairs_of_files(path_of).backings():
        members = [each.serves, *each.waiting]
        if joining in members and len(members) > 1:
            others = ", ".join(member for member in members if member != joining)
            raise BadOption(f"--join {text}: it is of one {each.form} with {others}: give its file with the others")


def rehearsed_files(files: list[Path]) -> tuple[list[Path], list[str]]:
    """Returns the files of the nodes that take part, and a line for each pair that is left out.

    ConfigError if a file cannot be read.
    """
    labels = labels_of([broker_file(path) for path in files])
    pairs = _pairs(files, labels)
    out = pairs.not_rehearsed()
    found = [path for label, path in zip(labels, files, strict=True) if label not in out]
    return found, list(dict.fromkeys(out.values()))


def group_events(files: list[Path]) -> list[Event]:
    """Returns the events of a rehearsal that names none: each group loses its active member, twice."""
    labels = labels_of([broker_file(path) for path in files])
    firsts = dict.fromkeys(seat.group.labels[0] for seat in seats_of(_pairs(files, labels)).values())
    found = []
    for number, label in enumerate(firsts):
        for at_s in (20.0 + number, 70.0 + number):
            found.append(Event(at_s, KILL_ACTIVE, label))
            found.append(Event(at_s + 25, START_AGAIN, label))
    return found


def _pairs(files: list[Path], labels: list[str]) -> FilePairs:
    return pairs_of_files({label: broker_file(path) for label, path in zip(labels, files, strict=True)})


def _seconds(what: str, text: str) -> float:
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadOption(f"--{what}: '{text}' is not a time such as 30 or 30s")
    return seconds


def run(
    files: list[Path], loads: list[str], events: list[Event], seconds: float, seed: int
) -> RehearsalReport:
    """Runs the simulator once and returns the report. ConfigError if a file cannot be read."""
    paths = [broker_file(path) for path in files]
    labels = labels_of(paths)
    seats = seats_of(_pairs(files, labels))
    nodes = [file_node(path, label, seats.get(label)) for path, label in zip(paths, labels, strict=True)]
    filtered = _filtered(paths)
    made = [_load(text, labels) for text in loads] or default_loads(paths, labels, filtered)
    for load in made:
        if load.queue in filtered and load.targets:
            raise BadOption(
                f"queue {load.queue} takes only what its filter {filtered[load.queue]} matches: the messages of a"
                " rehearsal have no properties that it could match"
            )
    late = [event.at_s for event in events if event.at_s > seconds]
    if late:
        raise BadOption(f"{max(late):g} s is after the end: --seconds")
    if len(nodes) < 1 or not made:
        raise BadOption("no file configures a queue: say what is sent with --load")
    return Rehearsal(nodes, made, events, seconds, seed).run()


def _load(text: str, labels: list[str]) -> RehearsalLoad:
    found = LOAD.fullmatch(text.strip())
    if found is None:
        raise BadOption(f"--load '{text}': written as 'orders a->b,c 20/s'")
    name = found["queue"]
    address, _, queue = name.partition("::")
    targets = [each for each in found["targets"].split(",") if each]
    try:
        rate = float(found["rate"] or DEFAULT_RATE)
    except ValueError:
        raise BadOption(f"--load '{text}': '{found['rate']}' is not a rate") from None
    if not 0 < rate <= RATE_MAX:
        raise BadOption(f"--load '{text}': a rate between 0 and {RATE_MAX:g}/s")
    for label in (found["source"], *targets):
        if label not in labels:
            raise BadOption(f"--load '{text}': there is no node {label}: {', '.join(labels)}")
    return RehearsalLoad(address, found["source"], targets, rate, queue or address, bool(queue))


def _filtered(paths: list[Path]) -> dict[str, str]:
    """Returns the filters by queue."""
    return {
        queue.name: queue.filter_text
        for path in paths
        for address in read_broker_xml(path, dict(os.environ)).broker.addresses
        for queue in address.queues
        if queue.filter_text is not None
    }


def default_loads(paths: list[Path], labels: list[str], filtered: dict[str, str]) -> list[RehearsalLoad]:
    """Returns loads for all configured queues without a filter: from the first node to the last."""
    loads: dict[str, RehearsalLoad] = {}
    for path in paths:
        for address in read_broker_xml(path, dict(os.environ)).broker.addresses:
            for queue in address.queues:
                known = queue.name in loads or queue.name in filtered
                if not known and address.name not in ("DLQ", "ExpiryQueue"):
                    multicast = queue.routing_type == MULTICAST
                    loads[queue.name] = RehearsalLoad(
                        address.name, labels[0], [labels[-1]], DEFAULT_RATE, queue.name, multicast
                    )
    return list(loads.values())[:DEFAULT_LOADS_MAX]


def as_json(report: RehearsalReport, notes: list[str]) -> dict[str, object]:
    """Returns the complete report, for programs; `notes` say what was not simulated."""
    return {
        "not_simulated": notes,
        "events": [str(event) for event in report.events],
        "loads": [_tally(report, tally) for tally in report.tallies],
        "backlogs": [vars(backlog) for backlog in report.backlogs],
        "left": [{"node": node, "queue": queue, "messages": count} for (node, queue), count in report.left.items()],
        "takeovers": [vars(each) for each in report.takeovers],
        "ended": report.ended,
        "down": report.down,
        "members": report.members,
        "virtual_seconds": report.seconds,
        "digest": report.digest,
    }  # fmt: skip


def _tally(report: RehearsalReport, tally: LoadTally) -> dict[str, object]:
    load = tally.load
    waited = sorted(tally.waited_ns)
    return {
        "address": load.address,
        "queue": load.queue,
        "from": load.source,
        "to": load.targets,
        "sent": tally.sent,
        "confirmed": tally.confirmed,
        "refused": tally.refused,
        "got": tally.got,
        "waiting": min(report.waiting(tally), tally.missing()),
        "lost": report.lost(tally),
        "longest_pause_s": tally.pause_ns / 1e9,
        "repeats": tally.repeats,
        "repeats_marked": tally.marked_repeats,
        "median_ms": median(waited) / 1e6 if waited else None,
        "longest_s": waited[-1] / 1e9 if waited else None,
    }


def show(report: RehearsalReport, notes: list[str]) -> None:
    """Prints what was not simulated, events, messages per consumer, and backlogs."""
    console = Console()
    for note in notes:
        console.print(Text(note, "yellow"), soft_wrap=True)
    for event in report.events:
        console.print(Text(str(event), "dim"))
    for takeover in report.takeovers:
        after = "" if takeover.after_s is None else f", after {takeover.after_s:.1f} s without service"
        told = f"{takeover.at_s:.1f} s: {takeover.node} serves, epoch {takeover.epoch} of its group{after}"
        console.print(told, highlight=False)
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("queue", overflow="fold")
    table.add_column("from", overflow="fold")
    for name in ("sent", "confirmed", "got", "waiting", "lost", "twice", "median", "longest"):
        table.add_column(name, no_wrap=True, justify="left" if name == "got" else "right")
    for tally in report.tallies:
        facts = _tally(report, tally)
        got = "\n".join(f"{node} {count}" for node, count in sorted(tally.got.items())) or "–"
        lost, waited = report.lost(tally), tally.waited_ns
        cells = [
            tally.load.queue, tally.load.source, str(tally.sent), str(tally.confirmed), got,
            str(facts["waiting"]), "?" if report.down and tally.missing() else str(lost),
            f"{tally.repeats}" + (f" ({tally.marked_repeats} marked)" if tally.repeats else ""),
            f"{facts['median_ms']:.1f} ms" if waited else "–",
            f"{facts['longest_s']:.1f} s" if waited else "–",
        ]  # fmt: skip
        table.add_row(*(Text(cell) for cell in cells), style="bold red" if lost else "")
    console.print(table)
    for tally in report.tallies if report.takeovers else []:
        pause = f"for {tally.pause_ns / 1e9:.1f} s at most nothing was confirmed"
        console.print(Text(f"{tally.load.queue} from {tally.load.source}: {pause}"))
    for tally in report.tallies:
        for why, count in tally.refused.items():
            console.print(Text(f"refused {count} of {tally.load.queue}: {why}", "yellow"))
    _stuck(console, report)
    for label, why in report.ended.items():
        console.print(Text(f"{label} ended by itself: {why}", "bold red"))
    if report.down:
        console.print(f"down at the end, with what is on their disks: {', '.join(report.down)}", highlight=False)
    members = ", ".join(f"{label} {count}" for label, count in sorted(report.members.items()))
    console.print(f"members at the end: {members}", highlight=False)


def queue_label(report: RehearsalReport, queue: str) -> str:
    """Names a queue; a store-and-forward queue by its target node."""
    for node_id, label in report.labels.items():
        if FORWARD in queue and queue.endswith(node_id):
            return f"(for {label})"
    return queue


def _stuck(console: Console, report: RehearsalReport) -> None:
    if not report.backlogs:
        console.print("nothing got stuck")
        return
    table = Table("node", "queue", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False,
                  title="what got stuck", title_justify="left")  # fmt: skip
    for name in ("from", "to", "most messages", "consumers there", "left at the end"):
        table.add_column(name, no_wrap=True, justify="right")
    for backlog in sorted(report.backlogs, key=lambda each: (each.since_s, each.node, each.queue)):
        left = report.left.get((backlog.node, backlog.queue), 0)
        table.add_row(
            Text(backlog.node), Text(queue_label(report, backlog.queue)),
            f"{backlog.since_s:.0f} s", f"{backlog.until_s:.0f} s",
            str(backlog.most), "yes" if backlog.consumers else "no", str(left or ""),
        )  # fmt: skip
    console.print(table)
