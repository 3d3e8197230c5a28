package atalanta.classic;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.SslContext;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.command.ActiveMQDestination;
import org.apache.activemq.network.ConditionalNetworkBridgeFilterFactory;
import org.apache.activemq.network.NetworkConnector;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.apache.activemq.util.IntrospectionSupport;

/**
 * Brokers of ActiveMQ Classic and JMS clients over OpenWire, driven by lines on stdin: fields separated by tabs, one
 * answer line each, "ok[\tfield…]" or "error\twhy".
 *
 *   broker    name port folder(- in memory) [option=value…]   starts a broker; options: of BrokerService, and
 *             replayWhenNoConsumers=true; keyStore, trustStore and storePassword of its <sslContext>; secure=a second
 *             port, with TLS, and secureOptions=what is behind the "?" of its URI
 *   network   broker name uri [option=value…]   starts a network connector; options: of NetworkConnector; excluded,
 *             dynamic, static and durable are lists of destinations "queue://a,topic://b"
 *   unlink    broker name                       stops a network connector
 *   link      broker name                       starts it again
 *   bridges   broker                            answers the remote broker names of its bridges that are up
 *   depth     broker destination                answers messages, consumers, and messages that have ever come;
 *             -1 -1 -1: it does not exist
 *   stop      broker
 *   open      connection url [client-id]
 *   consumer  name connection destination [selector]
 *   receive   consumer most timeout-ms          answers the texts, a redelivered one with a "!" behind it
 *   send      connection destination first count [key=value…]  texts "n"; persistent=false; others are properties
 *   request   connection destination text timeout-ms   answers the reply to it, through a temporary queue
 *   replier   name connection destination       answers each request with "re " and its text
 *   unsubscribe connection subscription
 *   close     connection, consumer or replier
 * A destination is "queue:name", "topic:name" or, for consumers, "durable:topic:subscription".
 */
public final class Driver {
  private final Map<String, BrokerService> brokers = new HashMap<>();
  private final Map<String, Connection> connections = new HashMap<>();
  private final Map<String, Session> sessions = new HashMap<>();
  private final Map<String, MessageConsumer> consumers = new HashMap<>();

  private Driver() { }

  public static void main(String[] arguments) throws Exception {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", System.getProperty("atalanta.log", "error"));
    Driver driver = new Driver();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        List<String> fields = driver.command(line.split("\t", -1));
        answer = fields.isEmpty() ? "ok" : "ok\t" + String.join("\t", fields);
      } catch (Throwable thrown) {
        answer = "error\t" + String.valueOf(thrown).replaceAll("\\s+", " ");
      }
      System.out.println(answer);
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private List<String> command(String[] f) throws Exception {
    switch (f[0]) {
      case "broker": return broker(f);
      case "network": return network(f);
      case "unlink": connector(f[1], f[2]).stop(); return List.of();
      case "link": connector(f[1], f[2]).start(); return List.of();
      case "bridges": return bridges(brokers.get(f[1]));
      case "depth": return depth(brokers.get(f[1]), f[2]);
      case "stop": stop(brokers.remove(f[1])); return List.of();
      case "open": return open(f);
      case "consumer": return consumer(f);
      case "receive": return receive(consumers.get(f[1]), Integer.parseInt(f[2]), Long.parseLong(f[3]));
      case "send": return send(f);
      case "request": return request(f);
      case "replier": return replier(f);
      case "unsubscribe": return unsubscribe(f);
      case "close": return close(f[1]);
      default: throw new IllegalArgumentException("unknown command " + f[0]);
    }
  }

  private static Map<String, Object> options(String[] f, int from) {
    Map<String, Object> found = new HashMap<>();
    for (int at = from; at < f.length; at++) {
      String[] pair = f[at].split("=", 2);
      found.put(pair[0], pair[1]);
    }
    return found;
  }

  private static void set(Object target, Map<String, Object> options) {
    IntrospectionSupport.setProperties(target, options);
    if (!options.isEmpty()) {
      throw new IllegalArgumentException("unknown options " + options.keySet());
    }
  }

  private List<String> broker(String[] f) throws Exception {
    BrokerService service = new BrokerService();
    service.setBrokerName(f[1]);
    service.setUseJmx(false);
    service.setUseShutdownHook(false);
    if (f[3].equals("-")) {
      service.setPersistent(false);
    } else {
      KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
      store.setDirectory(new File(f[3]));
      store.setJournalMaxFileLength(1 << 20);
      service.setPersistenceAdapter(store);
    }
    Map<String, Object> options = options(f, 4);
    if (options.remove("replayWhenNoConsumers") != null) {
      ConditionalNetworkBridgeFilterFactory filters = new ConditionalNetworkBridgeFilterFactory();
      filters.setReplayWhenNoConsumers(true);
      PolicyEntry entry = new PolicyEntry();
      entry.setQueue(">");
      entry.setEnableAudit(false);
      entry.setNetworkBridgeFilterFactory(filters);
      PolicyMap policies = new PolicyMap();
      policies.setPolicyEntries(List.of(entry));
      service.setDestinationPolicy(policies);
    }
    if (options.containsKey("keyStore")) {
      service.setSslContext(sslContext(options));
    }
    Object secure = options.remove("secure");
    Object secureOptions = options.remove("secureOptions");
    set(service, options);
    service.addConnector("tcp://127.0.0.1:" + f[2]);
    if (secure != null) {
      service.addConnector("ssl://127.0.0.1:" + secure + (secureOptions == null ? "" : "?" + secureOptions));
    }
    service.start();
    service.waitUntilStarted();
    brokers.put(f[1], service);
    return List.of();
  }

  private static SslContext sslContext(Map<String, Object> options) throws Exception {
    char[] password = ((String) options.remove("storePassword")).toCharArray();
    KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    keys.init(KeyStore.getInstance(new File((String) options.remove("keyStore")), password), password);
    TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(KeyStore.getInstance(new File((String) options.remove("trustStore")), password));
    return new SslContext(keys.getKeyManagers(), trust.getTrustManagers(), new SecureRandom());
  }

  private static void stop(BrokerService service) throws Exception {
    service.stop();
    service.waitUntilStopped();
  }

  private List<String> network(String[] f) throws Exception {
    NetworkConnector connector = brokers.get(f[1]).addNetworkConnector(f[3]);
    connector.setName(f[2]);
    connector.setBrokerName(brokers.get(f[1]).getBrokerName());  // as for connectors that start with their broker
    Map<String, Object> options = options(f, 4);
    connector.setExcludedDestinations(destinations(options.remove("excluded")));
    connector.setDynamicallyIncludedDestinations(destinations(options.remove("dynamic")));
    connector.setStaticallyIncludedDestinations(destinations(options.remove("static")));
    set(connector, options);
    connector.start();
    return List.of();
  }

  private static List<ActiveMQDestination> destinations(Object texts) {
    List<ActiveMQDestination> found = new ArrayList<>();
    if (texts != null) {
      for (String text : ((String) texts).split(",")) {
        found.add(ActiveMQDestination.createDestination(text, ActiveMQDestination.QUEUE_TYPE));
      }
    }
    return found;
  }

  private NetworkConnector connector(String broker, String name) {
    return brokers.get(broker).getNetworkConnectorByName(name);
  }

  private static List<String> bridges(BrokerService service) {
    List<String> found = new ArrayList<>();
    for (NetworkConnector connector : service.getNetworkConnectors()) {
      connector.activeBridges().forEach(bridge -> found.add(String.valueOf(bridge.getRemoteBrokerName())));
    }
    return found;
  }

  private static List<String> depth(BrokerService service, String text) throws Exception {
    String[] parts = text.split(":", 2);
    ActiveMQDestination name = ActiveMQDestination.createDestination(
        parts[1], parts[0].equals("queue") ? ActiveMQDestination.QUEUE_TYPE : ActiveMQDestination.TOPIC_TYPE);
    var found = service.getBroker().getDestinationMap().get(name);
    if (found == null) {
      return List.of("-1", "-1", "-1");
    }
    var statistics = found.getDestinationStatistics();
    return List.of("" + statistics.getMessages().getCount(), "" + statistics.getConsumers().getCount(),
        "" + statistics.getEnqueues().getCount());
  }

  private List<String> open(String[] f) throws JMSException {
    Connection connection = new ActiveMQConnectionFactory("admin", "admin", f[2]).createConnection();
    if (f.length > 3) {
      connection.setClientID(f[3]);
    }
    connection.start();
    connections.put(f[1], connection);
    return List.of();
  }

  private Session session(String connection) throws JMSException {
    return connections.get(connection).createSession(false, Session.AUTO_ACKNOWLEDGE);
  }

  private static Destination destination(Session session, String text) throws JMSException {
    String[] parts = text.split(":", 3);
    return parts[0].equals("queue") ? session.createQueue(parts[1]) : session.createTopic(parts[1]);
  }

  private List<String> consumer(String[] f) throws JMSException {
    Session session = session(f[2]);
    Destination from = destination(session, f[3]);
    String selector = f.length > 4 ? f[4] : null;
    String[] parts = f[3].split(":", 3);
    consumers.put(f[1], parts[0].equals("durable")
        ? session.createDurableSubscriber((Topic) from, parts[2], selector, false)
        : session.createConsumer(from, selector));
    sessions.put(f[1], session);
    return List.of();
  }

  private static List<String> receive(MessageConsumer consumer, int most, long timeoutMs) throws JMSException {
    List<String> texts = new ArrayList<>();
    while (texts.size() < most) {
      Message message = consumer.receive(timeoutMs);
      if (message == null) {
        break;
      }
      texts.add(((TextMessage) message).getText() + (message.getJMSRedelivered() ? "!" : ""));
    }
    return texts;
  }

  private List<String> send(String[] f) throws JMSException {
    Session session = session(f[1]);
    MessageProducer producer = session.createProducer(destination(session, f[2]));
    Map<String, Object> options = options(f, 5);
    if ("false".equals(options.remove("persistent"))) {
      producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
    }
    int first = Integer.parseInt(f[3]);
    for (int n = first; n < first + Integer.parseInt(f[4]); n++) {
      TextMessage message = session.createTextMessage("" + n);
      for (Map.Entry<String, Object> each : options.entrySet()) {
        message.setStringProperty(each.getKey(), (String) each.getValue());
      }
      producer.send(message);
    }
    session.close();
    return List.of();
  }

  private List<String> request(String[] f) throws JMSException {
    Session session = session(f[1]);
    try {
      Destination replies = session.createTemporaryQueue();
      MessageConsumer consumer = session.createConsumer(replies);
      TextMessage message = session.createTextMessage(f[3]);
      message.setJMSReplyTo(replies);
      session.createProducer(destination(session, f[2])).send(message);
      Message reply = consumer.receive(Long.parseLong(f[4]));
      return reply == null ? List.of() : List.of(((TextMessage) reply).getText());
    } finally {
      session.close();
    }
  }

  private List<String> replier(String[] f) throws JMSException {
    Session session = session(f[2]);
    MessageConsumer consumer = session.createConsumer(destination(session, f[3]));
    MessageProducer producer = session.createProducer(null);
    consumer.setMessageListener(message -> {
      try {
        producer.send(message.getJMSReplyTo(), session.createTextMessage("re " + ((TextMessage) message).getText()));
      } catch (JMSException failed) {
        System.err.println("the replier cannot send: " + failed);
      }
    });
    consumers.put(f[1], consumer);
    sessions.put(f[1], session);
    return List.of();
  }

  private List<String> unsubscribe(String[] f) throws JMSException {
    Session session = session(f[1]);
    session.unsubscribe(f[2]);
    session.close();
    return List.of();
  }

  private List<String> close(String name) throws JMSException {
    if (connections.containsKey(name)) {
      connections.remove(name).close();
    } else {
      consumers.remove(name).close();
      sessions.remove(name).close();
    }
    return List.of();
  }
}
