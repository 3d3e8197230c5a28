"""A qpid-jms client sends at a real node in AMQP; CORE clients at the other node of the pair receive."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.client.blocking import connect
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess, free_port

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SMALL, LARGE = 20, 400_000
