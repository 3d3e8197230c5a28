package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The ways to take messages from a queue. */
final class Receiving {
  private Receiving() { }

  @Scenario
  static void receiveNoWait(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer consumer = world.session().createConsumer(queue);
    equal(null, consumer.receiveNoWait(), "from the empty queue");
    World.sendTexts(session, queue, "1", "2");
    equal("1", World.text(consumer.receiveNoWait()), "first");
    equal("2", World.text(consumer.receiveNoWait()), "second");
    equal(null, consumer.receiveNoWait(), "when all is taken");
  }

  @Scenario
  static void timedReceive(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer consumer = world.session().createConsumer(queue);
    long start = System.nanoTime();
    equal(null, consumer.receive(400), "from the empty queue");
    long waited = (System.nanoTime() - start) / 1_000_000;
    check(waited >= 390 && waited < 5000, "waited " + waited + " ms for 400");
    BlockingQueue<String> got = new LinkedBlockingQueue<>();
    Thread thread = new Thread(() -> {
      try {
        got.add(World.text(World.arrives(consumer)));
      } catch (Exception | AssertionError e) {
        got.add(e.toString());
      }
    });
    thread.start();
    World.sendTexts(session, queue, "late");
    equal("late", got.poll(World.ARRIVES_MS, TimeUnit.MILLISECONDS), "what the waiting receiver got");
  }

  @Scenario
  static void listener(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    BlockingQueue<String> got = new LinkedBlockingQueue<>();
    MessageConsumer consumer = world.session().createConsumer(queue);
    consumer.setMessageListener(message -> {
      try {
        got.add(World.text(message));
      } catch (Exception e) {
        got.add(e.toString());
      }
    });
    World.sendTexts(session, queue, World.numbered("m", 0, 50));
    for (int i = 0; i < 50; i++) {
      equal("m" + i, got.poll(World.ARRIVES_MS, TimeUnit.MILLISECONDS), "message " + i);
    }
  }

  @Scenario
  static void browserLeavesEverything(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, World.numbered("m", 0, 30));
    for (int round = 0; round < 2; round++) {
      QueueBrowser browser = session.createBrowser(queue);
      List<String> seen = new ArrayList<>();
      for (Enumeration<?> all = browser.getEnumeration(); all.hasMoreElements();) {
        seen.add(World.text((Message) all.nextElement()));
      }
      equal(List.of(World.numbered("m", 0, 30)), seen, "browsed");
      browser.close();
    }
    World.texts(session.createConsumer(queue), World.numbered("m", 0, 30));
  }

  @Scenario
  static void browserOfAnEmptyQueue(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, "gone");
    World.texts(session.createConsumer(queue), "gone");
    equal(List.of(), Collections.list(session.createBrowser(queue).getEnumeration()), "browsed");
  }

  @Scenario
  static void competingConsumersEachMessageOnce(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    List<MessageConsumer> consumers = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      consumers.add(world.session().createConsumer(queue));
    }
    World.sendTexts(session, queue, World.numbered("m", 0, 200));
    Set<String> all = new TreeSet<>();
    for (MessageConsumer consumer : consumers) {
      List<String> mine = World.drained(consumer);
      equal(50, mine.size(), "share of one of four consumers (round robin)");
      all.addAll(mine);
    }
    equal(200, all.size(), "different messages");
  }

  @Scenario
  static void orderForOneConsumer(World world) throws Exception {
    Session session = world.connect("blockOnDurableSend=false").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("q"));
    MessageConsumer consumer = world.session().createConsumer(queue);
    World.sendTexts(session, queue, World.numbered("m", 0, 3000));
    World.texts(consumer, World.numbered("m", 0, 3000));
    World.nothing(consumer);
  }

  @Scenario
  static void closedConsumerGivesBackWhatItDidNotTake(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, World.numbered("m", 0, 10));
    MessageConsumer first = world.session().createConsumer(queue);
    World.texts(first, "m0", "m1", "m2");
    first.close();
    MessageConsumer second = world.session().createConsumer(queue);
    Message next = World.arrives(second);
    equal("m3", World.text(next), "text");
    check(!next.getJMSRedelivered(), "a message that was only buffered is not redelivered");
    World.texts(second, World.numbered("m", 4, 6));
  }

  @Scenario
  static void windowZeroTakesOneAtATime(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    Session slowSession = world.connect("consumerWindowSize=0").createSession(false, Session.CLIENT_ACKNOWLEDGE);
    MessageConsumer slow = slowSession.createConsumer(queue);
    World.sendTexts(session, queue, World.numbered("m", 0, 10));
    Message held = World.arrives(slow);
    equal("m0", World.text(held), "text");
    MessageConsumer quick = world.connect("consumerWindowSize=0").createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
    World.texts(quick, World.numbered("m", 1, 9));
    equal(null, slow.receiveNoWait(), "nothing is left for the slow one");
    held.acknowledge();
  }

  @Scenario
  static void windowZeroReceivesLarge(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    String big = "w".repeat(150_000);
    World.sendTexts(session, queue, big, "small", big);
    World.texts(world.connect("consumerWindowSize=0").createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue), big, "small", big);
  }

  @Scenario
  static void smallWindowKeepsFlowing(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, World.numbered("x".repeat(1000), 0, 300));
    World.texts(world.connect("consumerWindowSize=5000").createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue),
        World.numbered("x".repeat(1000), 0, 300));
  }

  @Scenario
  static void stoppedConnectionHoldsBack(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    Connection connection = world.connect();
    MessageConsumer consumer = connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
    World.sendTexts(session, queue, "1");
    World.texts(consumer, "1");
    connection.stop();
    World.sendTexts(session, queue, "2");
    World.nothing(consumer);
    connection.start();
    World.texts(consumer, "2");
  }

  @Scenario
  static void consumerBeforeTheMessages(World world) throws Exception {
    MessageConsumer consumer = world.session().createConsumer(world.session().createQueue(world.name("q")));
    World.nothing(consumer);
    Session session = world.session();
    World.sendTexts(session, session.createQueue(world.name("q")), "1", "2");
    World.texts(consumer, "1", "2");
  }
}
