package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import jakarta.jms.XASession;
import java.util.Arrays;
import java.util.List;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/** What a restart of the broker keeps. The harness runs "before", stops or kills the broker, starts it, runs "after". */
final class Restart {
  private Restart() { }

  private static final String BIG = "r".repeat(200_000);

  @Scenario(phase = "before")
  static void scheduledMessages(World world) throws Exception {
    Session session = world.session();
    MessageProducer producer = session.createProducer(session.createQueue(world.name("q")));
    producer.setDeliveryDelay(600_000);
    producer.send(session.createTextMessage("much later"));
    producer.setDeliveryDelay(1_000);
    producer.send(session.createTextMessage("meanwhile"));
    producer.setDeliveryDelay(500);
    producer.send(session.createTextMessage("before that"));
  }

  @Scenario(phase = "after")
  static void scheduledMessagesAfter(World world) throws Exception {
    Session session = world.session();
    Thread.sleep(1_500);
    MessageConsumer consumer = session.createConsumer(session.createQueue(name(world, "scheduledMessages", "q")));
    // Artemis hands out what became due without a consumer in the opposite order.
    equal(List.of("before that", "meanwhile"), World.drained(consumer).stream().sorted().toList(), "what is due");
  }

  @Scenario(phase = "before")
  static void durableMessages(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 40; i++) {
      Message message = session.createTextMessage("m" + i);
      message.setIntProperty("n", i);
      message.setStringProperty("s", "ä" + i);
      message.setJMSCorrelationID("c" + i);
      message.setJMSType("t");
      producer.send(message, i % 4 == 3 ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT, 4, 0);
    }
    Connection connection = world.connect("blockOnAcknowledge=true");
    MessageConsumer consumer = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
    for (int i = 0; i < 5; i++) {
      World.arrives(consumer).acknowledge();
    }
    World.texts(consumer, "m5", "m6");
  }

  @Scenario(phase = "after")
  static void durableMessagesAfter(World world) throws Exception {
    Session session = world.session();
    MessageConsumer consumer = session.createConsumer(session.createQueue(name(world, "durableMessages", "q")));
    for (int i = 5; i < 40; i++) {
      if (i % 4 != 3) {
        Message message = World.arrives(consumer);
        equal("m" + i, World.text(message), "text");
        equal(i, message.getIntProperty("n"), "n");
        equal("ä" + i, message.getStringProperty("s"), "s");
        equal("c" + i, message.getJMSCorrelationID(), "correlation id");
        equal("t", message.getJMSType(), "type");
        equal(DeliveryMode.PERSISTENT, message.getJMSDeliveryMode(), "delivery mode");
        check(message.getJMSMessageID() != null && message.getJMSTimestamp() > 0, "message id and timestamp");
      }
    }
    World.nothing(consumer);
  }

  @Scenario(phase = "before")
  static void durableSubscription(World world) throws Exception {
    Connection connection = world.connectAs(world.name("client"));
    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    Topic topic = session.createTopic(world.name("t"));
    session.createDurableSubscriber(topic, "sub", "n <> 2", false);
    connection.close();
    Session sender = world.session();
    for (int i = 0; i < 5; i++) {
      Message message = sender.createTextMessage("m" + i);
      message.setIntProperty("n", i);
      sender.createProducer(topic).send(message);
    }
  }

  @Scenario(phase = "after")
  static void durableSubscriptionAfter(World world) throws Exception {
    Session session = world.connectAs(name(world, "durableSubscription", "client")).createSession(false, Session.AUTO_ACKNOWLEDGE);
    Topic topic = session.createTopic(name(world, "durableSubscription", "t"));
    MessageConsumer consumer = session.createDurableSubscriber(topic, "sub", "n <> 2", false);
    World.texts(consumer, "m0", "m1", "m3", "m4");
    World.nothing(consumer);
  }

  @Scenario(phase = "before")
  static void transactions(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, "committed 1", "committed 2");
    session.commit();
    World.sendTexts(session, queue, "open");
    World.texts(session.createConsumer(queue), "committed 1");
  }

  @Scenario(phase = "after")
  static void transactionsAfter(World world) throws Exception {
    Session session = world.session();
    MessageConsumer consumer = session.createConsumer(session.createQueue(name(world, "transactions", "q")));
    World.texts(consumer, "committed 1", "committed 2");
    World.nothing(consumer);
  }

  @Scenario(phase = "before")
  static void prepared(World world) throws Exception {
    for (String ending : new String[] {"commit", "rollback"}) {
      XASession session = Xa.session(world);
      Queue in = session.createQueue(world.name(ending + ".in"));
      World.sendTexts(world.session(), in, "order");
      Xid xid = Xa.xid(world.name(ending));
      Xa.move(session, xid, in, session.createQueue(world.name(ending + ".out")));
      equal(XAResource.XA_OK, session.getXAResource().prepare(xid), "vote");
    }
  }

  @Scenario(phase = "after")
  static void preparedAfter(World world) throws Exception {
    Session plain = world.session();
    XASession session = Xa.session(world);
    XAResource resource = session.getXAResource();
    List<Xid> inDoubt = Arrays.asList(resource.recover(XAResource.TMSTARTRSCAN));
    for (String ending : new String[] {"commit", "rollback"}) {
      Xid xid = Xa.xid(name(world, "prepared", ending));
      check(inDoubt.contains(xid), "in doubt: " + ending);
      MessageConsumer in = plain.createConsumer(session.createQueue(name(world, "prepared", ending + ".in")));
      MessageConsumer out = plain.createConsumer(session.createQueue(name(world, "prepared", ending + ".out")));
      World.nothing(in);
      World.nothing(out);
      if (ending.equals("commit")) {
        resource.commit(xid, false);
        World.texts(out, "invoice");
        World.nothing(in);
      } else {
        resource.rollback(xid);
        World.texts(in, "order");
        World.nothing(out);
      }
    }
    equal(0, resource.recover(XAResource.TMSTARTRSCAN).length, "in doubt after all");
  }

  @Scenario(phase = "before")
  static void duplicateIds(World world) throws Exception {
    Session session = world.session();
    Duplicates.send(session, session.createQueue(world.name("q")), "id-1", "first");
    Session transacted = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Duplicates.send(transacted, session.createQueue(world.name("q")), "id-2", "second");
    transacted.commit();
    Duplicates.send(transacted, session.createQueue(world.name("q")), "id-3", "never committed");
  }

  @Scenario(phase = "after")
  static void duplicateIdsAfter(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(name(world, "duplicateIds", "q"));
    Duplicates.send(session, queue, "id-1", "first repeated");
    Duplicates.send(session, queue, "id-2", "second repeated");
    Duplicates.send(session, queue, "id-3", "third");
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "first", "second", "third");
    World.nothing(consumer);
  }

  @Scenario(phase = "before")
  static void largeMessages(World world) throws Exception {
    Session session = world.session();
    World.sendTexts(session, session.createQueue(world.name("q")), BIG + 1, "small", BIG + 2);
  }

  @Scenario(phase = "after")
  static void largeMessagesAfter(World world) throws Exception {
    Session session = world.session();
    MessageConsumer consumer = session.createConsumer(session.createQueue(name(world, "largeMessages", "q")));
    World.texts(consumer, BIG + 1, "small", BIG + 2);
    World.nothing(consumer);
  }

  @Scenario(phase = "before")
  static void temporaryQueue(World world) throws Exception {
    Session session = world.session();
    var queue = session.createTemporaryQueue();
    World.sendTexts(session, queue, "gone with the broker");
    World.sendTexts(session, session.createQueue(world.name("name")), queue.getQueueName());
  }

  @Scenario(phase = "after")
  static void temporaryQueueAfter(World world) throws Exception {
    Session session = world.session();
    Message name = World.arrives(session.createConsumer(session.createQueue(name(world, "temporaryQueue", "name"))));
    var query = world.core().queueQuery(org.apache.activemq.artemis.api.core.SimpleString.of(World.text(name)));
    check(!query.isExists(), "the temporary queue is gone");
  }

  /** The name the "before" scenario used: the same with "After" taken off. */
  private static String name(World world, String scenario, String suffix) {
    return world.name(suffix).replace("." + scenario + "After.", "." + scenario + ".");
  }
}
