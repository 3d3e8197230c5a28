"""Address settings: the limits of an address and the behaviour of its queues.

Names and defaults follow Artemis' AddressSettings. kernel/settings/repository.py decides which settings an address
has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import ignored, option, unbuilt
from atalanta.kernel.unseen_options import CACHES, UNREAD, UNSERVED

_CREATED: Final = "clients create them all the same: write auto-create-queues and auto-create-addresses"
_DELETED: Final = "unused ones are deleted all the same: write auto-delete-queues and auto-delete-addresses"

INT_MAX: Final = (1 << 31) - 1
ROUTING_TYPES: Final = {"MULTICAST": 0, "ANYCAST": 1}
FULL_POLICIES: Final = {"PAGE": "PAGE", "BLOCK": "BLOCK", "DROP": "DROP", "FAIL": "FAIL"}
EVICTIONS: Final = {"OLDEST": 0, "LOWEST_PRIORITY": 1, "SAME_PROPERTY": 2}
DELETION_POLICIES: Final = {"OFF": "OFF", "FORCE": "FORCE"}
RATES: Final = {
    "MESSAGES_PER_SECOND": "MESSAGES_PER_SECOND",
    "MESSAGES_PER_MINUTE": "MESSAGES_PER_MINUTE",
    "MESSAGES_PER_HOUR": "MESSAGES_PER_HOUR",
    "MESSAGES_PER_DAY": "MESSAGES_PER_DAY",
}


@dataclass
class AddressSettings:
    """The resolved settings of one address. Every attribute has a value; None only if absence has a meaning."""

    dead_letter_address: str | None = option(
        None, "dead-letter-address", "the address of messages that were delivered too often"
    )
    auto_create_dead_letter_resources: bool = option(
        False,
        "auto-create-dead-letter-resources",
        "make the dead-letter address and a queue",
    )
    dead_letter_queue_prefix: str = option("DLQ.", "dead-letter-queue-prefix", "name of that queue")
    dead_letter_queue_suffix: str = option("", "dead-letter-queue-suffix", "name of that queue")
    expiry_address: str | None = option(None, "expiry-address", "where expired messages go")
    auto_create_expiry_resources: bool = option(
        False,
        "auto-create-expiry-resources",
        "make the expiry address and a queue",
    )
    expiry_queue_prefix: str = option("EXP.", "expiry-queue-prefix", "name of that queue")
    expiry_queue_suffix: str = option("", "expiry-queue-suffix", "name of that queue")
    dead_letter_non_durable: bool = option(
        True, "dead-letter-non-durable", "messages that are not durable go to both addresses, too, and are not dropped"
    )
    dead_letter_expiry_ms: int = option(
        -1, "dead-letter-expiry", "messages in both addresses expire after this time, -1 never", unit="ms", minimum=-1
    )
    expiry_delay_ms: int = option(
        -1, "expiry-delay", "expiry of messages that have none", unit="ms"
    )
    min_expiry_delay_ms: int = option(-1, "min-expiry-delay", "shortest expiry allowed", unit="ms")
    max_expiry_delay_ms: int = option(-1, "max-expiry-delay", "longest expiry allowed", unit="ms")
    no_expiry: bool = option(False, "no-expiry", "messages never expire, whatever they say")
    redelivery_delay_ms: int = option(
        0,
        "redelivery-delay",
        "pause before a message is delivered again",
        unit="ms",
    )
    redelivery_delay_multiplier: float = option(
        1.0, "redelivery-delay-multiplier", "growth of that pause"
    )
    redelivery_collision_avoidance_factor: float = option(
        0.0,
        "redelivery-collision-avoidance-factor",
        "random share of that pause",
        minimum=0,
        maximum=1,
    )
    max_redelivery_delay_ms: int | None = option(
        None,
        "max-redelivery-delay",
        "longest pause (ten times redelivery-delay if absent)",
        unit="ms",
    )
    max_delivery_attempts: int = option(
        10,
        "max-delivery-attempts",
        "deliveries before the dead-letter address, -1 for ever",
        unit="count",
        minimum=-1,
        maximum=INT_MAX,
    )
    max_size_bytes: int = option(
        -1,
        "max-size-bytes",
        "memory of an address before it is full (a message counts with 400 bytes for itself)",
        unit="bytes",
    )
    max_size_messages: int = option(
        -1,
        "max-size-messages",
        "messages of an address before it is full",
        unit="count",
    )
    max_size_bytes_reject_threshold: int = ignored(
        -1,
        "max-size-bytes-reject-threshold",
        UNSERVED,  # senders of other protocols wait for credit, in Artemis as well
        unit="bytes",
    )
    address_full_policy: str = option(
        "PAGE",
        "address-full-policy",
        "what a full address does with senders",
        choices=FULL_POLICIES,
    )
    blocked_send_timeout_ms: int = option(
        -1,
        "blocked-send-timeout",
        "how long a send waits for room before it is refused, -1 for ever",
        unit="ms",
        minimum=-1,
        maximum=INT_MAX,
    )
    page_size_bytes: int = option(
        10 * 1024 * 1024,
        "page-size-bytes",
        "size of a page file",
        unit="bytes",
        minimum=1,
    )
    page_max_cache_size: int = ignored(
        5, "page-max-cache-size", CACHES, unit="count"
    )
    max_read_page_messages: int = option(
        -1,
        "max-read-page-messages",
        "messages read from pages and not acknowledged yet, 0 or -1 any",
        unit="count",
    )
    max_read_page_bytes: int | None = option(
        None,
        "max-read-page-bytes",
        "bytes read from pages and not acknowledged yet (two pages if absent, at least 20M), 0 or -1 any",
        unit="bytes",
    )
    prefetch_page_messages: int | None = option(
        None,
        "prefetch-page-messages",
        "messages read from pages before they can be delivered (max-read-page-messages if absent)",
        unit="count",
    )
    prefetch_page_bytes: int | None = option(
        None,
        "prefetch-page-bytes",
        "bytes read from pages before they can be delivered (max-read-page-bytes if absent)",
        unit="bytes",
    )
    page_limit_bytes: int = option(-1, "page-limit-bytes", "most bytes in pages", unit="bytes")
    page_limit_messages: int = option(
        -1, "page-limit-messages", "most messages in pages", unit="count"
    )
    page_full_policy: str | None = option(
        None,
        "page-full-policy",
        "what happens at the page limits",
        choices={"DROP": "DROP", "FAIL": "FAIL"},
    )
    disk_full_policy: str | None = option(
        None,
        "disk-full-policy",
        "what happens when the disk is full",
        choices={"BLOCK": "BLOCK", "DROP": "DROP", "FAIL": "FAIL"},
    )
    message_counter_history_day_limit: int = ignored(
        0,
        "message-counter-history-day-limit",
        UNREAD,  # see message-counter-max-day-history
        unit="count",
    )
    redistribution_delay_ms: int = option(
        -1,
        "redistribution-delay",
        "pause before messages without a local consumer go to a node that has one, -1 never",
        unit="ms",
    )
    send_to_dla_on_no_route: bool = option(
        False,
        "send-to-dla-on-no-route",
        "messages no queue takes go to the dead-letter address",
    )
    slow_consumer_threshold: int = option(
        -1, "slow-consumer-threshold", "rate below which a consumer is slow"
    )
    slow_consumer_threshold_measurement_unit: str = option(
        "MESSAGES_PER_SECOND",
        "slow-consumer-threshold-measurement-unit",
        "unit of that rate",
        choices=RATES,
    )
    slow_consumer_policy: str = option(
        "NOTIFY",
        "slow-consumer-policy",
        "what happens to a slow consumer",
        choices={"NOTIFY": "NOTIFY", "KILL": "KILL"},
    )
    slow_consumer_check_period_s: int = option(
        5,
        "slow-consumer-check-period",
        "period of the check of the rate",
        unit="s",
        minimum=1,
    )
    auto_create_queues: bool = option(
        True, "auto-create-queues", "clients may name a queue that does not exist"
    )
    auto_delete_queues: bool = option(
        True, "auto-delete-queues", "auto-created queues go when unused and empty"
    )
    auto_delete_created_queues: bool = option(
        False, "auto-delete-created-queues", "the same for queues a client created"
    )
    auto_delete_queues_delay_ms: int = option(
        0,
        "auto-delete-queues-delay",
        "time a queue must be unused first",
        unit="ms",
        minimum=0,
    )
    auto_delete_queues_message_count: int = option(
        0,
        "auto-delete-queues-message-count",
        "messages it may still hold, -1 any",
        unit="count",
        minimum=-1,
    )
    auto_delete_queues_skip_usage_check: bool = option(
        False,
        "auto-delete-queues-skip-usage-check",
        "delete queues that were never used, too",
    )
    auto_create_addresses: bool = option(
        True, "auto-create-addresses", "clients may name an address that does not exist"
    )
    auto_delete_addresses: bool = option(
        True, "auto-delete-addresses", "auto-created addresses go when unused"
    )
    auto_delete_addresses_delay_ms: int = option(
        0,
        "auto-delete-addresses-delay",
        "time an address must be unused first",
        unit="ms",
        minimum=0,
    )
    auto_delete_addresses_skip_usage_check: bool = option(
        False,
        "auto-delete-addresses-skip-usage-check",
        "delete addresses that were never used, too",
    )
    config_delete_queues: str = option(
        "OFF",
        "config-delete-queues",
        "delete queues no longer in the file, at a start or reload"
        " (those that came from it)",
        choices=DELETION_POLICIES,
    )
    config_delete_addresses: str = option(
        "OFF",
        "config-delete-addresses",
        "delete addresses no longer in the file, at a start or reload"
        " with their queues, unless they came by themselves",
        choices=DELETION_POLICIES,
    )
    config_delete_diverts: str = ignored(
        "OFF",
        "config-delete-diverts",
        "diverts of the file always go when they leave it, as in Artemis",
        choices=DELETION_POLICIES,
    )
    default_address_routing_type: int = option(
        0,
        "default-address-routing-type",
        "of auto-created addresses",
        choices=ROUTING_TYPES,
    )
    default_queue_routing_type: int = option(
        0,
        "default-queue-routing-type",
        "of auto-created queues",
        choices=ROUTING_TYPES,
    )
    default_max_consumers: int = option(
        -1, "default-max-consumers", "consumers a queue may have", unit="count", minimum=-1, maximum=INT_MAX
    )
    default_purge_on_no_consumers: bool = option(
        False, "default-purge-on-no-consumers", "drop messages when the last consumer leaves"
    )
    default_consumers_before_dispatch: int = option(
        0,
        "default-consumers-before-dispatch",
        "consumers a queue waits for",
        unit="count",
        minimum=-1,
        maximum=INT_MAX,
    )
    default_delay_before_dispatch_ms: int = option(
        -1, "default-delay-before-dispatch", "longest wait for them", unit="ms"
    )
    default_consumer_window_size: int = option(
        1024 * 1024,
        "default-consumer-window-size",
        "credit of consumers that name none",
        unit="bytes",
        minimum=-1,
        maximum=INT_MAX,
    )
    default_exclusive_queue: bool = option(
        False, "default-exclusive-queue", "one consumer gets all messages"
    )
    default_last_value_queue: bool = option(
        False,
        "default-last-value-queue",
        "a queue keeps the last message of a key",
        also=("last-value-queue",),
    )
    default_last_value_key: str | None = option(None, "default-last-value-key", "that key")
    default_non_destructive: bool = option(
        False, "default-non-destructive", "consuming does not remove messages"
    )
    default_ring_size: int = option(-1, "default-ring-size", "messages a queue keeps", unit="count")
    pending_message_limit: int = option(
        -1,
        "pending-message-limit",
        "messages that wait for a subscriber of a topic beyond its prefetch, if it is not durable; -1 any number",
        unit="count",
        minimum=-1,
        maximum=INT_MAX,
    )
    pending_message_prefetch_rate: float = option(
        -1.0,
        "pending-message-prefetch-rate",
        "that limit as so many times the prefetch of the consumer, -1 none",
        minimum=-1,
    )
    pending_message_eviction: int = option(
        0,
        "pending-message-eviction",
        "which messages go then: the oldest, the oldest of the lowest priority, or those that a newer one with the same"
        " value of a property replaces",
        choices=EVICTIONS,
    )
    pending_message_eviction_property: str | None = option(
        None, "pending-message-eviction-property", "that property, of SAME_PROPERTY"
    )
    default_group_rebalance: bool = option(
        False, "default-group-rebalance", "share groups anew when a consumer comes"
    )
    default_group_rebalance_pause_dispatch: bool = option(
        False,
        "default-group-rebalance-pause-dispatch",
        "wait for what is in flight first",
    )
    default_group_buckets: int = option(
        -1, "default-group-buckets", "buckets groups are hashed into", unit="count", minimum=-1, maximum=INT_MAX
    )
    default_group_first_key: str | None = option(
        None,
        "default-group-first-key",
        "property set on the first message of a group",
    )
    retroactive_message_count: int = option(
        0,
        "retroactive-message-count",
        "messages kept for queues that come later",
        unit="count",
        minimum=0,
    )
    management_browse_page_size: int = option(
        200,
        "management-browse-page-size",
        "messages that management lists at once",
        unit="count",
    )
    management_message_attribute_size_limit: int = option(
        256,
        "management-message-attribute-size-limit",
        "characters of a property that management shows, -1 all",
        unit="count",
    )
    enable_metrics: bool = option(True, "enable-metrics", "whether /metrics shows this address")
    enable_ingress_timestamp: bool = option(
        False, "enable-ingress-timestamp", "messages get the time of their arrival (_AMQ_INGRESS_TIMESTAMP, ms)"
    )
    id_cache_size: int | None = option(
        None,
        "id-cache-size",
        "duplicate ids kept (the broker's id-cache-size if absent)",
        unit="count",
        minimum=0,
    )
    retroactive_on_request: bool = option(
        False, "retroactive-on-request",
        "only subscriptions that ask for it begin with these messages (`consumer.retroactive=true` of OpenWire,"
        " `activemq.retroactive:true` of STOMP), with wildcards, too",
    )  # fmt: skip
    retroactive_message_age_ms: int = option(
        -1, "retroactive-message-age", "age of the oldest of these messages, -1 any", unit="ms", minimum=-1
    )
    retroactive_message_bytes: int = option(
        -1, "retroactive-message-bytes", "size of all of these messages, -1 any", unit="bytes", minimum=-1
    )
    retroactive_marked_only: bool = option(
        False,
        "retroactive-marked-only",
        "only the newest message with the property ActiveMQ.Retain=true is kept, without a body it ends that",
    )
    # Of ActiveMQ Classic's policies, which Artemis lacks: for clients that leave their own prefetch as it is.
    openwire_queue_prefetch: int | None = option(
        None,
        "openwire-queue-prefetch",
        "messages under way to a consumer of a queue that does not say its own (OpenWire; STOMP of an activemq.xml),"
        " 0: it asks for each, STOMP one",
        unit="count",
        minimum=0,
    )
    openwire_browser_prefetch: int | None = option(
        None, "openwire-browser-prefetch", "the same for browsers", unit="count", minimum=1
    )
    openwire_topic_prefetch: int | None = option(
        None, "openwire-topic-prefetch", "the same for consumers of topics", unit="count", minimum=0
    )
    openwire_durable_prefetch: int | None = option(
        None, "openwire-durable-prefetch", "the same for durable subscriptions", unit="count", minimum=0
    )
    openwire_prefetch_extension: bool = option(
        True,
        "openwire-prefetch-extension",
        "what a client has told that it works on counts no more for its prefetch",
    )
    initial_queue_buffer_size: int = ignored(
        8192, "initial-queue-buffer-size", CACHES, unit="count", minimum=1
    )
    auto_create_jms_queues: bool = unbuilt(True, "auto-create-jms-queues", _CREATED)
    auto_delete_jms_queues: bool = unbuilt(True, "auto-delete-jms-queues", _DELETED)
    auto_create_jms_topics: bool = unbuilt(True, "auto-create-jms-topics", _CREATED)
    auto_delete_jms_topics: bool = unbuilt(True, "auto-delete-jms-topics", _DELETED)
