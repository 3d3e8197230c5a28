package atalanta.openwire;

import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.DeliveryMode;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.RedeliveryPolicy;

/** A poison message ends in the dead-letter queue, whoever counts its attempts. Flows of groups and exclusive consumers. */
final class DeadLetters {
  /** The node's max-delivery-attempts. */
  private static final int ATTEMPTS = 10;

  private DeadLetters() {}

  private static ActiveMQConnection quick(World world, int redeliveries) throws Exception {
    ActiveMQConnection connection = world.connect();
    RedeliveryPolicy policy = new RedeliveryPolicy();
    policy.setMaximumRedeliveries(redeliveries);
    policy.setInitialRedeliveryDelay(0);
    policy.setRedeliveryDelay(0);
    connection.setRedeliveryPolicy(policy);
    return connection;
  }

  /** Takes what is in the queue of dead letters up to the message of this flow. */
  private static Message dead(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue("DLQ"));
    Message found = consumer.receive(World.WAIT_MS);
    while (found != null && !world.name.equals(World.text(found))) {
      found = consumer.receive(World.WAIT_MS);
    }
    consumer.close();
    World.same(world.name, World.text(found));
    return found;
  }

  private static void send(World world, int mode) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = session.createProducer(session.createQueue(world.name));
    producer.setDeliveryMode(mode);
    producer.send(session.createTextMessage(world.name));
    producer.send(session.createTextMessage("good"));
  }

  private static void listened(World world, int mode, int redeliveries) throws Exception {
    Session session = quick(world, redeliveries).createSession(false, Session.AUTO_ACKNOWLEDGE);
    AtomicInteger attempts = new AtomicInteger();
    AtomicInteger good = new AtomicInteger();
    session.createConsumer(session.createQueue(world.name)).setMessageListener(
        message -> {
          try {
            if ("good".equals(World.text(message))) {
              good.incrementAndGet();
              return;
            }
          } catch (Exception failure) {
            throw new IllegalStateException(failure);
          }
          attempts.incrementAndGet();
          throw new IllegalArgumentException("poison");
        });
    send(world, mode);
    Message found = dead(world);
    World.same(mode, found.getJMSDeliveryMode());
    World.same(redeliveries + 1, attempts.get());
    World.same(1, good.get());
    World.same(true, found.getStringProperty("dlqDeliveryFailureCause").contains("poison"));
  }

  static void poisonForAListener(World world) throws Exception {
    listened(world, DeliveryMode.PERSISTENT, 2);
  }

  static void poisonThatIsNotPersistent(World world) throws Exception {
    listened(world, DeliveryMode.NON_PERSISTENT, 0);
  }

  static void poisonOfRecoveries(World world) throws Exception {
    send(world, DeliveryMode.PERSISTENT);
    Session session = quick(world, 2).createSession(false, Session.CLIENT_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(session.createQueue(world.name));
    for (int attempt = 1; attempt <= 3; attempt++) {
      Message message = consumer.receive(World.WAIT_MS);
      World.same(world.name, World.text(message));
      World.same(attempt, message.getIntProperty("JMSXDeliveryCount"));
      session.recover();
    }
    World.same("good", World.text(consumer));
    dead(world);
  }

  static void poisonOfLostConsumers(World world) throws Exception {
    send(world, DeliveryMode.PERSISTENT);
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
      ActiveMQConnection connection = world.connect();
      Session session = connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
      Message message = session.createConsumer(session.createQueue(world.name)).receive(World.WAIT_MS);
      World.same(world.name, World.text(message));
      World.same(attempt, message.getIntProperty("JMSXDeliveryCount"));
      connection.close();
    }
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    World.same("good", World.text(session.createConsumer(session.createQueue(world.name))));
    dead(world);
  }

  static void exclusiveByPriority(World world) throws Exception {
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer low = session.createConsumer(
        session.createQueue(world.name + "?consumer.exclusive=true&consumer.priority=1"));
    MessageConsumer high = session.createConsumer(
        session.createQueue(world.name + "?consumer.exclusive=true&consumer.priority=9"));
    MessageConsumer plain = session.createConsumer(session.createQueue(world.name + "?consumer.priority=20"));
    World.send(session, world.name, "1", "2");
    World.same("1", World.text(high));
    World.same("2", World.text(high));
    high.close();
    World.send(session, world.name, "3");
    World.same("3", World.text(low));
    low.close();
    World.send(session, world.name, "4");
    World.same("4", World.text(plain));
  }

  static void groupsThatMove(World world) throws Exception {
    Session sending = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = sending.createProducer(sending.createQueue(world.name));
    Session session = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer first = session.createConsumer(session.createQueue(world.name + "?consumer.prefetchSize=1"));
    Session other = world.session(Session.AUTO_ACKNOWLEDGE);
    MessageConsumer second = other.createConsumer(other.createQueue(world.name + "?consumer.prefetchSize=1"));
    for (int at = 1; at <= 6; at++) {
      Message message = sending.createTextMessage("" + at);
      message.setStringProperty("JMSXGroupID", "g");
      message.setIntProperty("JMSXGroupSeq", at);
      producer.send(message);
    }
    World.same("1", World.text(first));
    World.same("2", World.text(first));
    World.nothing(second);
    first.close();
    for (int at = 3; at <= 6; at++) {
      World.same("" + at, World.text(second));
    }
  }
}
