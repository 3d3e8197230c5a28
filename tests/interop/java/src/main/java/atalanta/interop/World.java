package atalanta.interop;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/** What a scenario works with: connections that are closed for it, names of its own, and checks. */
final class World implements AutoCloseable {
  static final long ARRIVES_MS = 8000;
  static final long NOTHING_MS = 300;

  final String url;
  final String user;
  final String password;
  private final String run;
  private final String scenario;
  private final List<AutoCloseable> open = new ArrayList<>();

  World(Map<String, String> options, String scenario) {
    this.url = options.getOrDefault("url", "tcp://127.0.0.1:61616");
    this.user = options.getOrDefault("user", "admin");
    this.password = options.getOrDefault("password", "admin");
    this.run = options.getOrDefault("run", "r" + ProcessHandle.current().pid());
    this.scenario = scenario;
  }

  /** A destination name of this scenario's own. */
  String name(String suffix) {
    return name("it", suffix);
  }

  /** The same below a prefix that some address-setting of the harness matches. */
  String name(String prefix, String suffix) {
    return prefix + "." + scenario + "." + run + "." + suffix;
  }

  ActiveMQConnectionFactory factory(String parameters) {
    String joined = url + (url.contains("?") ? "&" : "?") + "useTopologyForLoadBalancing=false&callTimeout=15000" + (parameters.isEmpty() ? "" : "&" + parameters);
    return kept(new ActiveMQConnectionFactory(joined));
  }

  Connection connect() throws JMSException {
    return connect("");
  }

  /** A started connection with the given URL parameters. */
  Connection connect(String parameters) throws JMSException {
    Connection connection = kept(factory(parameters).createConnection(user, password));
    connection.start();
    return connection;
  }

  Connection connectAs(String clientId) throws JMSException {
    Connection connection = kept(factory("").createConnection(user, password));
    connection.setClientID(clientId);
    connection.start();
    return connection;
  }

  Session session() throws JMSException {
    return connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
  }

  /** A session of the core API, for what JMS cannot ask (queue queries, queues with options). */
  ClientSession core() throws Exception {
    ServerLocator locator = kept(ActiveMQClient.createServerLocator(url + "?useTopologyForLoadBalancing=false"));
    ClientSessionFactory sessions = kept(locator.createSessionFactory());
    ClientSession session = sessions.createSession(user, password, false, true, true, false, 0);
    session.start();
    return kept(session);
  }

  <T extends AutoCloseable> T kept(T closeable) {
    open.add(0, closeable);
    return closeable;
  }

  @Override
  public void close() {
    for (AutoCloseable closeable : open) {
      Thread closing = new Thread(() -> {
        try {
          closeable.close();
        } catch (Exception ignored) {
          // the scenario's own outcome has been decided
        }
      });
      closing.setDaemon(true);
      closing.start();
      try {
        closing.join(5000);
      } catch (InterruptedException stop) {
        return;
      }
    }
  }

  // ------------------------------------------------------------------ sending and receiving

  static void sendTexts(Session session, Destination to, String... texts) throws JMSException {
    MessageProducer producer = session.createProducer(to);
    for (String text : texts) {
      producer.send(session.createTextMessage(text));
    }
    producer.close();
  }

  static String[] numbered(String prefix, int from, int count) {
    String[] texts = new String[count];
    for (int i = 0; i < count; i++) {
      texts[i] = prefix + (from + i);
    }
    return texts;
  }

  static Message arrives(MessageConsumer consumer) throws JMSException {
    Message message = consumer.receive(ARRIVES_MS);
    check(message != null, "no message arrived within " + ARRIVES_MS + " ms");
    return message;
  }

  static String text(Message message) throws JMSException {
    check(message instanceof TextMessage, "expected a text message, got " + message.getClass().getSimpleName());
    return ((TextMessage) message).getText();
  }

  /** Receives exactly these texts, in this order. */
  static void texts(MessageConsumer consumer, String... expected) throws JMSException {
    for (String wanted : expected) {
      Message message = consumer.receive(ARRIVES_MS);
      check(message != null, "waiting for '" + wanted + "': nothing arrived within " + ARRIVES_MS + " ms");
      equal(wanted, text(message), "text");
    }
  }

  /** Everything that comes until nothing has come for a while. */
  static List<String> drained(MessageConsumer consumer) throws JMSException {
    List<String> texts = new ArrayList<>();
    for (Message m = consumer.receive(NOTHING_MS); m != null; m = consumer.receive(NOTHING_MS)) {
      texts.add(text(m));
    }
    return texts;
  }

  static void nothing(MessageConsumer consumer) throws JMSException {
    Message message = consumer.receive(NOTHING_MS);
    check(message == null, "an unexpected message arrived: " + message);
  }

  /** Sends one message to a new queue of this scenario and receives it on another connection. */
  <M extends Message> M round(Session session, M message) throws JMSException {
    Queue queue = session.createQueue(name("round"));
    MessageProducer producer = session.createProducer(queue);
    producer.send(message);
    producer.close();
    MessageConsumer consumer = session().createConsumer(queue);
    @SuppressWarnings("unchecked")
    M got = (M) arrives(consumer);
    check(consumer.receiveNoWait() == null, "the message came twice");
    consumer.close();
    check(message.getClass().isInstance(got), "sent " + message.getClass().getSimpleName() + ", received " + got.getClass().getSimpleName());
    return got;
  }

  // ------------------------------------------------------------------ checks

  static void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new AssertionError(otherwise);
    }
  }

  static void equal(Object expected, Object actual, String what) {
    if (!Objects.deepEquals(expected, actual)) {
      throw new AssertionError(what + ": expected " + shown(expected) + ", got " + shown(actual));
    }
  }

  private static String shown(Object value) {
    String text = value instanceof byte[] bytes ? bytes.length + " bytes" : String.valueOf(value);
    return text.length() > 200 ? text.substring(0, 200) + "… (" + text.length() + ")" : text;
  }

  interface Attempt {
    void run() throws Exception;
  }

  /** The attempt must throw this exception (or a subclass). */
  static <T extends Throwable> T refused(Class<T> kind, Attempt attempt) throws Exception {
    try {
      attempt.run();
    } catch (Throwable thrown) {
      if (kind.isInstance(thrown)) {
        return kind.cast(thrown);
      }
      throw new AssertionError("expected " + kind.getSimpleName() + ", got " + thrown);
    }
    throw new AssertionError("expected " + kind.getSimpleName() + ", nothing was refused");
  }

  interface Condition {
    boolean holds() throws Exception;
  }

  static void until(String what, Condition condition) throws Exception {
    long deadline = System.nanoTime() + ARRIVES_MS * 1_000_000;
    while (!condition.holds()) {
      check(System.nanoTime() < deadline, "not within " + ARRIVES_MS + " ms: " + what);
      Thread.sleep(20);
    }
  }

  static Topic topic(Session session, String name) throws JMSException {
    return session.createTopic(name);
  }
}
