package atalanta.openwire;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Scheduled, expiring and grouped messages while nodes come and go. Arguments: url, pause in ms between the sends of each
 * kind. A URL that begins with "failover:" is for OpenWire, any other one for CORE. The queues:
 *
 *   instants.scheduled   messages with delays; one that is received before its delay is over counts as early
 *   instants.lasting     messages that live much longer than their way takes
 *   instants.brief       messages that live for a second, and that nobody consumes
 *   instants.grouped     groups at two consumers; a number that is received first after a higher one is out of order
 *
 * Lines on stdin: "counts"; "quiet": nobody begins a new message any more. Each is answered with the counts: confirmed
 * (without the brief ones), lost (confirmed, and never received), doubled (received again after its acknowledgement was
 * confirmed), early, disordered, and the most that a message was early by, in ms.
 */
public final class Instants {
  private static final int[] DELAYS_MS = {300, 1_500, 4_000};
  private static final int GROUPS = 4;
  private static final long LASTING_MS = 30_000;
  private static final long BRIEF_MS = 1_000;

  /** One message that a consumer got, and when the broker confirmed that it is taken. */
  private static final class Delivery {
    final long beganNs = System.nanoTime();
    volatile long takenNs = Long.MAX_VALUE;
  }

  private final ConnectionFactory factory;
  private final boolean openwire;
  private final long pauseMs;
  private final Map<String, Boolean> confirmed = new ConcurrentHashMap<>();
  private final Map<String, Queue<Delivery>> received = new ConcurrentHashMap<>();
  private final Map<String, Long> dueMs = new ConcurrentHashMap<>();
  private final Map<String, Integer> lastOfGroup = new ConcurrentHashMap<>();
  private final AtomicInteger early = new AtomicInteger();
  private final AtomicInteger disordered = new AtomicInteger();
  private volatile long mostEarlyMs;
  private volatile boolean quiet;

  private Instants(String url, long pauseMs) throws Exception {
    openwire = url.startsWith("failover:");
    this.pauseMs = pauseMs;
    if (openwire) {
      factory = new ActiveMQConnectionFactory("admin", "admin", url);
    } else {
      org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory core =
          new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url);
      core.setBlockOnAcknowledge(true);
      factory = core;
    }
  }

  public static void main(String[] arguments) throws Exception {
    Instants instants = new Instants(arguments[0], Long.parseLong(arguments[1]));
    for (String kind : new String[] {"scheduled", "lasting", "grouped", "grouped"}) {
      instants.consume(kind);
    }
    Thread[] senders = new Thread[4];
    int at = 0;
    for (String kind : new String[] {"scheduled", "lasting", "brief", "grouped"}) {
      senders[at++] = instants.produce(kind);
    }
    System.out.println("ready");
    System.out.flush();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      if (line.equals("quiet")) {
        instants.quiet = true;
        for (Thread each : senders) {
          each.join();
        }
      }
      System.out.println(instants.counts());
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private Session session() throws JMSException {
    Connection connection = factory.createConnection("admin", "admin");
    if (openwire) {
      ((ActiveMQConnection) connection).setSendAcksAsync(false);
    }
    connection.start();
    return connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
  }

  private static Thread start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private Thread produce(String kind) throws JMSException {
    Session session = session();
    MessageProducer producer = session.createProducer(session.createQueue("instants." + kind));
    producer.setDeliveryMode(DeliveryMode.PERSISTENT);
    return start(kind + "-sends", () -> send(kind, session, producer));
  }

  private void send(String kind, Session session, MessageProducer producer) {
    for (int number = 0; !quiet; number++) {
      String text = kind + "/" + number;
      while (!sent(kind, session, producer, text, number)) {
        pause(50);
      }
      if (!kind.equals("brief")) {
        confirmed.put(text, true);
      }
      pause(pauseMs);
    }
  }

  private boolean sent(String kind, Session session, MessageProducer producer, String text, int number) {
    try {
      Message message = session.createTextMessage(text);
      message.setStringProperty("_AMQ_DUPL_ID", text);
      long livesMs = 0;
      if (kind.equals("scheduled")) {
        long delayMs = DELAYS_MS[number % DELAYS_MS.length];
        long dueAtMs = System.currentTimeMillis() + delayMs;
        // What is sent again may be the second one of its kind; the first one counts.
        dueMs.putIfAbsent(text, dueAtMs);
        if (openwire) {
          message.setLongProperty("AMQ_SCHEDULED_DELAY", delayMs);
        } else {
          message.setLongProperty("_AMQ_SCHED_DELIVERY", dueAtMs);
        }
      } else if (kind.equals("grouped")) {
        message.setStringProperty("JMSXGroupID", "group-" + number % GROUPS);
      } else {
        livesMs = kind.equals("brief") ? BRIEF_MS : LASTING_MS;
      }
      producer.send(message, DeliveryMode.PERSISTENT, 4, livesMs);
      return true;
    } catch (JMSException error) {
      System.err.println(text + ": " + error);
      return false;
    }
  }

  private void consume(String kind) throws JMSException {
    Session session = session();
    MessageConsumer consumer = session.createConsumer(session.createQueue("instants." + kind));
    start(kind + "-receives", () -> receive(kind, consumer));
  }

  private void receive(String kind, MessageConsumer consumer) {
    while (true) {
      try {
        Message message = consumer.receive(500);
        if (message == null) {
          continue;
        }
        Delivery delivery = new Delivery();
        note(kind, ((TextMessage) message).getText(), delivery);
        message.acknowledge();
        delivery.takenNs = System.nanoTime();
      } catch (JMSException error) {
        System.err.println(kind + ": " + error);
      }
    }
  }

  private synchronized void note(String kind, String text, Delivery delivery) {
    long nowMs = System.currentTimeMillis();
    Queue<Delivery> deliveries = received.computeIfAbsent(text, key -> new ConcurrentLinkedQueue<>());
    boolean first = deliveries.isEmpty();
    deliveries.add(delivery);
    int number = Integer.parseInt(text.substring(text.indexOf('/') + 1));
    if (kind.equals("scheduled") && nowMs < dueMs.get(text)) {
      early.incrementAndGet();
      mostEarlyMs = Math.max(mostEarlyMs, dueMs.get(text) - nowMs);
    }
    if (kind.equals("grouped") && first) {
      Integer last = lastOfGroup.put("group-" + number % GROUPS, number);
      if (last != null && last > number) {
        disordered.incrementAndGet();
        System.err.println(text + " came after " + last);
      }
    }
  }

  private static boolean isDoubled(Queue<Delivery> deliveries) {
    return deliveries.stream().anyMatch(
        one -> deliveries.stream().anyMatch(other -> other != one && other.beganNs > one.takenNs));
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException never) {
      throw new IllegalStateException(never);
    }
  }

  private String counts() {
    long lost = confirmed.keySet().stream().filter(text -> !received.containsKey(text)).count();
    long doubled = received.values().stream().filter(Instants::isDoubled).count();
    return confirmed.size() + "\t" + lost + "\t" + doubled + "\t" + early.get() + "\t" + disordered.get() + "\t" + mostEarlyMs;
  }
}
