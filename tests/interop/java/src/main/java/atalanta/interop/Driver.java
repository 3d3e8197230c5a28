package atalanta.interop;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * A JMS client driven by lines on stdin: fields separated by tabs, one answer line each, "ok[\tfield…]" or "error\twhy".
 * Messages are texts "n" numbered by the caller, so that what is lost or doubled can be told by name.
 *
 *   open        connection url user password [client-id]
 *   consumer    name connection destination selector(- none) mode(auto client each transacted)
 *   producer    name connection destination mode
 *   temporary   consumer connection               answers the name of the new temporary queue it consumes
 *   receive     consumer most timeout-ms          answers the texts, a redelivered one with a "!" behind it
 *   properties  consumer                          answers the last message's properties as "name=Type:value", some headers
 *   acknowledge consumer          commit name          rollback name
 *   send        producer first count [key=value…]   strings; "dup=prefix" adds the duplicate id prefix + n (and
 *               a send that fails is repeated); "persistent=false"; "priority=n";
 *               "typed=true" adds a property of every type;
 *               "length=n" adds n spaces to the text, which "receive" strips
 *   close       name
 *   create      url user password address queue ANYCAST|MULTICAST filter(- none)
 *   queue       url user password queue           answers exists, messages, consumers
 *   bindings    url user password address         answers the queue names, remote ones too
 *   topology    url user password                 answers node ids and connectors as "id=host:port"
 * Mode "each" acknowledges a message when "receive" has it: if its node dies in between, it comes twice, never not at all.
 * A destination is "queue:name", "topic:name" or, for consumers, "durable:topic:name" or "shared:topic:name".
 */
final class Driver {
  private static final long RETRY_MS = 30_000;

  private static final class Line {
    Session session;
    MessageConsumer consumer;
    MessageProducer producer;
    boolean acknowledgesEach;
    Message last;
  }

  private final Map<String, Connection> connections = new HashMap<>();
  private final Map<String, Line> lines = new HashMap<>();

  private Driver() { }

  public static void main(String[] arguments) throws Exception {
    Driver driver = new Driver();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        List<String> fields = driver.command(line.split("\t", -1));
        answer = fields.isEmpty() ? "ok" : "ok\t" + String.join("\t", fields);
      } catch (Throwable thrown) {
        answer = "error\t" + Main.oneLine(thrown);
      }
      System.out.println(answer);
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private List<String> command(String[] f) throws Exception {
    switch (f[0]) {
      case "open": return open(f);
      case "consumer": return consumer(f);
      case "producer": return producer(f);
      case "temporary": return temporary(f);
      case "receive": return receive(line(f[1]), Integer.parseInt(f[2]), Long.parseLong(f[3]));
      case "acknowledge": line(f[1]).last.acknowledge(); return List.of();
      case "properties": return properties(line(f[1]).last);
      case "commit": line(f[1]).session.commit(); return List.of();
      case "rollback": line(f[1]).session.rollback(); return List.of();
      case "send": return send(f);
      case "send kind": Kinds.send(line(f[1]).session, line(f[1]).producer, f[2], Integer.parseInt(f[3]), Integer.parseInt(f[4])); return List.of();
      case "receive kinds": return receiveKinds(line(f[1]), Integer.parseInt(f[2]), Long.parseLong(f[3]));
      case "close": return close(f[1]);
      case "create": case "queue": case "bindings": case "topology": return core(f);
      default: throw new IllegalArgumentException("unknown command " + f[0]);
    }
  }

  private Line line(String name) {
    Line line = lines.get(name);
    if (line == null) {
      throw new IllegalArgumentException("no consumer or producer is called " + name);
    }
    return line;
  }

  private List<String> open(String[] f) throws JMSException {
    ConnectionFactory factory = f[2].startsWith("amqp:") ? new JmsConnectionFactory(f[2]) : new ActiveMQConnectionFactory(f[2]);
    Connection connection = factory.createConnection(f[3], f[4]);
    if (f.length > 5) {
      connection.setClientID(f[5]);
    }
    connection.start();
    connections.put(f[1], connection);
    return List.of();
  }

  private Line newLine(String name, String connection, String mode) throws JMSException {
    Line line = new Line();
    line.acknowledgesEach = mode.equals("each");
    int acknowledge = mode.equals("client") || line.acknowledgesEach ? Session.CLIENT_ACKNOWLEDGE : Session.AUTO_ACKNOWLEDGE;
    line.session = connections.get(connection).createSession(mode.equals("transacted"), acknowledge);
    lines.put(name, line);
    return line;
  }

  private static Destination destination(Session session, String text) throws JMSException {
    String[] parts = text.split(":", 2);
    return parts[0].equals("queue") ? session.createQueue(parts[1]) : session.createTopic(parts[1].split(":", 2)[0]);
  }

  private List<String> consumer(String[] f) throws JMSException {
    Line line = newLine(f[1], f[2], f[5]);
    String selector = f[4].equals("-") ? null : f[4];
    String[] parts = f[3].split(":", 3);
    Destination from = destination(line.session, f[3]);
    if (parts[0].equals("durable")) {
      line.consumer = line.session.createDurableSubscriber((jakarta.jms.Topic) from, parts[2], selector, false);
    } else if (parts[0].equals("shared")) {
      line.consumer = line.session.createSharedDurableConsumer((jakarta.jms.Topic) from, parts[2], selector);
    } else {
      line.consumer = line.session.createConsumer(from, selector);
    }
    return List.of();
  }

  private List<String> producer(String[] f) throws JMSException {
    Line line = newLine(f[1], f[2], f[4]);
    line.producer = line.session.createProducer(destination(line.session, f[3]));
    return List.of();
  }

  private List<String> temporary(String[] f) throws JMSException {
    Line line = newLine(f[1], f[2], "auto");
    jakarta.jms.TemporaryQueue queue = line.session.createTemporaryQueue();
    line.consumer = line.session.createConsumer(queue);
    return List.of(queue.getQueueName());
  }

  private static List<String> receive(Line line, int most, long timeoutMs) throws JMSException {
    List<String> texts = new ArrayList<>();
    int failures = 0;
    while (texts.size() < most) {
      Message message;
      try {
        message = line.consumer.receive(timeoutMs);
      } catch (JMSException failed) {
        // The connection is being made anew.
        if (++failures > 3) {
          throw failed;
        }
        continue;
      }
      if (message == null) {
        break;
      }
      line.last = message;
      texts.add(((TextMessage) message).getText().strip() + (message.getJMSRedelivered() ? "!" : ""));
      if (line.acknowledgesEach) {
        try {
          message.acknowledge();
        } catch (JMSException failed) {
          // It did not reach the node that died: the message comes again.
        }
      }
    }
    return texts;
  }

  private static List<String> receiveKinds(Line line, int most, long timeoutMs) throws JMSException {
    List<String> found = new ArrayList<>();
    while (found.size() < most) {
      Message message = line.consumer.receive(timeoutMs);
      if (message == null) {
        break;
      }
      line.last = message;
      found.add(Kinds.line(message));
      if (line.acknowledgesEach) {
        message.acknowledge();
      }
    }
    return found;
  }

  private List<String> send(String[] f) throws Exception {
    Line line = line(f[1]);
    int first = Integer.parseInt(f[2]);
    for (int n = first; n < first + Integer.parseInt(f[3]); n++) {
      TextMessage message = line.session.createTextMessage("" + n);
      int mode = jakarta.jms.DeliveryMode.PERSISTENT;
      int priority = Message.DEFAULT_PRIORITY;
      for (int i = 4; i < f.length; i++) {
        String[] pair = f[i].split("=", 2);
        if (pair[0].equals("dup")) {
          message.setStringProperty("_AMQ_DUPL_ID", pair[1] + n);
        } else if (pair[0].equals("persistent")) {
          mode = pair[1].equals("true") ? mode : jakarta.jms.DeliveryMode.NON_PERSISTENT;
        } else if (pair[0].equals("priority")) {
          priority = Integer.parseInt(pair[1]);
        } else if (pair[0].equals("delay")) {
          line.producer.setDeliveryDelay(Long.parseLong(pair[1]));
        } else if (pair[0].equals("typed")) {
          typed(message);
        } else if (pair[0].equals("length")) {
          message.setText(n + " ".repeat(Integer.parseInt(pair[1])));
        } else {
          message.setStringProperty(pair[0], pair[1]);
        }
      }
      sendUntilConfirmed(line, message, mode, priority, message.propertyExists("_AMQ_DUPL_ID") ? RETRY_MS : 0);
    }
    return List.of();
  }

  /** With a duplicate id a send that failed (the node died meanwhile) may be repeated without doubling. */
  private static void sendUntilConfirmed(Line line, Message message, int mode, int priority, long retryMs) throws Exception {
    long deadline = System.nanoTime() + retryMs * 1_000_000;
    while (true) {
      try {
        line.producer.send(message, mode, priority, 0);
        return;
      } catch (JMSException failed) {
        if (System.nanoTime() >= deadline) {
          throw failed;
        }
        Thread.sleep(20);
      }
    }
  }

  static void typed(Message message) throws JMSException {
    message.setBooleanProperty("boolean", true);
    message.setByteProperty("byte", (byte) -1);
    message.setShortProperty("short", (short) -2);
    message.setIntProperty("int", -3);
    message.setLongProperty("long", -4);
    message.setFloatProperty("float", 0.5f);
    message.setDoubleProperty("double", 0.1);
    message.setStringProperty("string", "säge");
  }

  private static List<String> properties(Message message) throws JMSException {
    List<String> found = new ArrayList<>();
    for (Object name : java.util.Collections.list(message.getPropertyNames())) {
      Object value = message.getObjectProperty((String) name);
      found.add(name + "=" + (value == null ? "null" : value.getClass().getSimpleName() + ":" + value));
    }
    found.add("JMSCorrelationID=" + message.getJMSCorrelationID());
    found.add("JMSReplyTo=" + message.getJMSReplyTo());
    found.add("JMSPriority=" + message.getJMSPriority());
    found.add("JMSDeliveryMode=" + message.getJMSDeliveryMode());
    return found;
  }

  private List<String> close(String name) throws JMSException {
    if (connections.containsKey(name)) {
      connections.remove(name).close();
    } else {
      Line line = line(name);
      lines.remove(name);
      line.session.close();
    }
    return List.of();
  }

  private static List<String> core(String[] f) throws Exception {
    try (ServerLocator locator = ActiveMQClient.createServerLocator(f[1]);
        ClientSessionFactory sessions = locator.createSessionFactory();
        ClientSession session = sessions.createSession(f[2], f[3], false, true, true, false, 0)) {
      switch (f[0]) {
        case "create":
          session.createQueue(QueueConfiguration.of(f[5]).setAddress(f[4]).setDurable(true)
              .setRoutingType(RoutingType.valueOf(f[6])).setFilterString(f[7].equals("-") ? null : f[7]));
          return List.of();
        case "queue":
          ClientSession.QueueQuery query = session.queueQuery(SimpleString.of(f[4]));
          return List.of("" + query.isExists(), "" + query.getMessageCount(), "" + query.getConsumerCount());
        case "bindings":
          return session.addressQuery(SimpleString.of(f[4])).getQueueNames().stream().map(SimpleString::toString).sorted().toList();
        default:
          session.queueQuery(SimpleString.of("none"));  // answered behind the topology that follows a login
          Map<String, String> members = new TreeMap<>();
          locator.getTopology().getMembers().forEach(m -> members.put(m.getNodeId(),
              m.getPrimary() == null ? "" : m.getPrimary().getParams().get("host") + ":" + m.getPrimary().getParams().get("port")));
          return members.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).toList();
      }
    }
  }
}
