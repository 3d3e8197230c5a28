package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.DeliveryMode;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Consumer and producer windows of every kind: none, without end, smaller than a message, larger than the queue. */
final class Windows {
  private Windows() { }

  private static final String[] CONSUMER_WINDOWS = {"0", "-1", "1", "700", "10000000"};
  private static final String[] PRODUCER_WINDOWS = {"-1", "1", "700", "65536", "2000000000"};

  @Scenario
  static void everyConsumerWindow(World world) throws Exception {
    for (String window : CONSUMER_WINDOWS) {
      Session session = world.connect("consumerWindowSize=" + window).createSession(false, Session.AUTO_ACKNOWLEDGE);
      Queue queue = session.createQueue(world.name("q" + window));
      World.sendTexts(world.session(), queue, World.numbered("m", 0, 100));
      MessageConsumer consumer = session.createConsumer(queue);
      World.texts(consumer, World.numbered("m", 0, 100));
      equal(null, consumer.receiveNoWait(), "window " + window + ": from the empty queue");
      equal(null, consumer.receive(50), "window " + window + ": after a wait");
      World.sendTexts(world.session(), queue, "late");
      equal("late", World.text(World.arrives(consumer)), "window " + window);
    }
  }

  @Scenario
  static void withoutAWindowNothingIsFetchedAhead(World world) throws Exception {
    Session slow = world.connect("consumerWindowSize=0").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = slow.createQueue(world.name("q"));
    World.sendTexts(world.session(), queue, World.numbered("m", 0, 10));
    MessageConsumer first = slow.createConsumer(queue);
    equal("m0", World.text(World.arrives(first)), "the slow one's first");
    MessageConsumer second = world.connect("consumerWindowSize=0").createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
    World.texts(second, World.numbered("m", 1, 9));
    equal(null, first.receiveNoWait(), "for the slow one");
  }

  @Scenario
  static void listenersWithoutAWindow(World world) throws Exception {
    Session session = world.connect("consumerWindowSize=0").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("q"));
    BlockingQueue<String> got = new LinkedBlockingQueue<>();
    session.createConsumer(queue).setMessageListener(message -> {
      try {
        got.add(World.text(message));
      } catch (Exception e) {
        got.add(e.toString());
      }
    });
    World.sendTexts(world.session(), queue, World.numbered("m", 0, 30));
    for (int i = 0; i < 30; i++) {
      equal("m" + i, got.poll(World.ARRIVES_MS, TimeUnit.MILLISECONDS), "message " + i);
    }
  }

  @Scenario
  static void rollbackInEveryConsumerWindow(World world) throws Exception {
    for (String window : CONSUMER_WINDOWS) {
      Session session = world.connect("consumerWindowSize=" + window).createSession(true, Session.SESSION_TRANSACTED);
      Queue queue = session.createQueue(world.name("q" + window));
      World.sendTexts(world.session(), queue, "1", "2", "3");
      MessageConsumer consumer = session.createConsumer(queue);
      World.texts(consumer, "1", "2");
      session.rollback();
      Message again = World.arrives(consumer);
      equal("1", World.text(again), "window " + window);
      check(again.getJMSRedelivered(), "window " + window + ": redelivered");
      World.texts(consumer, "2", "3");
      session.commit();
    }
  }

  @Scenario
  static void aLargeMessageInEveryConsumerWindow(World world) throws Exception {
    String big = "b".repeat(300_000);
    for (String window : CONSUMER_WINDOWS) {
      Session session = world.connect("consumerWindowSize=" + window).createSession(false, Session.AUTO_ACKNOWLEDGE);
      Queue queue = session.createQueue(world.name("q" + window));
      World.sendTexts(world.session(), queue, "small", big, "small too");
      World.texts(session.createConsumer(queue), "small", big, "small too");
    }
  }

  @Scenario
  static void everyProducerWindow(World world) throws Exception {
    for (String window : PRODUCER_WINDOWS) {
      for (boolean blocking : new boolean[] {true, false}) {
        Session session = world.connect("producerWindowSize=" + window + "&blockOnDurableSend=" + blocking)
            .createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(world.name("q" + window + blocking));
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 200; i++) {
          Message message = session.createTextMessage("m" + i);
          message.setStringProperty("filling", "f".repeat(100));
          producer.send(message, i % 2 == 0 ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT, 4, 0);
        }
        producer.send(session.createTextMessage("b".repeat(250_000)));
        MessageConsumer consumer = world.session().createConsumer(queue);
        World.texts(consumer, World.numbered("m", 0, 200));
        equal(250_000, World.text(World.arrives(consumer)).length(), "window " + window + ": the large one");
      }
    }
  }

  @Scenario
  static void manyProducersOfOneSessionShareTheCredits(World world) throws Exception {
    Session session = world.connect("producerWindowSize=2000").createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer anonymous = session.createProducer(null);
    MessageConsumer[] consumers = new MessageConsumer[20];
    for (int round = 0; round < 20; round++) {
      for (int i = 0; i < consumers.length; i++) {
        Queue queue = session.createQueue(world.name("q" + i));
        if (round == 0) {
          consumers[i] = world.session().createConsumer(queue);
        }
        anonymous.send(queue, session.createTextMessage(round + "x".repeat(300)));
      }
    }
    for (MessageConsumer consumer : consumers) {
      for (int round = 0; round < 20; round++) {
        equal(round + "x".repeat(300), World.text(World.arrives(consumer)), "round " + round);
      }
    }
  }
}
