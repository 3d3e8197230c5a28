"""A query of a replicated group: source and sink go on over failovers, and every row arrives once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from atalanta.client import Message, blocking
from tests.app.group import LEASE, Group, Member
from tests.spark.relay import Relay

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
MESSAGES = 200


def fail_over(active: Member, passive: Member) -> None:
    """Kills the active member; the other one serves, and then has it as a backup again."""
    active.until_followed(passive)
    active.kill_all()
    passive.until_role("active")


@pytest.mark.parametrize("form", [",", "|"])
def test_a_query_goes_on_over_failovers_of_its_group(form: str, tmp_path: Path) -> None:
    with Group(tmp_path, own=LEASE) as group:
        group.start()
        ports = [each.port for each in group.members]
        relay = Relay(form.join(f"127.0.0.1:{port}" for port in ports))
        url = f"({','.join(f'tcp://127.0.0.1:{port}' for port in ports)})?ha=true&reconnectAttempts=-1"
        with blocking.connect(url) as connection:
            active, passive = group.members
            for at in range(2):
                producer = connection.producer("orders", routing="anycast")
                for number in range(MESSAGES):
                    producer.send_soon(Message(text=f"{at}-{number}"))
                producer.drain()
                start, end = relay.plan()
                if at == 0:  # between the plan and the tasks
                    fail_over(active, passive)
                    active.start()
                rows = relay.rows(start, end)
                written = relay.write(rows)
                if at == 1:  # between prepare and commit, and back to the first member
                    fail_over(passive, active)
                relay.commit(end, written)
            start, end = relay.plan()
            assert start == end
            arrived: Counter[str] = Counter()
            with connection.consumer("out") as consumer:
                while (message := consumer.receive(2.0)) is not None:
                    arrived[str(message.text)] += 1
                    message.acknowledge()
            assert arrived == Counter(f"{at}-{number}" for at in range(2) for number in range(MESSAGES))
            assert connection.query_queue("orders").message_count == 0
