package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;

/** Local transactions: all or nothing, for sends and for acknowledgements. */
final class Transactions {
  private Transactions() { }

  private static Session transacted(World world) throws JMSException {
    return world.connect().createSession(true, Session.SESSION_TRANSACTED);
  }

  @Scenario
  static void sendsAppearAtCommit(World world) throws Exception {
    Session session = transacted(world);
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.sendTexts(session, queue, "1", "2", "3");
    World.nothing(consumer);
    session.commit();
    World.texts(consumer, "1", "2", "3");
  }

  @Scenario
  static void rolledBackSendsNeverAppear(World world) throws Exception {
    Session session = transacted(world);
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.sendTexts(session, queue, "undone");
    session.rollback();
    World.sendTexts(session, queue, "done");
    session.commit();
    World.texts(consumer, "done");
    World.nothing(consumer);
  }

  @Scenario
  static void rollbackRedeliversInOrderWithFlagAndCount(World world) throws Exception {
    Session session = transacted(world);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(world.session(), queue, "1", "2", "3", "4");
    MessageConsumer consumer = session.createConsumer(queue);
    for (int round = 1; round <= 3; round++) {
      for (int i = 1; i <= 3; i++) {
        Message message = World.arrives(consumer);
        equal("" + i, World.text(message), "text in round " + round);
        equal(round > 1, message.getJMSRedelivered(), "redelivered flag in round " + round);
        equal(round, message.getIntProperty("JMSXDeliveryCount"), "delivery count in round " + round);
      }
      session.rollback();
    }
    World.texts(consumer, "1", "2", "3");
    Message last = World.arrives(consumer);
    check(!last.getJMSRedelivered(), "a message nobody took is not redelivered");
    session.commit();
    World.nothing(consumer);
    check(world.session().createConsumer(queue).receive(World.NOTHING_MS) == null, "all are acknowledged");
  }

  @Scenario
  static void receiveAndForwardIsOneStep(World world) throws Exception {
    Session session = transacted(world);
    Queue from = session.createQueue(world.name("from"));
    Queue to = session.createQueue(world.name("to"));
    World.sendTexts(world.session(), from, "1", "2");
    MessageConsumer consumer = session.createConsumer(from);
    World.texts(consumer, "1");
    World.sendTexts(session, to, "copy of 1");
    session.rollback();
    MessageConsumer forwarded = world.session().createConsumer(to);
    World.nothing(forwarded);
    World.texts(consumer, "1", "2");
    World.sendTexts(session, to, "copy of 1", "copy of 2");
    session.commit();
    World.texts(forwarded, "copy of 1", "copy of 2");
    World.nothing(consumer);
  }

  @Scenario
  static void closingWithoutCommitRollsBack(World world) throws Exception {
    Connection connection = world.connect();
    Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(world.session(), queue, "kept");
    World.sendTexts(session, queue, "never");
    World.texts(session.createConsumer(queue), "kept");
    connection.close();
    MessageConsumer consumer = world.session().createConsumer(queue);
    Message message = World.arrives(consumer);
    equal("kept", World.text(message), "text");
    check(message.getJMSRedelivered(), "redelivered");
    World.nothing(consumer);
  }

  @Scenario
  static void thousandSendsInOne(World world) throws Exception {
    Session session = transacted(world);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, World.numbered("m", 0, 1000));
    session.commit();
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, World.numbered("m", 0, 1000));
    session.commit();
    World.nothing(world.session().createConsumer(queue));
  }

  @Scenario
  static void someCommittedSomeRolledBack(World world) throws Exception {
    Session session = transacted(world);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(world.session(), queue, World.numbered("m", 0, 6));
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "m0", "m1");
    session.commit();
    World.texts(consumer, "m2", "m3");
    session.rollback();
    World.texts(consumer, "m2");
    session.commit();
    consumer.close();
    session.rollback();
    World.texts(world.session().createConsumer(queue), "m3", "m4", "m5");
  }

  @Scenario
  static void consumerClosedBeforeCommit(World world) throws Exception {
    Session session = transacted(world);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(world.session(), queue, "1", "2");
    MessageConsumer consumer = session.createConsumer(queue);
    World.texts(consumer, "1");
    consumer.close();
    session.commit();
    World.texts(world.session().createConsumer(queue), "2");
  }

  @Scenario
  static void toDestinationsNotYetKnown(World world) throws Exception {
    Session session = transacted(world);
    for (int i = 0; i < 5; i++) {
      World.sendTexts(session, session.createQueue(world.name("q" + i)), "m" + i);
    }
    session.commit();
    for (int i = 0; i < 5; i++) {
      World.texts(world.session().createConsumer(session.createQueue(world.name("q" + i))), "m" + i);
    }
  }
}
