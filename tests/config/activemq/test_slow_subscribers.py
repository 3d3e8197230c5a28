"""What a policy says of slow subscribers to topics, of prefetch, and of retained messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.activemq.classic_files import classic_file, findings, problems, read, settings

POLICY = "<destinationPolicy><policyMap><policyEntries>{}</policyEntries></policyMap></destinationPolicy>"
LIMIT = "<pendingMessageLimitStrategy>{}</pendingMessageLimitStrategy>"
EVICTION = "<messageEvictionStrategy>{}</messageEvictionStrategy>"


def policy(inside: str, kind: str = "topic") -> str:
    return POLICY.format(f'<policyEntry {kind}=">">{inside}</policyEntry><policyEntry topic="all"/>')


@pytest.mark.parametrize(
    ("strategy", "limit", "rate"),
    [
        ('<constantPendingMessageLimitStrategy limit="1000"/>', 1_000, -1.0),
        ('<constantPendingMessageLimitStrategy limit="0"/>', 0, -1.0),
        ("<constantPendingMessageLimitStrategy/>", -1, -1.0),
        ('<prefetchRatePendingMessageLimitStrategy multiplier="2.5"/>', -1, 2.5),
        ("<prefetchRatePendingMessageLimitStrategy/>", -1, 1.0),
    ],
)
def test_how_many_messages_wait(tmp_path: Path, strategy: str, limit: int, rate: float) -> None:
    configuration = read(classic_file(tmp_path, policy(LIMIT.format(strategy))))
    found = settings(configuration, "news")
    assert (found.pending_message_limit, found.pending_message_prefetch_rate) == (limit, rate)
    other = settings(configuration, "all")
    assert (other.pending_message_limit, other.pending_message_prefetch_rate) == (-1, -1.0)
    assert not findings(configuration)


@pytest.mark.parametrize(
    ("strategy", "eviction", "name"),
    [
        ('<oldestMessageEvictionStrategy evictExpiredMessagesHighWatermark="100"/>', 0, ""),
        ("<oldestMessageWithLowestPriorityEvictionStrategy/>", 1, ""),
        ('<uniquePropertyMessageEvictionStrategy propertyName="STOCK"/>', 2, "STOCK"),
    ],
)
def test_which_messages_go(tmp_path: Path, strategy: str, eviction: int, name: str) -> None:
    configuration = read(classic_file(tmp_path, policy(EVICTION.format(strategy))))
    found = settings(configuration, "news")
    assert (found.pending_message_eviction, found.pending_message_eviction_property or "") == (eviction, name)
    assert not [each for each in findings(configuration) if each.startswith("!")]


def test_the_policy_of_a_queue_has_none(tmp_path: Path) -> None:
    inside = LIMIT.format('<constantPendingMessageLimitStrategy limit="1000"/>')
    assert settings(read(classic_file(tmp_path, policy(inside, "queue"))), "news").pending_message_limit == -1


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    wrong = classic_file(tmp_path, policy(LIMIT.format('<prefetchRatePendingMessageLimitStrategy multiplier="much"/>')))
    assert "multiplier: 'much'" in problems(wrong)[0]
    own = classic_file(tmp_path, policy(LIMIT.format('<bean class="x.Own"/>') + EVICTION.format('<bean class="x"/>')))
    assert len([each for each in findings(read(own)) if each.startswith("!")]) == 2


# -- prefetch and retained messages -----------------------------------------------------------------
def test_use_prefetch_extension(tmp_path: Path) -> None:
    entries = '<policyEntry queue=">" usePrefetchExtension="false"/><policyEntry queue="a"/>'
    configuration = read(classic_file(tmp_path, POLICY.format(entries)))
    assert not settings(configuration, "b").openwire_prefetch_extension
    assert settings(configuration, "a").openwire_prefetch_extension
    assert not findings(configuration)


@pytest.mark.parametrize(
    ("inside", "lost"),
    [
        ("", 0),
        ("<wrapped><noSubscriptionRecoveryPolicy/></wrapped>", 0),
        ("<wrapped><fixedCountSubscriptionRecoveryPolicy/></wrapped>", 1),
    ],
)
def test_retained_messages(tmp_path: Path, inside: str, lost: int) -> None:
    retained = f"<retainedMessageSubscriptionRecoveryPolicy>{inside}</retainedMessageSubscriptionRecoveryPolicy>"
    policies = policy(f"<subscriptionRecoveryPolicy>{retained}</subscriptionRecoveryPolicy>")
    configuration = read(classic_file(tmp_path, policies))
    found = settings(configuration, "news")
    assert (found.retroactive_message_count, found.retroactive_on_request) == (1, True)
    assert found.retroactive_marked_only and not settings(configuration, "all").retroactive_marked_only
    assert len([each for each in findings(configuration) if each.startswith("!")]) == lost


def test_the_policy_of_a_queue_leaves_the_limits_of_topics_as_they_are(tmp_path: Path) -> None:
    """In Classic queues and topics have policies apart."""
    limit = LIMIT.format('<constantPendingMessageLimitStrategy limit="1000"/>')
    entries = (
        f'<policyEntry topic="&gt;" topicPrefetch="7">{limit}</policyEntry>'
        '<policyEntry queue="&gt;" queuePrefetch="9"/>'
        '<policyEntry queue="shop.&gt;" memoryLimit="1mb"/><policyEntry topic="free.&gt;" memoryLimit="1mb"/>'
    )
    configuration = read(classic_file(tmp_path, POLICY.format(entries)))
    of_queue, of_topic = settings(configuration, "shop.news"), settings(configuration, "free.news")
    assert (of_queue.pending_message_limit, of_queue.openwire_topic_prefetch) == (1_000, 7)
    assert of_queue.openwire_queue_prefetch == 1_000
    assert (of_topic.pending_message_limit, of_topic.openwire_topic_prefetch) == (-1, 32_766)
    assert of_topic.openwire_queue_prefetch == 9
