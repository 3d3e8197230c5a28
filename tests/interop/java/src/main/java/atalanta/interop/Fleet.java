package atalanta.interop;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;

/**
 * Many JMS connections that send durable messages to one queue and consume from it, while their brokers come and go.
 * Arguments: url-of-connection-i (repeated) "--" user password queue connections pause-ms. With a pause of -1 they are in
 * constant use, each in its own way: blocking sends every 5 to 100 ms, sends that are confirmed later without a pause
 * (they want a url with confirmationWindowSize), transactions that receive and send. Lines on stdin:
 *
 *   quiet     nobody sends any more
 *   counts    confirmed, unsure (the call failed), received, lost, repeated (delivered again after the broker confirmed
 *             an acknowledgement), unmarked (delivered again without JMSRedelivered), redelivered (marked, and no
 *             acknowledgement confirmed before), failed calls in all, exceptions of consumers
 *   end
 *
 * The broker confirms an acknowledgement by the answer to a commit. The connections 10 to 19, 30 to 39, … wait for the
 * answer to every acknowledgement, too (CLIENT_ACKNOWLEDGE with blockOnAcknowledge). The other ones acknowledge without
 * an answer. Such an acknowledgement may be lost with its connection: then the message comes again and is marked.
 */
final class Fleet {
  /** One message that the application got. `count` is its JMSXDeliveryCount, `acknowledged` confirmed by the broker. */
  private static final class Delivery {
    final String consumer;
    final int count;
    final boolean marked;
    final LocalTime at = LocalTime.now();
    volatile boolean acknowledged;

    Delivery(String consumer, Message message) throws JMSException {
      this.consumer = consumer;
      count = message.getIntProperty("JMSXDeliveryCount");
      marked = message.getJMSRedelivered();
    }

    @Override
    public String toString() {
      return at + " " + consumer + " count " + count + (marked ? " marked" : "") + (acknowledged ? " acknowledged" : "");
    }
  }

  private final Map<String, LocalTime> confirmed = new ConcurrentHashMap<>();
  private final Set<String> unsure = ConcurrentHashMap.newKeySet();
  private final Map<String, Queue<Delivery>> received = new ConcurrentHashMap<>();
  private final Set<String> reported = ConcurrentHashMap.newKeySet();
  private final AtomicInteger failures = new AtomicInteger();
  private final AtomicInteger consumerFailures = new AtomicInteger();
  private volatile boolean sending = true;

  private Fleet() { }

  public static void main(String[] arguments) throws Exception {
    List<String> urls = new ArrayList<>();
    int next = 0;
    while (!arguments[next].equals("--")) {
      urls.add(arguments[next++]);
    }
    String user = arguments[++next];
    String password = arguments[++next];
    String queue = arguments[++next];
    int connections = Integer.parseInt(arguments[++next]);
    long pauseMs = Long.parseLong(arguments[++next]);
    Fleet fleet = new Fleet();
    for (int i = 0; i < connections; i++) {
      ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(urls.get(i % urls.size()));
      factory.setBlockOnAcknowledge(i / 10 % 2 == 1);
      Connection connection = factory.createConnection(user, password);
      if (pauseMs >= 0) {
        fleet.work(connection, queue, "c" + i, pauseMs, factory.isBlockOnAcknowledge());
      } else {
        fleet.workWithoutPause(connection, queue, "c" + i, i, factory.isBlockOnAcknowledge());
      }
    }
    System.out.println("ready");
    System.out.flush();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null && !line.equals("end"); line = in.readLine()) {
      if (line.equals("quiet")) {
        fleet.sending = false;
        System.out.println("quiet");
      } else {
        System.out.println(fleet.counts());
      }
      System.out.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private void work(Connection connection, String queue, String name, long pauseMs, boolean blocking)
      throws JMSException {
    Session receiving = connection.createSession(false, blocking ? Session.CLIENT_ACKNOWLEDGE : Session.AUTO_ACKNOWLEDGE);
    MessageConsumer consumer = receiving.createConsumer(receiving.createQueue(queue));
    Session sendingSession = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    MessageProducer producer = sendingSession.createProducer(sendingSession.createQueue(queue));
    connection.start();
    start(name + "-receives", () -> receive(consumer, name, blocking));
    start(name + "-sends", () -> send(sendingSession, producer, name, pauseMs));
  }

  private void workWithoutPause(Connection connection, String queue, String name, int number, boolean blocking)
      throws JMSException {
    switch (number % 10) {
      case 1, 5 -> {
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        connection.start();
        start(name + "-transacts", () -> transact(session, consumer, producer, name));
      }
      case 2 -> {
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(session.createQueue(queue));
        start(name + "-streams", () -> stream(session, producer, name));
      }
      case 3 -> work(connection, queue, name, number % 20 == 3 ? 5 : 20, blocking);
      case 4, 6, 8 -> work(connection, queue, name, 50, blocking);
      default -> work(connection, queue, name, 100, blocking);
    }
  }

  private void transact(Session session, MessageConsumer consumer, MessageProducer producer, String name) {
    for (int n = 0; true; n++) {
      List<String> sent = new ArrayList<>();
      List<Message> got = new ArrayList<>();
      boolean done = false;
      try {
        for (Message message = consumer.receive(50); message != null; message = consumer.receiveNoWait()) {
          got.add(message);
          if (got.size() == 10) {
            break;
          }
        }
        for (int i = 0; sending && i < 3; i++) {
          sent.add(name + "/" + n + "." + i);
          producer.send(session.createTextMessage(sent.get(i)));
        }
        session.commit();
        done = true;
      } catch (JMSException failed) {
        System.err.println(LocalTime.now() + " " + name + ": " + Main.oneLine(failed));
        failures.incrementAndGet();
        rollBack(session);
      }
      try {
        for (String text : sent) {
          if (done) {
            confirmed.put(text, LocalTime.now());
          } else {
            unsure.add(text);
          }
        }
        for (Message message : got) {
          record(message, name).acknowledged = done;
        }
      } catch (JMSException never) {
        throw new IllegalStateException(never);
      }
    }
  }

  private static void rollBack(Session session) {
    try {
      session.rollback();
    } catch (JMSException failed) {
      pause(100);
    }
  }

  private void stream(Session session, MessageProducer producer, String name) {
    for (int n = 0; true; n++) {
      pause(n % 5 == 0 ? 50 : 1);
      if (!sending) {
        continue;
      }
      String text = name + "/" + n;
      try {
        producer.send(session.createTextMessage(text), new CompletionListener() {
          @Override
          public void onCompletion(Message message) {
            confirmed.put(text, LocalTime.now());
          }

          @Override
          public void onException(Message message, Exception failed) {
            unsure.add(text);
            System.err.println(LocalTime.now() + " " + text + " later: " + failed.getMessage());
            failures.incrementAndGet();
          }
        });
      } catch (JMSException failed) {
        unsure.add(text);
        System.err.println(LocalTime.now() + " " + text + ": " + Main.oneLine(failed));
        failures.incrementAndGet();
      }
    }
  }

  private static void start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
  }

  private Delivery record(Message message, String consumer) throws JMSException {
    Delivery delivery = new Delivery(consumer, message);
    received.computeIfAbsent(((TextMessage) message).getText(), text -> new ConcurrentLinkedQueue<>()).add(delivery);
    return delivery;
  }

  private void receive(MessageConsumer consumer, String name, boolean blocking) {
    while (true) {
      try {
        Message message = consumer.receive(1_000);
        if (message != null) {
          Delivery delivery = record(message, name);
          if (blocking) {
            message.acknowledge();
            delivery.acknowledged = true;
          }
        }
      } catch (JMSException failed) {
        consumerFailures.incrementAndGet();
        pause(100);
      }
    }
  }

  private void send(Session session, MessageProducer producer, String name, long pauseMs) {
    for (int n = 0; true; n++) {
      pause(pauseMs);
      if (!sending) {
        continue;
      }
      String text = name + "/" + n;
      try {
        Message message = session.createTextMessage(text);
        producer.send(message);
        confirmed.put(text, LocalTime.now());
      } catch (JMSException failed) {
        unsure.add(text);
        System.err.println(LocalTime.now() + " " + text + ": " + Main.oneLine(failed));
        failures.incrementAndGet();
      }
    }
  }

  private static void pause(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException never) {
      throw new IllegalStateException(never);
    }
  }

  private String counts() {
    List<String> lost = confirmed.keySet().stream().filter(text -> !received.containsKey(text)).toList();
    if (!sending) {
      lost.stream().filter(reported::add)
          .forEach(text -> System.err.println(text + ", confirmed at " + confirmed.get(text) + ", has not arrived"));
    }
    long repeated = 0;
    long unmarked = 0;
    long redelivered = 0;
    for (Map.Entry<String, Queue<Delivery>> each : received.entrySet()) {
      Queue<Delivery> deliveries = each.getValue();
      if (deliveries.size() < 2) {
        continue;
      }
      boolean again = isRepeated(deliveries);
      boolean alike = deliveries.stream().filter(delivery -> !delivery.marked).count() > 1;
      repeated += again ? 1 : 0;
      unmarked += alike ? 1 : 0;
      redelivered += again || alike ? 0 : 1;
      if ((again || alike) && reported.add(each.getKey())) {
        System.err.println(each.getKey() + " was delivered again: " + deliveries);
      }
    }
    return confirmed.size() + "\t" + unsure.size() + "\t" + received.size() + "\t" + lost.size() + "\t" + repeated + "\t"
        + unmarked + "\t" + redelivered + "\t" + failures.get() + "\t" + consumerFailures.get();
  }

  /** Tells if a delivery follows an acknowledged one: its count is higher, or as high. */
  private static boolean isRepeated(Queue<Delivery> deliveries) {
    return deliveries.stream().filter(delivery -> delivery.acknowledged).anyMatch(last ->
        deliveries.stream().anyMatch(other -> other != last && other.count >= last.count));
  }
}
