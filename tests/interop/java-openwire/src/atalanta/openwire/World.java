package atalanta.openwire;

import java.util.ArrayList;
import java.util.List;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/** What a flow needs: connections to the broker, names of its own, and checks. */
final class World {
  static final int WAIT_MS = 10_000;
  static final int MOMENT_MS = 300;

  final String url;
  final String name;
  private final List<AutoCloseable> opened = new ArrayList<>();

  /** The queues of the flow have names of their own: clients of two versions may follow each other at one broker. */
  World(String url, String flow) {
    this.url = url;
    this.name = flow + "." + ProcessHandle.current().pid();
  }

  ActiveMQConnectionFactory factory(String options) {
    if (url.startsWith("failover:")) {
      options = options.replace("wireFormat.", "nested.wireFormat.");
    }
    String joined = options.isEmpty() ? url : url + (url.contains("?") ? "&" : "?") + options;
    return new ActiveMQConnectionFactory("admin", "admin", joined);
  }

  ActiveMQConnection connect() throws JMSException {
    return connect("", null);
  }

  ActiveMQConnection connect(String options, String clientId) throws JMSException {
    ActiveMQConnection connection = (ActiveMQConnection) factory(options).createConnection();
    opened.add(connection::close);
    if (clientId != null) {
      connection.setClientID(clientId);
    }
    connection.start();
    return connection;
  }

  Session session(int mode) throws JMSException {
    return connect().createSession(mode == Session.SESSION_TRANSACTED, mode);
  }

  void add(AutoCloseable closed) {
    opened.add(closed);
  }

  void close() {
    for (AutoCloseable each : opened) {
      try {
        each.close();
      } catch (Exception alreadyClosed) {
        continue;
      }
    }
  }

  static void send(Session session, String queue, String... texts) throws JMSException {
    var producer = session.createProducer(session.createQueue(queue));
    for (String text : texts) {
      producer.send(session.createTextMessage(text));
    }
    producer.close();
  }

  static String text(MessageConsumer consumer) throws JMSException {
    return text(consumer.receive(WAIT_MS));
  }

  static String text(Message message) throws JMSException {
    return message == null ? null : ((TextMessage) message).getText();
  }

  static void nothing(MessageConsumer consumer) throws JMSException {
    same(null, text(consumer.receive(MOMENT_MS)));
  }

  static void same(Object expected, Object found) {
    if (expected == null ? found != null : !expected.equals(found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }
}
