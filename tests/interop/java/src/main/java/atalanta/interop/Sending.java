package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The ways to send. */
final class Sending {
  private Sending() { }

  @Scenario
  static void completionsComeInOrder(World world) throws Exception {
    Session session = world.connect("confirmationWindowSize=1048576").createSession(false, Session.AUTO_ACKNOWLEDGE);
    asynchronous(world, session);
  }

  @Scenario
  static void completionsWithoutConfirmationWindow(World world) throws Exception {
    asynchronous(world, world.session());
  }

  private static void asynchronous(World world, Session session) throws Exception {
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    BlockingQueue<String> completed = new LinkedBlockingQueue<>();
    CompletionListener listener = new CompletionListener() {
      @Override
      public void onCompletion(Message message) {
        try {
          completed.add(World.text(message));
        } catch (Exception e) {
          completed.add(e.toString());
        }
      }

      @Override
      public void onException(Message message, Exception exception) {
        completed.add(exception.toString());
      }
    };
    for (int i = 0; i < 500; i++) {
      producer.send(session.createTextMessage("m" + i), listener);
    }
    for (int i = 0; i < 500; i++) {
      equal("m" + i, completed.poll(World.ARRIVES_MS, TimeUnit.MILLISECONDS), "completion " + i);
    }
    World.texts(world.session().createConsumer(queue), World.numbered("m", 0, 500));
  }

  @Scenario
  static void concurrentProducersKeepTheirOrder(World world) throws Exception {
    Queue queue = world.session().createQueue(world.name("q"));
    List<Thread> threads = new ArrayList<>();
    BlockingQueue<String> errors = new LinkedBlockingQueue<>();
    for (int p = 0; p < 4; p++) {
      String prefix = p + ":";
      Session session = world.connect("blockOnDurableSend=" + (p % 2 == 0)).createSession(false, Session.AUTO_ACKNOWLEDGE);
      threads.add(new Thread(() -> {
        try {
          World.sendTexts(session, queue, World.numbered(prefix, 0, 300));
        } catch (Exception e) {
          errors.add(e.toString());
        }
      }));
    }
    threads.forEach(Thread::start);
    MessageConsumer consumer = world.session().createConsumer(queue);
    int[] next = new int[4];
    for (int i = 0; i < 1200; i++) {
      Message message = consumer.receive(World.ARRIVES_MS);
      check(message != null, i + " of 1200 arrived, errors: " + errors);
      String[] parts = World.text(message).split(":");
      int producer = Integer.parseInt(parts[0]);
      equal(next[producer]++, Integer.parseInt(parts[1]), "number of producer " + producer);
    }
    World.nothing(consumer);
    equal("[]", errors.toString(), "errors");
  }

  @Scenario
  static void unconfirmedSendsAllArrive(World world) throws Exception {
    Session session = world.connect("blockOnDurableSend=false&producerWindowSize=20000").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("q"));
    World.sendTexts(session, queue, World.numbered("y".repeat(500), 0, 1000));
    World.texts(world.session().createConsumer(queue), World.numbered("y".repeat(500), 0, 1000));
  }

  @Scenario
  static void nonPersistent(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("q"));
    MessageProducer producer = session.createProducer(queue);
    producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
    for (int i = 0; i < 200; i++) {
      producer.send(session.createTextMessage("m" + i));
    }
    World.texts(world.session().createConsumer(queue), World.numbered("m", 0, 200));
  }

  @Scenario
  static void anonymousProducer(World world) throws Exception {
    Session session = world.session();
    MessageProducer producer = session.createProducer(null);
    for (int i = 0; i < 20; i++) {
      producer.send(session.createQueue(world.name("q" + i % 4)), session.createTextMessage("m" + i));
    }
    for (int q = 0; q < 4; q++) {
      MessageConsumer consumer = session.createConsumer(session.createQueue(world.name("q" + q)));
      for (int i = q; i < 20; i += 4) {
        World.texts(consumer, "m" + i);
      }
    }
  }

  @Scenario
  static void manySessionsOfOneConnection(World world) throws Exception {
    var connection = world.connect();
    for (int i = 0; i < 40; i++) {
      Session session = connection.createSession(i % 2 == 0, Session.AUTO_ACKNOWLEDGE);
      World.sendTexts(session, session.createQueue(world.name("q")), "m" + i);
      if (session.getTransacted()) {
        session.commit();
      }
      if (i % 3 == 0) {
        session.close();
      }
    }
    Session last = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    World.texts(last.createConsumer(last.createQueue(world.name("q"))), World.numbered("m", 0, 40));
  }

  @Scenario
  static void manyConnections(World world) throws Exception {
    for (int i = 0; i < 25; i++) {
      Session session = world.session();
      World.sendTexts(session, session.createQueue(world.name("q")), "m" + i);
    }
    Session last = world.session();
    World.texts(last.createConsumer(last.createQueue(world.name("q"))), World.numbered("m", 0, 25));
  }

  @Scenario
  static void simplifiedApi(World world) throws Exception {
    try (JMSContext context = world.factory("").createContext(world.user, world.password)) {
      Queue queue = context.createQueue(world.name("q"));
      context.createProducer().setProperty("n", 5).setPriority(6).setJMSCorrelationID("c").send(queue, "body");
      JMSConsumer consumer = context.createConsumer(queue, "n = 5");
      Message message = consumer.receive(World.ARRIVES_MS);
      equal("body", message.getBody(String.class), "body");
      equal(6, message.getJMSPriority(), "priority");
      equal("c", message.getJMSCorrelationID(), "correlation id");
      context.createProducer().send(queue, java.util.Map.of("key", 1L));
      equal(1L, context.createConsumer(queue).receiveBody(java.util.Map.class, World.ARRIVES_MS).get("key"), "map entry");
    }
  }
}
