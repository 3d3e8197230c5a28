package atalanta.interop;

import static atalanta.interop.World.check;
import static atalanta.interop.World.equal;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.util.Enumeration;
import java.util.concurrent.atomic.AtomicInteger;

/** Addresses that are full: senders that wait, senders that fail, messages that go to page files. */
final class Full {
  private Full() { }

  private static final int PAGED = 50_000;

  @Scenario
  static void blockedSendersWaitForConsumers(World world) throws Exception {
    Session session = world.connect("producerWindowSize=10000").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("blocking", "q"));
    AtomicInteger sent = new AtomicInteger();
    Thread sender = new Thread(() -> {
      try {
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 300; i++) {
          producer.send(numbered(session, i, 2_000));
          sent.incrementAndGet();
        }
      } catch (JMSException closed) {
        sent.set(-1);
      }
    });
    sender.setDaemon(true);
    sender.start();
    World.until("the address is full", () -> {
      int before = sent.get();
      Thread.sleep(300);
      return before > 10 && before == sent.get();
    });
    check(sent.get() < 150, "sent before it was full: " + sent.get());
    MessageConsumer consumer = world.session().createConsumer(queue);
    inOrder(consumer, 0, 300);
    sender.join(World.ARRIVES_MS);
    equal(300, sent.get(), "sent in the end");
    World.nothing(consumer);
  }

  /** With its usual window a client may send far ahead, but not far beyond the limit. */
  @Scenario
  static void theUsualWindowEndsAtTheLimit(World world) throws Exception {
    int size = 10_000;
    int count = 2_000; // twice what the address takes
    Session session = world.connect("blockOnDurableSend=false").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("roomy", "q"));
    AtomicInteger sent = new AtomicInteger();
    Thread sender = new Thread(() -> {
      try {
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 2 * count; i++) {
          producer.send(numbered(session, i % count, size));
          sent.incrementAndGet();
        }
      } catch (JMSException closed) {
        sent.set(-1);
      }
    });
    sender.setDaemon(true);
    sender.start();
    World.until("the address is full", () -> {
      int before = sent.get();
      Thread.sleep(300);
      return before > 10 && before == sent.get();
    });
    check(sent.get() * size > 8_000_000 && sent.get() * size < 11_500_000, "sent before it was full: " + sent.get());
    MessageConsumer consumer = world.session().createConsumer(queue);
    inOrder(consumer, 0, count);
    inOrder(consumer, 0, count);
    sender.join(World.ARRIVES_MS);
    equal(2 * count, sent.get(), "sent in the end");
    World.nothing(consumer);
  }

  @Scenario
  static void failedSendersAreTold(World world) throws Exception {
    Session session = world.connect("producerWindowSize=10000").createSession(false, Session.AUTO_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("failing", "q"));
    MessageProducer producer = session.createProducer(queue);
    int sent = 0;
    String why = "";
    try {
      for (; sent < 300; sent++) {
        producer.send(numbered(session, sent, 2_000));
      }
    } catch (JMSException full) {
      why = full.getMessage();
    }
    check(sent > 10 && sent < 150, "sent before it was full: " + sent);
    check(why.contains("full"), "told: " + why);
    Session other = world.session();
    MessageConsumer consumer = other.createConsumer(queue);
    inOrder(consumer, 0, sent);
    World.nothing(consumer);
    World.sendTexts(other, queue, "again");
    equal("again", World.text(World.arrives(consumer)), "after it was emptied");
  }

  @Scenario
  static void whatIsTooMuchIsDropped(World world) throws Exception {
    Session session = world.session();
    Queue queue = session.createQueue(world.name("dropping", "q"));
    MessageProducer producer = session.createProducer(queue);
    for (int i = 0; i < 300; i++) {
      producer.send(numbered(session, i, 2_000));
    }
    MessageConsumer consumer = world.session().createConsumer(queue);
    int kept = 0;
    for (Message m = consumer.receive(World.NOTHING_MS); m != null; m = consumer.receive(World.NOTHING_MS)) {
      equal(kept++, m.getIntProperty("n"), "number");
    }
    check(kept > 10 && kept < 150, "kept: " + kept);
  }

  @Scenario
  static void queuesLargerThanMemoryKeepTheirOrder(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("paging", "q"));
    fill(session, queue, 0, PAGED);
    MessageConsumer consumer = world.connect("ackBatchSize=10000").createSession(false, Session.DUPS_OK_ACKNOWLEDGE).createConsumer(queue);
    inOrder(consumer, 0, 30_000);
    fill(session, queue, PAGED, 500);
    inOrder(consumer, 30_000, PAGED + 500 - 30_000);
    World.nothing(consumer);
  }

  @Scenario
  static void browsersSeeWhatIsInPages(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("paging", "q"));
    fill(session, queue, 0, 3_000);
    QueueBrowser browser = world.session().createBrowser(queue);
    int seen = 0;
    for (Enumeration<?> all = browser.getEnumeration(); all.hasMoreElements(); ) {
      equal(seen++, ((Message) all.nextElement()).getIntProperty("n"), "number");
    }
    equal(3_000, seen, "browsed");
    equal(3_000L, world.core().queueQuery(org.apache.activemq.artemis.api.core.SimpleString.of(queue.getQueueName())).getMessageCount(), "counted");
  }

  @Scenario(phase = "before")
  static void pagesBeforeARestart(World world) throws Exception {
    Session session = world.connect().createSession(true, Session.SESSION_TRANSACTED);
    Queue queue = session.createQueue(world.name("paging", "q"));
    fill(session, queue, 0, PAGED);
    MessageConsumer consumer = session.createConsumer(queue);
    inOrder(consumer, 0, 700);
    session.commit();
  }

  @Scenario(phase = "after")
  static void pagesAfterARestart(World world) throws Exception {
    Session session = world.connect("ackBatchSize=10000").createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
    Queue queue = session.createQueue(world.name("paging", "q").replace("pagesAfterARestart", "pagesBeforeARestart"));
    MessageConsumer consumer = session.createConsumer(queue);
    inOrder(consumer, 700, PAGED - 700);
    World.nothing(consumer);
  }

  private static void fill(Session session, Queue queue, int from, int count) throws JMSException {
    MessageProducer producer = session.createProducer(queue);
    producer.setDeliveryMode(DeliveryMode.PERSISTENT);
    for (int i = from; i < from + count; i++) {
      producer.send(numbered(session, i, 100));
      if (i % 1_000 == 999) {
        session.commit();
      }
    }
    session.commit();
    producer.close();
  }

  private static BytesMessage numbered(Session session, int n, int size) throws JMSException {
    BytesMessage message = session.createBytesMessage();
    message.writeBytes(new byte[size]);
    message.setIntProperty("n", n);
    return message;
  }

  private static void inOrder(MessageConsumer consumer, int from, int count) throws JMSException {
    for (int i = from; i < from + count; i++) {
      Message message = consumer.receive(World.ARRIVES_MS);
      check(message != null, "waiting for number " + i + ": nothing arrived within " + World.ARRIVES_MS + " ms");
      equal(i, message.getIntProperty("n"), "number");
    }
  }
}
