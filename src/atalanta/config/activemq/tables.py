"""Names of an activemq.xml (Classic 5.x and 6.x): what they become in broker.xml, or why they have no effect here.

In each pair of tables, `…_SILENT` are harmless and `…_LOST` ask for a service that this node does not give.
"""

from __future__ import annotations

from typing import Final


def _all(why: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), why)


_LOOP: Final = "this broker has one loop"
_JMX: Final = "there is no JMX"
_STORE: Final = "Classic's own store: messages are kept in this broker's journal"
_ADVISORY: Final = "this advisory is not sent"
_JAVA: Final = "Java classes cannot be loaded"
REMOVED: Final = "removed from Classic: for a pair, see <ha-policy> in docs/guide/high-availability.md"
_CURSORS: Final = "messages beyond a limit go to pages"
_AUDIT: Final = "duplicates are found by their ids, for every address"
_OPENWIRE: Final = "OpenWire connections have no such setting yet"
# What to write instead of an element that says that there are other brokers.
WAYS_OF_PAIR: Final = (
    "for brokers with one directory that they all reach, write the same <kahaDB directory=…> in all files: one serves,"
    " the others wait; for a replicated group of brokers without one, convert the files and write <ha-policy>"
    " (docs/guide/high-availability.md)"
)
WAYS_OF_NETWORK: Final = "write <networkConnector uri=\"static:(tcp://HOST:PORT)\"/> (docs/guide/networks.md)"
_STOPS: Final = "a node stops after a failed write"

# Attributes of a pair of Classic 5.0 to 5.7, where a slave is connected to its master.
PURE_PAIR: Final = ("waitForSlave", "passiveSlave", "shutdownOnMasterFailure", "shutdownOnSlaveFailure")

# <broker>
BROKER: Final = (
    "brokerName", "persistent", "dataDirectory", "populateJMSXUserID", "useVirtualTopics", "advisorySupport",
    "schedulePeriodForDestinationPurge", "schedulerSupport", "deleteAllMessagesOnStartup", "waitForSlave",
    "passiveSlave", "shutdownOnMasterFailure", "shutdownOnSlaveFailure", "masterConnectorURI", "networkConnectorURIs",
    "useVirtualDestSubs", "useVirtualDestSubsOnCreation",
)  # fmt: skip
BROKER_SILENT: Final[dict[str, str]] = {
    **_all(_JMX, "useJmx brokerObjectName populateUserNameInMBeans mbeanInvocationTimeout enableStatistics"),
    **_all(
        _LOOP,
        "dedicatedTaskRunner taskRunnerPriority virtualThreadTaskRunner persistenceThreadPriority startAsync"
        " networkConnectorStartAsync splitSystemUsageForProducersConsumers producerSystemUsagePortion"
        " consumerSystemUsagePortion",
    ),
    **_all(
        "there is no JVM",
        "useShutdownHook useLoggingForShutdownErrors systemExitOnShutdown systemExitOnShutdownExitCode restartAllowed"
        " vmConnectorURI storeOpenWireVersion",
    ),
    **_all(
        _OPENWIRE,
        "anonymousProducerAdvisorySupport cacheTempDestinations timeBeforePurgeTempDestinations"
        " allowTempAutoCreationOnSend useTempMirroredQueues"
        " monitorConnectionSplits rollbackOnlyOnAsyncException maxInflatedDataSize",
    ),
    "maxSchedulerRepeatAllowed": "repetitions are not limited in number: see schedulerPeriodMin of an acceptor",
    **_all(_STORE, "tmpDataDirectory schedulerDirectory schedulerDirectoryFile dataDirectoryFile"),
    "useAuthenticatedPrincipalForJMSXUserID": "JMSXUserID is always the name of the authenticated user",
    "useLocalHostBrokerName": "write brokerName",
    "brokerId": "the journal has the node's id",
    "keepDurableSubsActive": "durable subscriptions are always kept",
    "enableMessageExpirationOnActiveDurableSubs": "messages always expire",
    "adjustUsageLimits": "limits are not adjusted",
    "maxPurgedDestinationsPerSweep": "all unused destinations go",
    "schedulePeriodForDiskUsageCheck": "see disk-scan-period in broker.xml",
    "diskUsageCheckRegrowThreshold": "the disk is measured every few seconds",
    "maxUncommittedCount": "see resource-limit-settings in broker.xml",
    "offlineDurableSubscriberTaskSchedule": "see offlineDurableSubscriberTimeout",
}
BROKER_LOST: Final[dict[str, str]] = {
    "waitForSlaveTimeout": REMOVED,
    "transportConnectorURIs": "write the elements instead",
    "offlineDurableSubscriberTimeout": "subscriptions without a consumer are kept for ever",
    "rejectDurableConsumers": "durable consumers are not refused",
    "useMirroredQueues": "write a <divert> in broker.xml for each queue",
}  # fmt: skip
BROKER_CHILDREN_SILENT: Final[dict[str, str]] = {
    **_all(_JMX, "managementContext adminView"),
    **_all(_LOOP, "taskRunnerFactory persistenceTaskRunnerFactory"),
    **_all(_STORE, "tempDataStore jobSchedulerStore"),
    **_all("limits are those of <systemUsage>", "producerSystemUsage consumerSystemUsage"),
    "shutdownHooks": "there is no Spring context to close",
    "ioExceptionHandler": _STOPS,
    "brokerContext": "there is no Spring context",
}
BROKER_CHILDREN_LOST: Final[dict[str, str]] = {
    **_all(_JAVA, "messageAuthorizationPolicy regionBroker destinationFactory"),
    "jmsBridgeConnectors": "no bridge is made: write a core bridge (docs/guide/bridges.md)",
    "proxyConnectors": "connections are not forwarded to other brokers",
}

# <persistenceAdapter>: kahaDB and the others.
STORES: Final = (
    "kahaDB", "kahaDBStore", "mKahaDB", "levelDB", "replicatedLevelDB", "jdbcPersistenceAdapter", "journaledJDBC",
    "journalPersistenceAdapterFactory", "journalPersistenceAdapter", "amqPersistenceAdapter", "kahaPersistenceAdapter",
)  # fmt: skip
DATABASES: Final = (
    "jdbcPersistenceAdapter", "journaledJDBC", "journalPersistenceAdapterFactory", "journalPersistenceAdapter",
)  # fmt: skip
KAHADB_SILENT: Final = _all(
    _STORE,
    "indexDirectory enableJournalDiskSyncs journalDiskSyncStrategy journalDiskSyncInterval indexCacheSize"
    " indexWriteBatchSize journalMaxWriteBatchSize checkpointInterval cleanupInterval cleanupOnStop"
    " concurrentStoreAndDispatchQueues concurrentStoreAndDispatchTopics ignoreMissingJournalfiles"
    " checkForCorruptJournalFiles checksumJournalFiles archiveDataLogs directoryArchive"
    " failoverProducersAuditDepth maxFailoverProducersToTrack maxAsyncJobs"
    " forceRecoverIndex archiveCorruptedIndex indexLFUEvictionFactor useIndexLFRUEviction enableIndexDiskSyncs"
    " enableIndexRecoveryFile enableIndexPageCaching enableIndexWriteAsync compactAcksAfterNoGC"
    " compactAcksIgnoresStoreGrowth enableAckCompaction enableSubscriptionStatistics preallocationScope"
    " preallocationStrategy purgeRecoveredXATransactionStrategy transactionIdTransformer brokerName"
    " stopOnError",
)
# The lock of a store: of the store element itself.
FAIL_IF_LOCKED: Final = ("failIfLocked", "failIfDatabaseIsLocked")  # of a locker, and of a store in older files
USE_LOCK: Final = ("useLock", "useDatabaseLock")
LOCK_WAITS: Final = ("lockKeepAlivePeriod", "databaseLockedWaitDelay", "lockAcquireSleepInterval")
LOCK: Final = (*USE_LOCK, *LOCK_WAITS, FAIL_IF_LOCKED[1])
ALWAYS_LOCKED: Final = "a store is always protected from a second broker"
NO_WAIT: Final = "a slave takes over at once when its master ends; lease_ms in atalanta.toml counts for a lost host"
LOCKER_SILENT: Final = {
    "lockAcquireSleepInterval": NO_WAIT,
    "directory": "the lock is in the folder of the store, as in Classic",
    "name": "locks have no names",
}
KAHADB_CHILDREN_SILENT: Final = {"sharedFileLocker": "the lock is in the folder of the store"}

# <transportConnector>
CONNECTOR: Final = (
    "name", "uri", "discoveryUri", "updateClusterClients", "rebalanceClusterClients", "updateClusterClientsOnRemove",
    "updateClusterFilter", "allowLinkStealing", "autoStart",
)  # fmt: skip
CLUSTER_CLIENTS: Final = (
    "updateClusterClients", "rebalanceClusterClients", "updateClusterClientsOnRemove", "updateClusterFilter",
)  # fmt: skip
CONNECTOR_SILENT: Final[dict[str, str]] = {
    **_all(_LOOP, "disableAsyncDispatch enableStatusMonitor"),
    **_all("see the log", "warnOnRemoteClose displayStackTrace"),
    "auditNetworkProducers": _AUDIT,
}
CONNECTOR_LOST: Final = {
    **_all(
        "see resource-limit-settings in broker.xml",
        "maximumProducersAllowedPerConnection maximumConsumersAllowedPerConnection",
    ),
    "messageAuthorizationPolicy": _JAVA,
    "publishedAddressPolicy": "clients are told the host of the acceptor: publishedHost in broker.xml says another one",
}
# Word of the scheme -> its protocols. OpenWire's acceptors serve CORE, too: the commands of Atalanta connect there.
PROTOCOLS: Final[dict[str, str]] = {
    "tcp": "CORE,OPENWIRE",
    "nio": "CORE,OPENWIRE",
    "ssl": "CORE,OPENWIRE",
    "auto": "CORE,OPENWIRE,STOMP,AMQP,MQTT",
    "stomp": "STOMP",
    "amqp": "AMQP",
    "mqtt": "MQTT",
    "ws": "STOMP,MQTT,AMQP",
    "wss": "STOMP,MQTT,AMQP",
}
# What may follow the first word: nio+ssl, stomp+nio+ssl, amqp+wss.
SCHEME_WORDS: Final = ("nio", "ssl", "ws", "wss")
SECURE: Final = ("ssl", "wss")
SCHEMES_LOST: Final[dict[str, str]] = {
    "vm": "there are no connections within the process",
    "peer": "there are no connections within the process",
    "http": "OpenWire over HTTP is not supported",
    "https": "OpenWire over HTTP is not supported",
    "udp": "only connections over TCP are accepted",
    "multicast": "only connections over TCP are accepted",
}
# Option of the URI -> parameter of the acceptor.
OPTIONS: Final[dict[str, str]] = {
    "maximumConnections": "connectionsAllowed",
    "backlog": "backlog",
    "transport.tcpNoDelay": "tcpNoDelay",
    "tcpNoDelay": "tcpNoDelay",
    "needClientAuth": "needClientAuth",
    "wantClientAuth": "wantClientAuth",
    "transport.needClientAuth": "needClientAuth",
    "transport.wantClientAuth": "wantClientAuth",
    "transport.enabledProtocols": "enabledProtocols",
    "transport.enabledCipherSuites": "enabledCipherSuites",
    "wireFormat.maxInactivityDuration": "maxInactivityDuration",
    "wireFormat.maxInactivityDurationInitalDelay": "maxInactivityDurationInitalDelay",
    "maxInactivityDuration": "maxInactivityDuration",
    "maxInactivityDurationInitalDelay": "maxInactivityDurationInitalDelay",
    "transport.useKeepAlive": "useKeepAlive",
}
# Option of the URI -> parameter of the acceptor for STOMP.
STOMP_OPTIONS: Final = {
    "transport.defaultHeartBeat": "stompDefaultHeartBeat",
    "transport.hbGracePeriodMultiplier": "heartBeatToConnectionTtlModifier",
}
# Limits of a STOMP frame; the lowest one counts for its body.
STOMP_SIZES: Final = (
    "transport.maxDataLength", "wireFormat.maxDataLength", "transport.maxFrameSize", "wireFormat.maxFrameSize",
)  # fmt: skip
# Protocol -> its parameter for wireFormat.maxFrameSize.
FRAME_SIZES: Final = {"OPENWIRE": "maxFrameSize", "MQTT": "maximumPacketSize"}
_NEGOTIATED: Final = "each client and the broker agree on it"
OPTIONS_SILENT: Final[dict[str, str]] = {
    **_all(
        _NEGOTIATED,
        "wireFormat.tightEncodingEnabled wireFormat.cacheEnabled wireFormat.cacheSize wireFormat.sizePrefixDisabled"
        " wireFormat.stackTraceEnabled wireFormat.tcpNoDelayEnabled wireFormat.version wireFormat.host"
        " wireFormat.maxFrameSizeEnabled wireFormat.providerName wireFormat.includePlatformDetails"
        " minmumWireFormatVersion",
    ),
    **_all(
        "the operating system decides",
        "socketBufferSize transport.socketBufferSize keepAlive transport.keepAlive soLinger transport.soLinger"
        " soTimeout transport.soTimeout connectionTimeout transport.connectionTimeout trafficClass"
        " transport.trafficClass transport.typeOfService transport.diffServ transport.ioBufferSize"
        " transport.soWriteTimeout soWriteTimeout",
    ),
    **_all(
        _LOOP,
        "daemon stackSize joinOnStop useQueueForAccept transport.useInactivityMonitor transport.threadName"
        " transport.closeAsync transport.selectorManager maxConnectionThreadPoolSize transport.dynamicManagement"
        " dynamicManagement trace transport.trace logWriterName transport.logWriterName startLogging"
        " transport.startLogging jmxPort transport.jmxPort",
    ),
    **_all(
        "of a protocol that is not supported yet",
        "transport.transformer transport.maxFrameSize transport.subscriptionStrategy transport.subscriptionPrefetch"
        " transport.activeMQSubscriptionPrefetch transport.publishDollarTopics transport.defaultKeepAlive"
        " transport.producerCredit transport.prefetch transport.idleTimeout wireFormat.idleTimeout"
        " wireFormat.connectAttemptTimeout wireFormat.allowNonSaslConnections wireFormat.transformer"
        " wireFormat.producerCredit transport.wireFormat.maxFrameSize http.enableTrace websocket.maxTextMessageSize"
        " websocket.maxBinaryMessageSize jetty.config",
    ),
    **_all(
        "of STOMP, which this connector does not serve",
        "transport.hbGracePeriodMultiplier transport.defaultHeartBeat transport.maxDataLength wireFormat.maxDataLength",
    ),
    **_all(
        "an acceptor does not look at the names of clients",
        "transport.verifyHostName verifyHostName transport.socket.verifyHostName",
    ),
}

# <policyEntry>: attribute -> element of <address-setting>.
POLICY_SIZES: Final = {"memoryLimit": "max-size-bytes"}
POLICY_PLAIN: Final = {
    "consumersBeforeDispatchStarts": "default-consumers-before-dispatch",
    "timeBeforeDispatchStarts": "default-delay-before-dispatch",
    "allConsumersExclusiveByDefault": "default-exclusive-queue",
}
# Attribute of the policy of a queue or of a topic -> element of <address-setting>.
POLICY_PREFETCHES: Final = {
    "queue": {"queuePrefetch": "openwire-queue-prefetch", "queueBrowserPrefetch": "openwire-browser-prefetch"},
    "topic": {"topicPrefetch": "openwire-topic-prefetch", "durableTopicPrefetch": "openwire-durable-prefetch"},
}
PREFETCHES: Final = tuple(name for of_kind in POLICY_PREFETCHES.values() for name in of_kind)
DISPATCH_DELAY_MS: Final = "1000"  # of consumersBeforeDispatchStarts without a time
POLICY_OTHER: Final = (
    "queue", "topic", "tempQueue", "tempTopic", "producerFlowControl", "sendFailIfNoSpace",
    "sendFailIfNoSpaceAfterTimeout", "expireMessagesPeriod", "gcInactiveDestinations", "inactiveTimeoutBeforeGC",
    "inactiveTimoutBeforeGC", "alwaysRetroactive", "messageGroupMapFactoryType", "usePrefetchExtension",
)  # fmt: skip
POLICY_SILENT: Final[dict[str, str]] = {
    **_all(_AUDIT, "enableAudit maxProducersToAudit maxAuditDepth maxQueueAuditDepth sendDuplicateFromStoreToDLQ"),
    **_all(
        _CURSORS,
        "useCache maxPageSize maxBrowsePageSize maxExpirePageSize cursorMemoryHighWaterMark storeUsageHighWaterMark"
        " reduceMemoryFootprint doOptimzeMessageStorage optimizeMessageStoreInFlightLimit minimumMessageSize",
    ),
    **_all(_LOOP, "optimizedDispatch lazyDispatch"),
    **_all(_JMX, "advancedNetworkStatisticsEnabled advancedMessageStatisticsEnabled useTopicSubscriptionInflightStats"),
    **_all(
        _ADVISORY,
        "advisoryForSlowConsumers advisoryForFastProducers advisoryForDiscardingMessages advisoryWhenFull"
        " advisoryForDelivery advisoryForConsumed advisoryForDispatched includeBodyForAdvisory"
        " sendAdvisoryIfNoConsumers",
    ),
    "prioritizedMessages": "always: higher priorities are delivered first",
    "useConsumerPriority": "always: consumers of a higher priority are preferred",
    "strictOrderDispatch": "consumers get messages in turn",
    "persistJMSRedelivered": "see persist-delivery-count-before-delivery in broker.xml",
    "blockedProducerWarningInterval": "see the metrics of the address",
    "gcWithNetworkConsumers": "a queue with a consumer stays, also with one of a bridge",
    "allowTempDestinationStealing": "only its own connection consumes from a temporary destination",
}
POLICY_LOST: Final = {
    "maxDestinations": "destinations are not counted",
}
POLICY_CHILDREN_SILENT: Final[dict[str, str]] = {
    **_all(_CURSORS, "pendingSubscriberPolicy pendingDurableSubscriberPolicy"),
    "dispatchPolicy": "consumers get messages in turn",
}
POLICY_CHILDREN_LOST: Final[dict[str, str]] = {
    "slowConsumerStrategy": "no consumer is closed: see slow-consumer-policy in broker.xml",
    "messageInterceptorStrategy": _JAVA,
}
# What an <address-setting> says that another policy sets: in Classic, only the nearest policy counts.
POLICY_DEFAULTS: Final[dict[str, str]] = {
    "max-size-bytes": "-1",
    "address-full-policy": "PAGE",
    "disk-full-policy": "BLOCK",
    "blocked-send-timeout": "-1",
    "default-consumers-before-dispatch": "0",
    "default-delay-before-dispatch": "-1",
    "default-exclusive-queue": "false",
    "pending-message-limit": "-1",
    "pending-message-prefetch-rate": "-1.0",
    "pending-message-eviction": "OLDEST",
    "pending-message-eviction-property": "",
    "default-group-buckets": "-1",
    "retroactive-message-count": "0",
    "retroactive-on-request": "false",
    "retroactive-message-age": "-1",
    "retroactive-message-bytes": "-1",
    "retroactive-marked-only": "false",
    "openwire-prefetch-extension": "true",
    "openwire-queue-prefetch": "1000",
    "openwire-browser-prefetch": "500",
    "openwire-topic-prefetch": "32766",
    "openwire-durable-prefetch": "100",
    "dead-letter-address": "ActiveMQ.DLQ",
    "expiry-address": "ActiveMQ.DLQ",
    "dead-letter-non-durable": "false",
    "dead-letter-expiry": "-1",
    "auto-create-dead-letter-resources": "false",
    "auto-create-expiry-resources": "false",
    "dead-letter-queue-prefix": "DLQ.",
    "dead-letter-queue-suffix": "",
    "expiry-queue-prefix": "EXP.",
    "expiry-queue-suffix": "",
    "auto-delete-queues": "false",
    "auto-delete-addresses": "false",
    "auto-delete-queues-delay": "0",
    "auto-delete-addresses-delay": "0",
}
DEAD_LETTERS_SILENT: Final = {
    **_all(_AUDIT, "enableAudit maxAuditDepth maxProducersToAudit maxDestinationsToAudit"),
    "useQueueForQueueMessages": "always true: dead letters wait in a queue",
    "useQueueForTopicMessages": "always true: dead letters wait in a queue",
    "destinationPerDurableSubscriber": "always false: one queue for each address",
}

# <destinationInterceptors>
VIRTUAL_TOPIC: Final = ("name", "prefix", "selectorAware", "local")
VIRTUAL_SILENT: Final = {
    **_all(_LOOP, "concurrentSend transactedSend"),
    "setOriginalDestination": "the queue's address is the topic",
    "dropOnResourceLimit": "see address-full-policy",
    "copyMessage": "each queue has a message of its own",
}
VIRTUAL_LOST: Final = {
    "postfix": "queues of a virtual topic are known by their prefix",
}
COMPOSITE: Final = ("name", "forwardOnly", "sendWhenNotMatched")

# <plugins>
PLUGINS_SILENT: Final[dict[str, str]] = {
    "statisticsBrokerPlugin": "see docs/reference/management.md for figures of queues",
    "loggingBrokerPlugin": "see `atalanta run --log-level debug`",
    "traceBrokerPathPlugin": "a message carries its path, but not as a property",
    "multicastTraceBrokerPlugin": "messages are not traced",
    "udpTraceBrokerPlugin": "messages are not traced",
    "subQueueSelectorCacheBrokerPlugin": "subscriptions keep their own queues",
}
PLUGINS_LOST: Final[dict[str, str]] = {
    "camelRoutesBrokerPlugin": _JAVA,
    "destinationsPlugin": "destinations are kept in the journal",
    "destinationPathSeparatorPlugin": "see <wildcard-addresses> in broker.xml",
    "forcePersistencyModeBrokerPlugin": "messages stay durable or not as they were sent",
    "connectionDLQPlugin": _JAVA,
}
TIME_STAMPS_SILENT: Final = {
    "futureOnly": "the sender's time stays",
    "processNetworkMessages": "messages of bridges keep their times",
}
REDELIVERY: Final = (
    "queue", "topic", "maximumRedeliveries", "initialRedeliveryDelay", "redeliveryDelay", "useExponentialBackOff",
    "backOffMultiplier", "maximumRedeliveryDelay", "useCollisionAvoidance", "collisionAvoidancePercent",
)  # fmt: skip

# <networkConnector>
NETWORK_CHILDREN_LOST: Final = {
    **_all(_JAVA, "bridgeFactory connectionFilter"),
    "sslContext": "bridges use that of the broker",
}

# <systemUsage>
USAGE_SILENT: Final = {
    **_all("limits count at once", "percentUsageMinDelta usagePortion pollingTime"),
    "percentOfJvmHeap": "there is no JVM: global-max-size has its default, 512 MiB",
    "name": "limits have no names",
    "total": "the whole disk counts",
}
SYSTEM_USAGE_SILENT: Final = {
    "checkLimitsLogLevel": "see the log",
    "name": "limits have no names",
}
SYSTEM_USAGE_CHILDREN: Final = _all("there is one disk limit: that of <storeUsage>", "tempUsage jobSchedulerUsage")

# <sslContext>: attribute -> parameter of the acceptor.
SSL: Final = {
    "keyStore": "keyStorePath",
    "keyStorePassword": "keyStorePassword",
    "keyStoreType": "keyStoreType",
    "trustStore": "trustStorePath",
    "trustStorePassword": "trustStorePassword",
    "trustStoreType": "trustStoreType",
    "crlPath": "crlPath",
}
SSL_SILENT: Final = _all(
    "OpenSSL serves TLS here", "keyStoreAlgorithm trustStoreAlgorithm secureRandomAlgorithm protocol provider"
)
