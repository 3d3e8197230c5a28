package atalanta.interop;

import static atalanta.interop.World.check;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;

/** Duplicate detection by _AMQ_DUPL_ID. */
final class Duplicates {
  private Duplicates() { }

  static void send(Session session, jakarta.jms.Destination to, String id, String text) throws JMSException {
    Message message = session.createTextMessage(text);
    message.setStringProperty("_AMQ_DUPL_ID", id);
    session.createProducer(to).send(message);
  }

  @Scenario
  static void secondSendIsDroppedQuietly(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    send(session, queue, "id-1", "first");
    send(session, queue, "id-1", "the same again");
    send(world.session(), queue, "id-1", "the same again from elsewhere");
    send(session, queue, "id-2", "second");
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, "first", "second");
    World.nothing(consumer);
  }

  @Scenario
  static void idsBelongToAnAddress(World world) throws Exception {
    Session session = world.session();
    send(session, session.createQueue(world.name("a")), "id", "to a");
    send(session, session.createQueue(world.name("b")), "id", "to b");
    World.texts(session.createConsumer(session.createQueue(world.name("a"))), "to a");
    World.texts(session.createConsumer(session.createQueue(world.name("b"))), "to b");
  }

  @Scenario
  static void everySubscriberGetsItOnce(World world) throws Exception {
    Session session = world.session();
    Topic topic = session.createTopic(world.name("t"));
    MessageConsumer first = world.session().createConsumer(topic);
    MessageConsumer second = world.session().createConsumer(topic);
    send(session, topic, "id", "once");
    send(session, topic, "id", "once");
    for (MessageConsumer consumer : new MessageConsumer[] {first, second}) {
      World.texts(consumer, "once");
      World.nothing(consumer);
    }
  }

  @Scenario
  static void commitWithADuplicateIsRefusedWhole(World world) throws Exception {
    Queue queue = world.session().createQueue(world.name("q"));
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    send(world.session(), queue, "known", "first");
    send(session, queue, "known", "repeated");
    send(session, queue, "new", "goes down with it");
    JMSException refused = World.refused(JMSException.class, session::commit);
    check(String.valueOf(refused.getMessage()).toLowerCase().contains("duplicate") || String.valueOf(refused.getErrorCode()).toLowerCase().contains("duplicate"),
        "the error names the duplicate: " + refused);
    session.rollback();
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, "first");
    World.nothing(consumer);
    send(session, queue, "new", "now alone");
    session.commit();
    World.texts(consumer, "now alone");
  }

  @Scenario
  static void rolledBackIdMayComeAgain(World world) throws Exception {
    Queue queue = world.session().createQueue(world.name("q"));
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    send(session, queue, "id", "undone");
    session.rollback();
    send(session, queue, "id", "done");
    session.commit();
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, "done");
    World.nothing(consumer);
  }

  @Scenario
  static void largeMessageTwice(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    String big = "d".repeat(150_000);
    send(session, queue, "id", big);
    send(session, queue, "id", big);
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.texts(consumer, big);
    World.nothing(consumer);
  }
}
