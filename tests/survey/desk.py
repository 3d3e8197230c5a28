"""A survey of a broker on the bench: management by calls instead of messages."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any, cast

from atalanta.client import Connection, Management, ManagementFailed
from atalanta.kernel.event_record import EventRecord
from atalanta.runtime.process.logs import level_of
from atalanta.survey.findings.cluster_finding import ClusterFinding
from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.node.inquiry import NodeInquiry
from tests.management.management_rig import Desk, Refused


class DeskManagement:
    """The client's management conversation with the broker of a desk."""

    reply_queue = "replies of the desk"

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def get(self, resource: str, attribute: str) -> object:
        try:
            return self.desk.get(resource, attribute)
        except Refused as refusal:
            raise ManagementFailed(resource, attribute, str(refusal)) from None

    async def call(self, resource: str, operation: str, *given: object) -> object:
        try:
            return self.desk.ask(resource, operation, *given)
        except Refused as refusal:
            raise ManagementFailed(resource, operation, str(refusal)) from None

    async def rows(self, operation: str, *filtered: object, **more: object) -> list[dict[str, object]]:
        field, comparison, value = filtered or ("", "", "")
        asked = json.dumps({"field": field, "operation": comparison, "value": value})
        text = await self.call("broker", operation, asked, 1, 1_000)
        return cast(list[dict[str, object]], json.loads(str(text))["data"])


class NoTopology:
    """A connection that has heard of no member."""

    topology: list[Any] = []


def inquiry_of(desk: Desk, details: bool = True) -> NodeInquiry:
    """Returns the inquiry of the desk's node."""
    node = NodeView("host:1", desk.broker.node_id)
    return NodeInquiry(node, cast(Connection, NoTopology()), cast(Management, DeskManagement(desk)), details, details)


def surveyed(desk: Desk, seconds: float = 0.0) -> LiveCluster:
    """Returns the cluster of the desk's node alone, after one sample, or two. What it has traced is its log."""
    desk.trace.kept = EventRecord()
    for name, fields in desk.trace.events:
        if level_of(name) > logging.DEBUG:
            desk.trace.kept.note(desk.now // 1_000_000, level_of(name), name, fields)
    inquiry = inquiry_of(desk)
    asyncio.run(inquiry.fill())
    if seconds:
        asyncio.run(inquiry.sample_again())
    return LiveCluster([inquiry.node], seconds=seconds)


def findings(desk: Desk, seconds: float = 0.0) -> list[ClusterFinding]:
    """Returns the findings about the desk's node, asked by a user of any name."""
    return diagnosed(surveyed(desk, seconds), "u", "p")
