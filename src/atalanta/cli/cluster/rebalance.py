"""Asks every member of a cluster how its clients are spread, has the surplus sent away, and shows it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any, Final

import typer

from atalanta.cli.admin.answers import has, row_of, unexpected
from atalanta.cli.admin.queues import Credentials
from atalanta.cli.output.outcome import FAILED, Refused, reported
from atalanta.cli.output.tables import show_table
from atalanta.cli.target import Target
from atalanta.client import ClientError, Management, ManagementFailed, run

BROKER: Final = "broker"
LOOK_AGAIN_S: Final = 1.0
CONNECT_S: Final = 10.0
MEMBERS_MAX: Final = 200
View = dict[str, Any]  # what a node answers to `rebalance`


def run_rebalance(credentials: Credentials, dry_run: bool, seconds: int, json_output: bool) -> None:
    """Exit status 1 if a surplus is left at the end."""
    with reported():
        round_ = Round(credentials)
        run(round_.hold(dry_run, seconds))
        if json_output:
            shown = {"members": round_.views, "refused": round_.refusals, "sent": round_.sent}
            typer.echo(json.dumps(shown, indent=2))
        else:
            show(round_, dry_run)
        if not dry_run and round_.unfinished():
            raise Refused("not all of the surplus could be sent away", FAILED)


class Round:
    """One conversation with all members. `refusals`: why some could not be asked, by host:port."""

    def __init__(self, credentials: Credentials) -> None:
        self.node, self.user, self.password = credentials
        self.members: dict[str, Management] = {}
        self.refusals: dict[str, str] = {}
        self.views: list[View] = []
        self.sent = 0

    def unfinished(self) -> bool:
        """Is somebody still to go, or on the way?"""
        return any(view["moves"] or view["moving"] for view in self.views)

    async def hold(self, dry_run: bool, seconds: int) -> None:
        """Asks, and unless `dry_run` waits until it is done, at most `seconds`."""
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            await self._ask(True)
            if dry_run:
                return
            before = sum(view["sent"] for view in self.views)
            await self._ask(False)
            for _ in range(seconds):
                await asyncio.sleep(LOOK_AGAIN_S)
                await self._ask(True)
                if not self.unfinished():
                    break
            self.sent = sum(view["sent"] for view in self.views) - before

    async def _connect(self, stack: AsyncExitStack) -> None:
        """To the named node, and to those it knows of."""
        url = self.node if "://" in self.node else f"tcp://{self.node}"
        first = await stack.enter_async_context(Target(url, self.user, self.password).connect())
        management = first.management()
        own = await management.get(BROKER, "NodeID")  # answered behind the topology
        self.members[self.node] = management
        options = url.partition("?")[2]
        for member in first.topology[:MEMBERS_MAX]:
            if member.node_id == own or member.host is None:
                continue
            place = f"{member.host}:{member.port}"
            other = f"tcp://{place}" + (f"?{options}" if options else "")
            target = Target(other, self.user, self.password)
            try:
                async with asyncio.timeout(CONNECT_S):
                    connection = await stack.enter_async_context(target.connect())
            except (ClientError, TimeoutError) as error:
                self.refusals[place] = str(error) or "no answer"
            else:
                self.members[place] = connection.management()

    async def _ask(self, dry_run: bool) -> None:
        """All at the same time: their plans go together."""
        places = list(self.members)
        asked = [self.members[place].call(BROKER, "rebalance", dry_run) for place in places]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        self.views = []
        for place, answer in zip(places, answers, strict=True):
            if isinstance(answer, ManagementFailed):
                self.refusals[place] = f"balances no clients ({answer.reason})"
                del self.members[place]
            elif isinstance(answer, ClientError):
                self.refusals[place] = str(answer)
                del self.members[place]
            elif isinstance(answer, BaseException):
                raise answer
            else:
                try:
                    self.views.append(view_of(answer))
                except ManagementFailed as error:
                    self.refusals[place] = f"cannot be understood ({error})"
                    del self.members[place]
        if not self.views:
            raise Refused(next(iter(self.refusals.values()), "no member can be asked"), FAILED)


def view_of(answer: object) -> View:
    """ManagementFailed if that is no answer to `rebalance`."""
    view = row_of(
        answer, BROKER, "rebalance", node=str, clients=int, on=bool, members=list, moves=list,
        moving=int, stay=dict, sent=int,
    )  # fmt: skip
    counted = {"node": str, "clients": int}
    for row in [*view["members"], *view["moves"]]:
        if not isinstance(row, dict) or not has(row, counted):
            raise unexpected(row, BROKER, "rebalance")
    return view


def show(round_: Round, dry_run: bool) -> None:
    """Who has how many; who would go where; why others stay."""
    places = {
        member["node"]: str(member.get("at"))
        for view in round_.views
        for member in view["members"]
    }
    coming: Counter[str] = Counter()
    for view in round_.views:
        for move in view["moves"]:
            coming[move["node"]] += move["clients"]
    rows: list[list[str]] = []
    for view in round_.views:
        node = str(view["node"])
        going = sum(move["clients"] for move in view["moves"])
        then = view["clients"] - going + coming[node]
        remark = "" if view["on"] else "does not send clients away by itself"
        rows.append(
            [
                places.get(node, node),
                str(view.get("zone") or ""),
                str(view["clients"]),
                str(then),
                remark,
            ]
        )
    rows += [[place, "", "", "", why] for place, why in sorted(round_.refusals.items())]
    columns = ["member", "zone", "clients", "balanced", "remark"]
    show_table(columns, rows, ("clients", "balanced"))
    moves = [
        [places.get(view["node"], ""), str(move.get("at")), str(move["clients"]), str(move.get("able"))]
        for view in round_.views
        for move in view["moves"]
    ]
    if moves:
        show_table(["from", "to", "clients", "can go now"], moves, ("clients", "can go now"))
    elif dry_run:
        typer.echo("the clients are balanced")
    for view in round_.views:
        for why, count in sorted(view["stay"].items()) if dry_run or view["moves"] else ():
            typer.echo(f"{places.get(view['node'], '')}: {count} stay: {why}")
    if not dry_run:
        typer.echo(f"{round_.sent} clients were sent to other members")
