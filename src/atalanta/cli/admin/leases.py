"""The command `atalanta queue end-lease`."""

from __future__ import annotations

import typer

from atalanta.cli.admin.queues import Credentials, asked, on_queue
from atalanta.cli.output.escape import plain
from atalanta.cli.output.outcome import NOT_THERE, Refused, confirm, reported
from atalanta.client import Management, ManagementFailed
from atalanta.survey.model.lease import FIELDS, LeaseView, view_of
from atalanta.survey.node.answers import rows_of
from atalanta.survey.texts import messages


def run_end_lease(credentials: Credentials, queue: str, yes: bool) -> None:
    """Shows the active lease, asks, and ends exactly that one. Refused (66) without a lease."""
    with reported():
        found = asked(credentials, lambda management: active_lease(management, queue))
        if found is None:
            raise Refused(f"queue {queue} has no lease: nothing was done", NOT_THERE)
        typer.echo(plain(f"queue {queue} is leased to {found.text()}"), err=True)
        if found.unacknowledged_max > 0:
            typer.echo(
                f"up to {messages(found.unacknowledged_max)} may be in its current batch: a consumer that takes them "
                "gets what the query may have written already. The same query, started again, finishes that batch",
                err=True,
            )
        confirm(f"End the lease of queue {queue}", yes)
        asked(
            credentials, lambda management: on_queue(management, queue, "endLease", (found.epoch,))
        )
        typer.echo(plain(f"ended the lease of group {found.group} on {queue}: epoch {found.epoch} of {found.owner}"))


async def active_lease(management: Management, queue: str) -> LeaseView | None:
    """Returns the active lease of a queue, None without one. Refused for a broker without leases."""
    try:
        text = await on_queue(management, queue, "listLeasesAsJSON", ())
    except ManagementFailed as error:
        if "AMQ229069" in error.reason:
            raise Refused("this broker has no leases: only Atalanta nodes have") from error
        raise
    rows = rows_of(text, f"queue.{queue}", "listLeasesAsJSON", **FIELDS)
    return next((view_of(row) for row in rows if row["active"]), None)
