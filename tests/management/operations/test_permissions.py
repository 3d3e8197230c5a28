"""listPermittedOperations: what the caller may call, told without a refusal that anybody counts."""

from __future__ import annotations

import pytest

from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from tests.management.management_rig import Desk, Refused

NAMES = ["removeMessages", "moveMessages", "browse", "pause"]


def desk_with_roles() -> tuple[Desk, Session]:
    config = BrokerConfig()
    config.management_message_rbac = True
    desk = Desk(config)
    desk.queue("work")
    session = desk.session()
    session.identity.roles = ("operator",)
    security = desk.broker.security
    security.enabled = True
    security.add_rule("activemq.management", {"manage": ["operator"]})
    security.add_rule("mops.#", {"view": ["operator"]})
    security.add_rule("mops.queue.*.moveMessages", {"edit": ["operator"]})
    return desk, session


def test_only_what_the_roles_allow_is_listed() -> None:
    desk, session = desk_with_roles()
    refused = desk.broker.permissions.refused
    found = desk.ask("broker", "listPermittedOperations", "queue.work", NAMES, session=session)
    assert found == ["moveMessages", "browse"]
    assert desk.ask("broker", "listPermittedOperations", "queue.none", NAMES, session=session) == found
    assert desk.broker.permissions.refused == refused


def test_who_may_manage_may_do_all_where_calls_have_no_permissions() -> None:
    desk = Desk()
    assert desk.ask("broker", "listPermittedOperations", "queue.work", NAMES) == NAMES


@pytest.mark.parametrize("names", [[1], ["x"] * 201, ["x" * 100_000]])
def test_strange_names_are_refused(names: list[object]) -> None:
    desk, session = desk_with_roles()
    with pytest.raises(Refused):
        desk.ask("broker", "listPermittedOperations", "queue.work", names, session=session)
