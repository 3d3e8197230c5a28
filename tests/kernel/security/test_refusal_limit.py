"""The limit of logged refusals."""

from __future__ import annotations

from atalanta.kernel.security.remote_host import MINUTE_NS, REFUSALS_MAX, RefusalLimit


def test_one_refusal_per_host_reason_and_minute() -> None:
    limit = RefusalLimit()
    assert limit.admits(0, "10.0.0.1:1000", "TLS")
    assert not limit.admits(MINUTE_NS - 1, "10.0.0.1:2000", "TLS")
    assert limit.admits(1, "10.0.0.1:3000", "AMQP") and limit.admits(1, "10.0.0.2:1000", "TLS")
    assert limit.admits(MINUTE_NS, "10.0.0.1:1000", "TLS")
    for number in range(2 * REFUSALS_MAX):
        assert limit.admits(2, f"10.1.{number // 250}.{number % 250}:1", "TLS")
        assert len(limit._logged) <= REFUSALS_MAX
