"""The command `atalanta rebalance`: shows how clients are spread over the members, and redirects the surplus."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Final

import typer

from atalanta.cli.admin.queues import Credentials
from atalanta.cli.operator_login import operator_login
from atalanta.cli.output.outcome import FAILED, Refused, reported
from atalanta.cli.output.tables import show_table
from atalanta.client import ClientError, Management, ManagementFailed, run
from atalanta.survey.node.answers import has, row_of, unexpected

BROKER: Final = "broker"
POLL_INTERVAL_S: Final = 1.0
CONNECT_S: Final = 10.0
MEMBERS_MAX: Final = 200
View = dict[str, Any]  # a node's answer to `rebalance`


def run_rebalance(credentials: Credentials, dry_run: bool, seconds: int, json_output: bool) -> None:
    """Rebalances. Exit status 1 if a surplus is left at the end."""
    with reported():
        conversation = Conversation(credentials)
        run(conversation.run(dry_run, seconds))
        if json_output:
            shown = {
                "members": conversation.views,
                "refused": conversation.refusals,
                "sent": conversation.sent,
            }
            typer.echo(json.dumps(shown, indent=2))
        else:
            show(conversation, dry_run)
        if not dry_run and conversation.unfinished():
            raise Refused("not all of the surplus could be sent away", FAILED)


class Conversation:
    """A conversation with all members. `refusals`: reasons of members that did not answer, by host:port."""

    def __init__(self, credentials: Credentials) -> None:
        self.node, self.user, self.password = credentials
        self.members: dict[str, Management] = {}
        self.refusals: dict[str, str] = {}
        self.views: list[View] = []
        self.sent = 0

    def unfinished(self) -> bool:
        """Returns whether clients remain to be redirected or are being redirected."""
        return any(view["moves"] or view["moving"] for view in self.views)

    async def run(self, dry_run: bool, seconds: int) -> None:
        """Asks all members. Unless `dry_run`, waits until the redirection is done, at most `seconds`."""
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            await self._ask(True)
            if dry_run:
                return
            before = sum(view["sent"] for view in self.views)
            await self._ask(False)
            for _ in range(seconds):
                await asyncio.sleep(POLL_INTERVAL_S)
                await self._ask(True)
                if not self.unfinished():
                    break
            self.sent = sum(view["sent"] for view in self.views) - before

    async def _connect(self, stack: AsyncExitStack) -> None:
        """Connects to the named node, and to the members it knows."""
        url = self.node if "://" in self.node else f"tcp://{self.node}"
        login = operator_login(url, self.user, self.password)
        first = await stack.enter_async_context(login.connect())
        management = first.management()
        own = await management.get(BROKER, "NodeID")  # answered after the topology
        self.members[self.node] = management
        for member in first.topology[:MEMBERS_MAX]:
            if member.node_id == own or member.host is None:
                continue
            address = f"{member.host}:{member.port}"
            try:
                async with asyncio.timeout(CONNECT_S):
                    connection = await stack.enter_async_context(login.at(address).connect())
            except (ClientError, TimeoutError) as error:
                self.refusals[address] = str(error) or "no answer"
            else:
                self.members[address] = connection.management()

    async def _ask(self, dry_run: bool) -> None:
        """Asks all members at the same time: they plan together."""
        addresses = list(self.members)
        asked = [self.members[address].call(BROKER, "rebalance", dry_run) for address in addresses]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        self.views = []
        for address, answer in zip(addresses, answers, strict=True):
            if isinstance(answer, ManagementFailed):
                self.refusals[address] = f"balances no clients ({answer.reason})"
                del self.members[address]
            elif isinstance(answer, ClientError):
                self.refusals[address] = str(answer)
                del self.members[address]
            elif isinstance(answer, BaseException):
                raise answer
            else:
                try:
                    self.views.append(view_of(answer))
                except ManagementFailed as error:
                    self.refusals[address] = f"has an unexpected form ({error})"
                    del self.members[address]
        if not self.views:
            raise Refused(next(iter(self.refusals.values()), "no member answers"), FAILED)


def view_of(answer: object) -> View:
    """Checks an answer to `rebalance`; ManagementFailed for another form."""
    view = row_of(
        answer, BROKER, "rebalance", node=str, clients=int, on=bool, members=list, moves=list,
        moving=int, stay=dict, sent=int,
    )  # fmt: skip
    counted = {"node": str, "clients": int}
    for row in [*view["members"], *view["moves"]]:
        if not isinstance(row, dict) or not has(row, counted):
            raise unexpected(row, BROKER, "rebalance")
    return view


def show(conversation: Conversation, dry_run: bool) -> None:
    """Prints the clients of each member, the planned moves, and the reasons why other clients stay."""
    addresses = {
        member["node"]: str(member.get("at"))
        for view in conversation.views
        for member in view["members"]
    }
    coming: Counter[str] = Counter()
    for view in conversation.views:
        for move in view["moves"]:
            coming[move["node"]] += move["clients"]
    rows: list[list[str]] = []
    for view in conversation.views:
        node = str(view["node"])
        going = sum(move["clients"] for move in view["moves"])
        then = view["clients"] - going + coming[node]
        remarks = [] if view["on"] else ["does not send clients away by itself"]
        if view.get("away"):
            remarks.append(f"{view['away']} prefer another zone")
        rows.append(
            [
                addresses.get(node, node),
                str(view.get("zone") or ""),
                str(view["clients"]),
                str(then),
                ", ".join(remarks),
            ]
        )
    rows += [[address, "", "", "", why] for address, why in sorted(conversation.refusals.items())]
    columns = ["member", "zone", "clients", "balanced", "remark"]
    show_table(columns, rows, ("clients", "balanced"))
    moves = [
        [
            addresses.get(view["node"], ""),
            str(move.get("at")),
            str(move["clients"]),
            str(move.get("able")),
        ]
        for view in conversation.views
        for move in view["moves"]
    ]
    if moves:
        show_table(["from", "to", "clients", "can go now"], moves, ("clients", "can go now"))
    elif dry_run:
        typer.echo("the clients are balanced")
    for view in conversation.views:
        for why, count in sorted(view["stay"].items()) if dry_run or view["moves"] else ():
            typer.echo(f"{addresses.get(view['node'], '')}: {count} stay: {why}")
    if not dry_run:
        typer.echo(f"{conversation.sent} clients were sent to other members")
