package network;

import java.net.URI;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.transport.failover.FailoverTransport;

/** A connection that sends persistent messages to one queue, and consumes another one. */
final class Client {
  final String name;
  private final ActiveMQConnection connection;
  private final Ledger ledger;
  private final String target;
  private final int periodMs;

  /** The words are: open, name, URL, user, password, queue to send to, queue to consume, milliseconds between two messages. */
  Client(String[] words, Ledger ledger) throws JMSException {
    this.name = words[1];
    this.ledger = ledger;
    this.target = words[5];
    this.periodMs = Integer.parseInt(words[7]);
    connection = (ActiveMQConnection) new ActiveMQConnectionFactory(words[3], words[4], words[2]).createConnection();
    connection.setClientID(name);
    connection.setExceptionListener(failure -> ledger.failed(name, failure));
    connection.start();
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    session.createConsumer(session.createQueue(words[6])).setMessageListener(
        message -> {
          try {
            ledger.received(message, place());
          } catch (JMSException failure) {
            ledger.failed(name, failure);
          }
        });
    Thread sender = new Thread(this::send, name);
    sender.setDaemon(true);
    sender.start();
  }

  private void send() {
    try {
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue(target));
      producer.setDeliveryMode(DeliveryMode.PERSISTENT);
      for (int number = 0; !ledger.quiet; number++) {
        String text = ledger.phase + "/" + name + "/" + number;
        producer.send(session.createTextMessage(text)); // returns when the broker has it on disk
        ledger.sent(text);
        Thread.sleep(periodMs);
      }
    } catch (JMSException | InterruptedException failure) {
      ledger.failed(name, failure);
    }
  }

  String place() {
    FailoverTransport transport = connection.getTransport().narrow(FailoverTransport.class);
    URI uri = transport == null || !transport.isConnected() ? null : transport.getConnectedTransportURI();
    return uri == null ? "" : uri.getHost() + ":" + uri.getPort();
  }
}
