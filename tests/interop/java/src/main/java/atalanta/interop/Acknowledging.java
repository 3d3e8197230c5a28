package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.api.jms.ActiveMQJMSConstants;

/** The acknowledgement modes. */
final class Acknowledging {
  private Acknowledging() { }

  @Scenario
  static void clientAcknowledgeCoversAllBefore(World world) throws Exception {
    Queue queue = filled(world, 6);
    Connection connection = world.connect();
    MessageConsumer consumer = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
    World.texts(consumer, "m0", "m1", "m2");
    Message fourth = World.arrives(consumer);
    fourth.acknowledge();
    World.texts(consumer, "m4");
    connection.close();
    MessageConsumer again = world.session().createConsumer(queue);
    Message fifth = World.arrives(again);
    equal("m4", World.text(fifth), "text");
    check(fifth.getJMSRedelivered(), "m4 is redelivered");
    Message sixth = World.arrives(again);
    equal("m5", World.text(sixth), "text");
    check(!sixth.getJMSRedelivered(), "m5 had not been delivered to the application");
  }

  @Scenario
  static void recoverRedelivers(World world) throws Exception {
    Queue queue = filled(world, 4);
    Session session = world.connect().createSession(false, Session.CLIENT_ACKNOWLEDGE);
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "m0");
    World.arrives(consumer).acknowledge();
    World.texts(consumer, "m2");
    session.recover();
    Message third = World.arrives(consumer);
    equal("m2", World.text(third), "text after recover");
    check(third.getJMSRedelivered(), "m2 is redelivered");
    equal(2, third.getIntProperty("JMSXDeliveryCount"), "delivery count");
    World.arrives(consumer).acknowledge();
    World.nothing(consumer);
  }

  @Scenario
  static void dupsOk(World world) throws Exception {
    Queue queue = filled(world, 200);
    Connection connection = world.connect();
    World.texts(connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE).createConsumer(queue), World.numbered("m", 0, 200));
    connection.close();
    World.nothing(world.session().createConsumer(queue));
  }

  @Scenario
  static void autoAcknowledge(World world) throws Exception {
    Queue queue = filled(world, 5);
    Connection connection = world.connect();
    World.texts(connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue), "m0", "m1", "m2");
    connection.close();
    World.texts(world.session().createConsumer(queue), "m3", "m4");
  }

  @Scenario
  static void blockingAcknowledge(World world) throws Exception {
    Queue queue = filled(world, 20);
    Connection connection = world.connect("blockOnAcknowledge=true");
    World.texts(connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue), World.numbered("m", 0, 10));
    long left = world.core().queueQuery(SimpleString.of(queue.getQueueName())).getMessageCount();
    equal(10L, left, "messages left at once");
  }

  @Scenario
  static void individualAcknowledge(World world) throws Exception {
    Queue queue = filled(world, 5);
    Connection connection = world.connect();
    MessageConsumer consumer = connection.createSession(false, ActiveMQJMSConstants.INDIVIDUAL_ACKNOWLEDGE).createConsumer(queue);
    Message[] messages = new Message[5];
    for (int i = 0; i < 5; i++) {
      messages[i] = World.arrives(consumer);
    }
    messages[1].acknowledge();
    messages[3].acknowledge();
    connection.close();
    MessageConsumer again = world.session().createConsumer(queue);
    World.texts(again, "m0", "m2", "m4");
    World.nothing(again);
  }

  @Scenario
  static void preAcknowledge(World world) throws Exception {
    Queue queue = filled(world, 3);
    Connection connection = world.connect();
    World.texts(connection.createSession(false, ActiveMQJMSConstants.PRE_ACKNOWLEDGE).createConsumer(queue), "m0", "m1", "m2");
    connection.close();
    World.nothing(world.session().createConsumer(queue));
  }

  @Scenario
  static void failingListenerGetsItAgain(World world) throws Exception {
    Queue queue = filled(world, 2);
    BlockingQueue<String> got = new LinkedBlockingQueue<>();
    world.session().createConsumer(queue).setMessageListener(message -> {
      boolean first;
      try {
        first = !message.getJMSRedelivered();
        got.add(World.text(message) + (first ? "" : " again"));
      } catch (Exception e) {
        got.add(e.toString());
        return;
      }
      if (first) {
        throw new IllegalStateException("on purpose");
      }
    });
    for (String expected : new String[] {"m0", "m0 again", "m1", "m1 again"}) {
      equal(expected, got.poll(World.ARRIVES_MS, TimeUnit.MILLISECONDS), "what the listener got");
    }
  }

  private static Queue filled(World world, int count) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, World.numbered("m", 0, count));
    return queue;
  }
}
