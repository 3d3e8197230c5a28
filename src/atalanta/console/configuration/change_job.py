"""A change of the configuration as a job: at one node after the other, the first failure stops; and back again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from atalanta.client.management import BROKER
from atalanta.console.configuration.artemis_changes import (
    NOTHING_KEPT,
    artemis_preview,
    change_artemis,
)
from atalanta.console.configuration.artemis_configuration import artemis_configuration
from atalanta.console.configuration.change_answer import (
    ChangeAnswer,
    ElementChange,
    RecordedChange,
    read_answer,
    read_recorded,
)
from atalanta.console.configuration.element_kinds import ADD, BY_NAME, CHANGE, REMOVE, START, STOP
from atalanta.console.nodes.failures import NodeUnreachable, NotFound
from atalanta.console.nodes.jobs import Job, JobStep, StepRefused, StepWork
from atalanta.console.nodes.node import ClusterNode

DONE_WORDS: Final = {ADD: "added", CHANGE: "changed", REMOVE: "removed", START: "started", STOP: "stopped"}
PREVIEW: Final = "previewConfiguration"
DO: Final = "changeConfiguration"
UNDO: Final = "undoConfiguration"
CHANGES: Final = "listConfigurationChanges"


@dataclass(frozen=True)
class ChangeOrder:
    """A change at some nodes. `digests` are those of the files that the operator has seen, by the node's place."""

    change: ElementChange
    digests: Mapping[str, str]
    by: str  # the operator's address

    @property
    def title(self) -> str:
        """Returns what is done, in words."""
        return f"{self.change.action.capitalize()} {BY_NAME[self.change.kind].noun} {self.change.name}"


class ChangeStep(JobStep):
    """The change at one node. `undo` is the number that the node keeps it under."""

    def __init__(self, node: ClusterNode, subject: str) -> None:
        super().__init__(node.label, subject)
        self.at = node
        self.answer: ChangeAnswer | None = None
        self.recorded: RecordedChange | None = None
        self.has_it = False

    @property
    def returns(self) -> bool:
        """Returns whether the change can be taken back from here."""
        return self.has_it and self.recorded is not None


class ChangeJob(Job):
    """A job whose steps are changes."""

    template = "change_job.html"

    def __init__(self, title: str, word: str, back: str) -> None:
        super().__init__(title, word, back)
        self.changes: list[ChangeStep] = []

    def add_change(self, step: ChangeStep, work: StepWork) -> None:
        """Adds a step."""
        self.changes.append(step)
        self.add(step, work)

    @property
    def having(self) -> list[ChangeStep]:
        """Returns the steps whose nodes have the change."""
        return [step for step in self.changes if step.has_it]

    @property
    def returning(self) -> list[ChangeStep]:
        """Returns the steps that can be taken back."""
        return [step for step in self.changes if step.returns]


async def preview(node: ClusterNode, order: ChangeOrder) -> ChangeAnswer:
    """Returns what a change would do at a node."""
    if not node.ours:
        return artemis_preview(order.change)
    return read_answer(await node.call(BROKER, PREVIEW, request_text(node, order)), PREVIEW)


def request_text(node: ClusterNode, order: ChangeOrder) -> str:
    """Returns the JSON of a change for one node."""
    return json.dumps(
        {
            "digest": order.digests.get(node.place.at, ""),
            "changes": [order.change.described()],
            "by": order.by,
        }
    )


def change_job(order: ChangeOrder, nodes: Sequence[ClusterNode], back: str) -> ChangeJob:
    """Returns the job of a change, not yet started."""
    job = ChangeJob(order.title, DONE_WORDS[order.change.action], back)
    job.stoppable = len(nodes) > 1
    for node in nodes:
        job.add_change(ChangeStep(node, order.change.name), partial(_change, order))
    return job


def switch_job(action: str, kind: str, name: str, nodes: Sequence[ClusterNode], back: str) -> ChangeJob:
    """Returns the job that starts or stops an element."""
    job = ChangeJob(f"{action.capitalize()} {BY_NAME[kind].noun} {name}", DONE_WORDS[action], back)
    job.stoppable = len(nodes) > 1
    for node in nodes:
        job.add_change(ChangeStep(node, name), partial(_switch, action, BY_NAME[kind].resource_of(name)))
    return job


@dataclass(frozen=True)
class ChangeReturn:
    """A recorded change that is taken back. `digest` is that of the file that the operator has seen. `step` is the
    change's own, if this session has made it."""

    node: ClusterNode
    recorded: RecordedChange
    digest: str
    step: ChangeStep | None = None


def undo_job(title: str, returns: Sequence[ChangeReturn], by: str, back: str) -> ChangeJob:
    """Returns the job that takes recorded changes back."""
    job = ChangeJob(title, "taken back", back)
    job.stoppable = len(returns) > 1
    for each in returns:
        job.add_change(ChangeStep(each.node, each.recorded.id), partial(_undo, each, by))
    return job


async def recorded_changes(node: ClusterNode) -> list[RecordedChange]:
    """Returns the changes that a node keeps, the newest first; none for a node that keeps none."""
    return read_recorded(await node.call(BROKER, CHANGES)) if node.ours else []


# -- steps ------------------------------------------------------------------------------------------
async def _change(order: ChangeOrder, job: Job, step: JobStep) -> None:
    assert isinstance(step, ChangeStep)
    node, change = step.at, order.change
    try:
        if node.ours:
            step.answer = read_answer(await node.call(BROKER, DO, request_text(node, order)), DO)
        else:
            step.answer = await change_artemis(node, await _whole(node, change))
    except NodeUnreachable:
        step.note = "it may have been made all the same: see the last changes of the node"
        raise
    _check(step.answer)
    step.has_it = True
    if node.ours:
        found = [each for each in await recorded_changes(node) if not each.undone and _is_of(each, change)]
        step.recorded = found[0] if found else None
    else:
        step.note = NOTHING_KEPT


async def _whole(node: ClusterNode, change: ElementChange) -> ElementChange:
    """Returns a change of an Artemis node with all values that the element has afterwards: it keeps no others."""
    if change.action != CHANGE:
        return change
    found = await artemis_configuration(node, [change.kind], {})
    element = found.find(change.kind, change.name)
    if element is None:
        raise NotFound(f"{node.label} has no {BY_NAME[change.kind].noun} {change.name} (now)")
    return replace(change, values={**element.values, **change.values})


async def _switch(action: str, resource: str, job: Job, step: JobStep) -> None:
    assert isinstance(step, ChangeStep)
    await step.at.call(resource, action)
    step.note = "until the next start of the node" if action == STOP else ""


async def _undo(taken: ChangeReturn, by: str, job: Job, step: JobStep) -> None:
    assert isinstance(step, ChangeStep)
    request = {"id": taken.recorded.id, "digest": taken.digest, "by": by}
    step.answer = read_answer(await step.at.call(BROKER, UNDO, json.dumps(request)), UNDO)
    _check(step.answer)
    if taken.step is not None:
        taken.step.has_it = False


def _check(answer: ChangeAnswer) -> None:
    if not answer.is_possible:
        raise StepRefused(answer.refused or "; ".join(each.text for each in answer.problems))


def _is_of(recorded: RecordedChange, change: ElementChange) -> bool:
    """Returns whether a recorded change is this one."""
    first = [(each.action, each.kind, each.name) for each in recorded.changes]
    return first == [(change.action, change.kind, change.name)]
