package atalanta.interop;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/** A JMS client of any version whose node goes and comes back. Argument: the URL. A line of the input is the moment after. */
final class Reconnect {
  static final long WAIT_MS = 20_000;

  static void round(Session session, MessageProducer producer, MessageConsumer consumer, String text) throws Exception {
    producer.setDeliveryMode(DeliveryMode.PERSISTENT);
    producer.send(session.createTextMessage(text));
    if (session.getTransacted()) {
      session.commit();
    }
    for (;;) {
      TextMessage message = (TextMessage) consumer.receive(WAIT_MS);
      if (message == null) {
        throw new IllegalStateException(text + " did not arrive");
      }
      if (session.getTransacted()) {
        session.commit();
      }
      if (message.getText().equals(text)) {
        System.out.println(text);
        return;
      }
    }
  }

  static void fresh(Session session, Destination destination, String text) throws Exception {
    round(session, session.createProducer(destination), session.createConsumer(destination), text);
  }

  public static void main(String[] arguments) throws Exception {
    try (ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(arguments[0], "admin", "admin");
      Connection connection = factory.createConnection()) {
      connection.start();
      Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      MessageProducer producer = session.createProducer(session.createQueue("both"));
      MessageConsumer consumer = session.createConsumer(session.createQueue("both"));
      round(session, producer, consumer, "before");
      System.in.read();
      round(session, producer, consumer, "old producer");
      fresh(session, session.createQueue("another"), "new producer");
      fresh(session, session.createTemporaryQueue(), "temporary queue");
      fresh(session, session.createTopic("news"), "topic");
      fresh(connection.createSession(true, Session.SESSION_TRANSACTED), session.createQueue("third"), "transaction");
    }
    System.exit(0);
  }
}
