"""The reconnection policy in virtual time."""

from __future__ import annotations

from atalanta.client.options import ClientOptions, Server, parse_url
from atalanta.client.shells.reconnect import MILLISECOND_NS, ReconnectPolicy

A, B, C, D = Server("a", 1), Server("b", 2), Server("c", 3), Server("d", 4)


class World:
    """A clock that goes as far as the policy says."""

    def __init__(self, options: ClientOptions) -> None:
        self.policy = ReconnectPolicy(options)
        self.now = 0

    def attempt(self) -> tuple[Server, int] | None:
        """Whom it dials next, and at what time in ms."""
        dial = self.policy.next_dial()
        if dial is None:
            return None
        server, at_ns = dial
        self.now = max(self.now, at_ns)
        return server, self.now // MILLISECOND_NS

    def fail(self, count: int) -> list[tuple[Server, int] | None]:
        found = []
        for _ in range(count):
            found.append(self.attempt())
            if found[-1] is None:
                break
            self.policy.failed(self.now, "refused")
        return found


def world(options: str) -> World:
    return World(parse_url(f"(tcp://a:1,tcp://b:2)?{options}"))


def test_the_first_connection_gives_up_after_its_attempts() -> None:
    one = world("initialConnectAttempts=2&retryInterval=500")
    assert one.fail(9) == [(A, 0), (B, 0), (A, 500), (B, 500), None]
    assert one.policy.given_up and "b:2: refused" in one.policy.last_error


def test_intervals_grow_up_to_the_largest() -> None:
    one = world("initialConnectAttempts=-1&retryInterval=100&retryIntervalMultiplier=2&maxRetryInterval=350")
    times = [at for _, at in (dial for dial in one.fail(12) if dial is not None)]
    assert times == [0, 0, 100, 100, 300, 300, 650, 650, 1000, 1000, 1350, 1350]


def test_without_reconnection_a_loss_is_the_end() -> None:
    one = world("")
    one.attempt()
    one.policy.connected(0, A)
    one.policy.lost(10, "cut", [])
    assert one.policy.next_dial() is None


def test_the_same_node_comes_first_then_the_others() -> None:
    one = world("reconnectAttempts=-1&retryInterval=100")
    one.policy.failed(0, "refused")
    one.policy.connected(0, B)
    one.now = 5_000 * MILLISECOND_NS
    one.policy.lost(one.now, "cut", [C])
    assert one.fail(4) == [(B, 5_000), (A, 5_000), (B, 5_100), (A, 5_100)]


def test_stay_knows_only_the_same_node() -> None:
    one = world("reconnectAttempts=-1&retryInterval=100&stay=true")
    one.policy.connected(0, B)
    one.now = 5_000 * MILLISECOND_NS
    one.policy.lost(one.now, "scale down", [C], C)
    assert one.fail(3) == [(B, 5_000), (B, 5_100), (B, 5_200)]


def test_the_broker_may_send_us_elsewhere_and_the_topology_widens_the_choice() -> None:
    one = world("reconnectAttempts=1&retryInterval=100&useTopologyForLoadBalancing=true")
    one.policy.connected(0, A)
    one.now = 5_000 * MILLISECOND_NS
    one.policy.lost(one.now, "scale down", [A, C], C)
    assert one.fail(9) == [(C, 5_000), (A, 5_000), (B, 5_000), None]


def test_a_server_that_drops_us_at_once_is_not_hammered() -> None:
    one = world("reconnectAttempts=-1&retryInterval=100&stay=true")
    for expected in (0, 100, 200, 300):
        assert one.attempt() == (A, expected)
        one.policy.connected(one.now, A)
        one.policy.lost(one.now, "cut", [])


def test_every_loss_has_all_attempts() -> None:
    one = world("reconnectAttempts=2&retryInterval=100&stay=true")
    for _ in range(3):
        one.policy.connected(one.now, A)
        one.now += 10_000 * MILLISECOND_NS
        one.policy.lost(one.now, "cut", [])
        one.fail(1)
        assert one.attempt() is not None
    one.policy.connected(one.now, A)
    one.now += 10_000 * MILLISECOND_NS
    one.policy.lost(one.now, "cut", [])
    assert one.fail(9)[-1] is None


def test_a_server_that_names_another_at_login_is_followed_but_not_for_ever() -> None:
    """Connection routers may send in a circle."""
    client = world("initialConnectAttempts=1")
    assert client.attempt() == (A, 0)
    assert client.policy.redirected(C)
    assert client.attempt() == (C, 0)
    client.policy.connected(client.now, C)
    for _ in range(10):
        assert client.policy.redirected(B)
    assert not client.policy.redirected(C)


def test_who_stays_is_not_sent_elsewhere() -> None:
    assert not world("stay=true").policy.redirected(C)


# -- pairs ----------------------------------------------------------------------------------------
def lost_half(options: str, target: Server | None = None) -> World:
    """The connection to the first server of the URL was lost at 10,000 ms; its pair's other half is D."""
    one = world(options)
    one.attempt()
    one.policy.connected(0, A)
    one.now = 10_000 * MILLISECOND_NS
    one.policy.lost(one.now, "cut", [C], target, D)
    return one


def test_the_pair_is_tried_alone_until_its_backup_had_time_to_take_over() -> None:
    one = lost_half("reconnectAttempts=1&retryInterval=2000")
    tried = one.fail(1_000)
    assert tried[:6] == [(D, 10_000), (A, 10_000), (D, 10_050), (A, 10_050), (D, 10_100), (A, 10_100)]
    assert tried[-5:] == [(A, 15_000), (B, 15_000), (D, 15_000), (A, 15_000), None]
    assert (B, 14_950) not in tried


def test_a_client_that_stays_at_its_node_follows_it_to_the_backup() -> None:
    one = lost_half("reconnectAttempts=2&retryInterval=2000&stay=true")
    tried = [each for each in one.fail(1_000) if each is not None]
    assert {server for server, _ in tried} == {D, A}
    assert tried[-2:] == [(D, 17_000), (A, 17_000)]


def test_the_pair_is_not_preferred_any_more_after_the_next_login() -> None:
    one = lost_half("reconnectAttempts=-1&retryInterval=100")
    one.policy.connected(one.now, D)
    one.now += 1_000 * MILLISECOND_NS
    one.policy.lost(one.now, "cut", [])
    assert one.fail(3) == [(D, 11_000), (A, 11_000), (B, 11_000)]


def test_a_redirect_comes_before_the_pair() -> None:
    one = lost_half("reconnectAttempts=-1", target=C)
    assert one.fail(3) == [(C, 10_000), (D, 10_000), (A, 10_000)]


def test_without_reconnection_a_pair_changes_nothing() -> None:
    assert lost_half("").policy.next_dial() is None


def test_when_the_attempts_have_failed_the_other_members_are_tried() -> None:
    one = world("reconnectAttempts=2&failoverAttempts=1&retryInterval=100")
    one.attempt()
    one.policy.connected(0, A)
    one.policy.lost(0, "cut", [A, C, D])
    dials = [dial[0] for dial in one.fail(20) if dial is not None]
    assert dials[:4] == [A, B, A, B]
    assert set(dials[4:6]) == {C, D} and dials[6:] == [A, B], "one pass over the others, and then over the known"
    assert one.policy.given_up


def test_failover_attempts_alone_reconnect_as_well() -> None:
    one = world("failoverAttempts=-1&retryInterval=100")
    one.attempt()
    one.policy.connected(0, A)
    one.policy.lost(0, "cut", [A, C])
    assert [dial[0] for dial in one.fail(6) if dial is not None] == [A, B, C, A, B, C]


def test_who_stays_does_not_fail_over() -> None:
    one = world("reconnectAttempts=1&failoverAttempts=-1&stay=true")
    one.attempt()
    one.policy.connected(0, A)
    one.policy.lost(0, "cut", [A, C])
    assert [dial and dial[0] for dial in one.fail(9)] == [A, None]


def test_by_default_a_loss_leads_to_no_member_that_the_url_does_not_name() -> None:
    for options, others in (("", [A, B, A]), ("useTopologyForLoadBalancing=true", [A, B, C])):
        one = world(f"reconnectAttempts=-1&{options}")
        one.attempt()
        one.policy.connected(0, A)
        one.policy.lost(0, "cut", [A, C])
        assert [dial[0] for dial in one.fail(3) if dial is not None] == others


def test_servers_of_priority_are_tried_first() -> None:
    url = "failover:(tcp://a:1,tcp://b:2,tcp://c:3)?priorityBackup=true&priorityURIs=tcp://c:3,tcp://b:2"
    for _ in range(9):
        one = World(parse_url(url))
        assert {dial[0] for dial in one.fail(2) if dial is not None} == {B, C}
        assert one.fail(1) == [(A, 0)]
        one.policy.connected(0, A)
        one.policy.lost(0, "cut", [])
        dials = [dial[0] for dial in one.fail(3) if dial is not None]
        assert dials[0] == A and set(dials[1:]) == {B, C}
