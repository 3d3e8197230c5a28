package atalanta.openwire;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Scheduled, expiring and grouped messages and durable subscriptions while nodes come and go. Arguments: url, pause in ms
 * between the sends of each kind, and the URL of the consumers if it is another one. A URL that begins with "failover:" is
 * for OpenWire, any other one for CORE. The queues, and the topic:
 *
 *   instants.scheduled   messages with delays; one that is received before its delay is over counts as early
 *   instants.lasting     messages that live much longer than their way takes
 *   instants.brief       messages that live for a second, and that nobody consumes
 *   instants.grouped     groups at two consumers; a number that is received first after a higher one is out of order
 *   instants.news        a topic with two durable subscriptions, each with an order of its own. The subscriber of one
 *                        leaves after 100 messages, again and again, and comes back. Until both have got one (in a
 *                        network of brokers a topic must be known first) the messages have numbers below 0
 *
 * Lines on stdin: "counts"; "quiet": nobody begins a new message any more; "names": names some of the lost
 * and doubled ones on stderr. Each is answered with the counts: confirmed
 * (without the brief ones; the news count for each subscription), lost (confirmed, and never received), doubled (received
 * again after its acknowledgement was confirmed), early, disordered, and the most that a message was early by, in ms.
 */
public final class Instants {
  private static final int[] DELAYS_MS = {300, 1_500, 4_000};
  private static final int GROUPS = 4;
  private static final long LASTING_MS = 30_000;
  private static final long BRIEF_MS = 1_000;
  private static final String[] SUBSCRIPTIONS = {"stays", "leaves"};
  private static final int NAMES_MAX = 20;
  private static final int STAY = 100;
  private static final long AWAY_MS = 400;

  /** One message that a consumer got, and when the broker confirmed that it is taken. */
  private static final class Delivery {
    final long beganNs = System.nanoTime();
    volatile long takenNs = Long.MAX_VALUE;
  }

  private final ConnectionFactory sending;
  private final ConnectionFactory receiving;
  private final long pauseMs;
  private final Map<String, Boolean> confirmed = new ConcurrentHashMap<>();
  private final Map<String, Queue<Delivery>> received = new ConcurrentHashMap<>();
  private final Map<String, Long> dueMs = new ConcurrentHashMap<>();
  private final Map<String, Integer> lastOfGroup = new ConcurrentHashMap<>();
  private final AtomicInteger early = new AtomicInteger();
  private final AtomicInteger disordered = new AtomicInteger();
  private volatile long mostEarlyMs;
  private volatile boolean quiet;

  private Instants(String url, long pauseMs, String receivingUrl) throws Exception {
    this.pauseMs = pauseMs;
    sending = factory(url);
    receiving = factory(receivingUrl);
  }

  private static ConnectionFactory factory(String url) throws Exception {
    if (url.startsWith("failover:")) {
      ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory("admin", "admin", url);
      factory.setSendAcksAsync(false);
      return factory;
    }
    org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory core =
        new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url);
    core.setBlockOnAcknowledge(true);
    return core;
  }

  public static void main(String[] arguments) throws Exception {
    String receivingUrl = arguments[arguments.length > 2 ? 2 : 0];
    Instants instants = new Instants(arguments[0], Long.parseLong(arguments[1]), receivingUrl);
    for (String kind : new String[] {"scheduled", "lasting", "grouped", "grouped"}) {
      instants.consume(kind);
    }
    for (String subscription : SUBSCRIPTIONS) {
      instants.subscribe(subscription);
    }
    Thread[] senders = new Thread[5];
    int at = 0;
    for (String kind : new String[] {"scheduled", "lasting", "brief", "grouped", "news"}) {
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
      if (line.equals("names")) {
        instants.lost().sorted().limit(NAMES_MAX).forEach(text -> System.err.println("lost: " + text));
        instants.doubled().sorted().limit(NAMES_MAX).forEach(text -> System.err.println("doubled: " + text));
      }
      System.out.println(instants.counts());
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static Session session(Connection connection) throws JMSException {
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
    Session session = session(sending.createConnection("admin", "admin"));
    String name = "instants." + kind;
    MessageProducer producer =
        session.createProducer(kind.equals("news") ? session.createTopic(name) : session.createQueue(name));
    producer.setDeliveryMode(DeliveryMode.PERSISTENT);
    return start(kind + "-sends", () -> send(kind, session, producer));
  }

  private void send(String kind, Session session, MessageProducer producer) {
    int number = kind.equals("news") ? Integer.MIN_VALUE : 0;
    while (!quiet) {
      String text = kind + "/" + number;
      while (!sent(kind, session, producer, text, number)) {
        pause(50);
      }
      if (number < 0) {
        number = known() ? -1 : number;
      } else if (kind.equals("news")) {
        for (String subscription : SUBSCRIPTIONS) {
          confirmed.put(subscription + "/" + text, true);
        }
      } else if (!kind.equals("brief")) {
        confirmed.put(text, true);
      }
      pause(pauseMs);
      number++;
    }
  }

  private boolean known() {
    return Stream.of(SUBSCRIPTIONS).allMatch(
        each -> received.keySet().stream().anyMatch(text -> text.startsWith(each + "/news/-")));
  }

  private boolean sent(String kind, Session session, MessageProducer producer, String text, int number) {
    try {
      Message message = session.createTextMessage(text);
      boolean openwire = sending instanceof ActiveMQConnectionFactory;
      if (!openwire) {
        message.setStringProperty("_AMQ_DUPL_ID", text);  // OpenWire's clients repeat a send with its message id
      }
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
        livesMs = kind.equals("brief") ? BRIEF_MS : kind.equals("lasting") ? LASTING_MS : 0;
      }
      producer.send(message, DeliveryMode.PERSISTENT, 4, livesMs);
      return true;
    } catch (JMSException error) {
      System.err.println(text + ": " + error);
      return false;
    }
  }

  private void consume(String kind) throws JMSException {
    Session session = session(receiving.createConnection("admin", "admin"));
    MessageConsumer consumer = session.createConsumer(session.createQueue("instants." + kind));
    start(kind + "-receives", () -> {
      while (true) {
        take(kind, "", consumer);
      }
    });
  }

  private void subscribe(String subscription) throws JMSException {
    Connection connection = receiving.createConnection("admin", "admin");
    connection.setClientID("instants-" + subscription);
    Session session = session(connection);
    Topic topic = session.createTopic("instants.news");
    MessageConsumer first = session.createDurableSubscriber(topic, subscription);
    boolean leaves = subscription.equals(SUBSCRIPTIONS[1]);
    start(subscription + "-receives", () -> {
      MessageConsumer consumer = first;
      int taken = 0;
      while (true) {
        taken += take("news", subscription + "/", consumer) ? 1 : 0;
        if (!leaves || taken < STAY) {
          continue;
        }
        try {
          consumer.close();
          pause(AWAY_MS);
          consumer = session.createDurableSubscriber(topic, subscription);
          taken = 0;
        } catch (JMSException error) {
          System.err.println(subscription + ": " + error);
        }
      }
    });
  }

  /** Takes the next message, if one comes soon. The prefix is that of its subscription. */
  private boolean take(String kind, String prefix, MessageConsumer consumer) {
    try {
      Message message = consumer.receive(500);
      if (message == null) {
        return false;
      }
      Delivery delivery = new Delivery();
      note(kind, prefix + ((TextMessage) message).getText(), delivery);
      message.acknowledge();
      delivery.takenNs = System.nanoTime();
      return true;
    } catch (JMSException error) {
      System.err.println(kind + ": " + error);
      pause(50);
      return false;
    }
  }

  private synchronized void note(String kind, String text, Delivery delivery) {
    long nowMs = System.currentTimeMillis();
    Queue<Delivery> deliveries = received.computeIfAbsent(text, key -> new ConcurrentLinkedQueue<>());
    boolean first = deliveries.isEmpty();
    deliveries.add(delivery);
    int number = Integer.parseInt(text.substring(text.lastIndexOf('/') + 1));
    if (kind.equals("scheduled") && nowMs < dueMs.get(text)) {
      early.incrementAndGet();
      mostEarlyMs = Math.max(mostEarlyMs, dueMs.get(text) - nowMs);
    }
    if (first && (kind.equals("grouped") || kind.equals("news"))) {
      String ordered = kind.equals("news") ? text.substring(0, text.indexOf('/')) : "group-" + number % GROUPS;
      Integer last = lastOfGroup.put(ordered, number);
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

  private Stream<String> lost() {
    return confirmed.keySet().stream().filter(text -> !received.containsKey(text));
  }

  private Stream<String> doubled() {
    return received.entrySet().stream().filter(each -> isDoubled(each.getValue())).map(Map.Entry::getKey);
  }

  private String counts() {
    return confirmed.size() + "\t" + lost().count() + "\t" + doubled().count() + "\t" + early.get() + "\t" + disordered.get()
        + "\t" + mostEarlyMs;
  }
}
